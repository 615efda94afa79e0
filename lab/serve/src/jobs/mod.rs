//! Experiments that run, each in a process of its own: whatever a run does, the server goes on.

mod conductor;
mod process;
mod stream;

pub use conductor::{Note, conduct};
pub use process::{Command, Running, draw};
