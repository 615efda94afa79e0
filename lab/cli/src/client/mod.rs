//! Implements `hol watch` and `hol get`, and the client of the server's API, which `hol submit` uses, too.

mod get;
mod pinned_certificate;
mod server;
mod stream;
mod watch;

pub use get::Get;
pub use server::{Credentials, ServerClient};
pub use watch::{Experiment, Watch, describe_state, follow};
