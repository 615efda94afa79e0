//! Runs experiments, each in its own process, so that a failing run does not affect the server.

mod note;
mod process;
mod scheduler;
mod stream;

pub use note::Note;
pub use process::{RunnerCommand, Running, draw};
pub use scheduler::run_scheduler;
