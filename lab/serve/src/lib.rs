//! The lab in the browser: `hol serve`.
//!
//! A [`Server`] is a state directory, a database in it, and experiments that wait, run in processes of their own, and end. All that
//! is decided is plain code: `lifecycle` says what an event does to an experiment, `queue` who may start. `jobs` makes it so: one
//! thread starts and ends processes. `shell` is a terminal on an experiment's nodes. `router` is the edge, where axum and tokio are: `guard` before it, `api` for programs, `pages`
//! for people. `draft` turns questions, drawings and texts into one another.

mod accounts;
mod api;
mod bundle;
mod clock;
mod directory;
mod draft;
mod events;
mod experiment;
mod extract;
mod folders;
mod guard;
mod jobs;
mod leisure;
mod lifecycle;
mod listen;
mod mail;
mod pages;
mod people;
mod queue;
mod reading;
mod refusal;
mod router;
mod server;
mod shared;
mod shell;
mod store;
mod submission;
#[cfg(test)]
mod tests;
mod turns;
mod viewer;

pub use experiment::{Experiment, Format, Links, Progress, State};
pub use listen::{Options, ServeError, Tls, add_administrator, serve};
pub use mail::Post;
pub use people::Registration;
pub use refusal::{Problem, Problems};
pub use server::{Access, Server};
