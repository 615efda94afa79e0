//! Kernel workers, which execute deferred work on the processor that deferred it.

use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::thread::{CpuSet, Pid, gettid, sched_setaffinity};

use crate::world::wait;

/// Calls `test` on a processor that no other thread uses, so that the work it defers waits. A few milliseconds after
/// `test` calls its argument, its thread moves to another processor, and the deferred work runs. Without the right to
/// reserve a processor, deferred work may run earlier.
pub fn run_before_workers<T: Send>(test: impl FnOnce(&dyn Fn()) -> T + Send) -> T {
    let (begin, begun) = channel();
    let work = move || {
        let thread = gettid();
        move_to(thread, 0);
        let thread_number = thread.as_raw_nonzero().to_string();
        drop(Command::new("chrt").args(["--fifo", "--pid", "1", &thread_number]).output());
        test(&|| begin.send(thread).unwrap())
    };
    std::thread::scope(|scope| {
        let worked = scope.spawn(work);
        let thread = begun.recv().unwrap();
        wait(Duration::from_millis(5));
        move_to(thread, 1);
        worked.join().unwrap()
    })
}

fn move_to(thread: Pid, cpu: usize) {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    let _ = sched_setaffinity(Some(thread), &cpus);
}
