//! Runs experiments, each in its own process, so that a failing run does not affect the server.

mod message;
mod process;
mod scheduler;
mod stream;

pub use message::SchedulerMessage;
pub use process::{RunnerCommand, RunningProcess, restrict_environment, write_report};
pub use scheduler::run_scheduler;
