//! Running experiments, each in its own process, so that no run affects the server.

mod conductor;
mod note;
mod process;
mod stream;

pub use conductor::conduct;
pub use note::Note;
pub use process::{Command, Running, draw};
