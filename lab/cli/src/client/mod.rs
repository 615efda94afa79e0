//! `hol watch`, `hol get`, and the client of the server that they and `hol submit` use.

mod get;
mod pinned_certificate;
mod server;
mod stream;
mod watch;

pub use get::Get;
pub use server::{Credentials, Server};
pub use watch::{Experiment, Watch, follow, state};
