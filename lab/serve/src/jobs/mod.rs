//! Experiments that run, each in a process of its own: whatever a run does, the server goes on.

mod conductor;
mod note;
mod process;
mod stream;

pub use conductor::conduct;
pub use note::Note;
pub use process::{Command, Running, draw};
