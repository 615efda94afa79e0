//! `hol submit`, `hol watch`, `hol get`: what a browser can do with a server, without one.

mod get;
mod server;
mod stream;
mod submit;
mod watch;

pub use get::Get;
pub use submit::Submit;
pub use watch::Watch;
