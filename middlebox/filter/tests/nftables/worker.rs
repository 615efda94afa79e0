//! Kernel workers, which execute deferred work on the processor that deferred it.

use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::thread::{CpuSet, Pid, gettid, sched_setaffinity};

use crate::world::wait;

/// Calls `what` on a processor that no other thread uses, so that its deferred work waits. A few milliseconds after
/// `what` calls its argument, it continues on another processor. Without the right to reserve a processor, it is called
/// all the same.
pub fn ahead_of_workers<T: Send>(what: impl FnOnce(&dyn Fn()) -> T + Send) -> T {
    let (begin, begun) = channel();
    let work = move || {
        let thread = gettid();
        move_to(thread, 0);
        let thread_number = thread.as_raw_nonzero().to_string();
        drop(Command::new("chrt").args(["--fifo", "--pid", "1", &thread_number]).output());
        what(&|| begin.send(thread).unwrap())
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
