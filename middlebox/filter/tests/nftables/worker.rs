//! The kernel's workers, which do what it puts off on the CPU where it was put off.

use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::thread::{CpuSet, Pid, gettid, sched_setaffinity};

use crate::world::wait;

/// Does something on a CPU that nobody else gets, so that what it leaves to a worker waits there. A few milliseconds after it has
/// called what it is given, it goes on elsewhere. Whoever may not ask for a CPU of his own does it as well.
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
