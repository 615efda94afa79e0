//! `hol watch`, `hol get`, and the server that they and `hol submit` ask: what a browser can do, without one.

mod get;
mod pinned;
mod server;
mod stream;
mod watch;

pub use get::Get;
pub use server::{Credentials, Server};
pub use watch::{Experiment, Watch, follow, state};
