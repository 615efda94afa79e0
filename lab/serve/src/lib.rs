//! The lab in the browser: `hol serve`.
//!
//! A [`Server`] manages a state directory with a database, and experiments, which wait in a queue and run in their
//! own processes. Decisions are pure functions: `lifecycle` returns the state after an event, `queue` the experiments
//! to start. One thread of `jobs` starts and ends processes. `shell` is a terminal on an experiment's nodes. Only the
//! outer layer, `router`, uses axum and tokio: `guard` checks requests, `api` serves programs, and `pages` serves
//! people. `draft` converts between forms, drawings and texts. `worker` runs each `computation` over a text in a child
//! process with limits.

mod accounts;
mod api;
mod backup;
mod blocking;
mod bundle;
mod client;
mod clock;
mod computation;
mod concurrency;
mod directory;
mod download;
mod draft;
mod drain;
mod encoding;
mod events;
mod experiment;
mod extract;
mod folders;
mod guard;
mod jobs;
mod lifecycle;
mod listen;
mod mail;
mod mistakes;
mod pages;
mod people;
mod plan;
mod queue;
mod quota;
mod reading;
mod refusal;
mod requester;
mod router;
mod server;
mod settings;
mod shared;
mod shell;
mod slow_clients;
mod store;
mod submission;
#[cfg(test)]
mod tests;
mod worker;

pub use backup::{BackupError, back_up};
pub use experiment::{Experiment, Format, Links, Progress, State};
pub use listen::{Options, ServeError, Tls, add_administrator, serve};
pub use mail::MailDestination;
pub use people::Registration;
pub use quota::Quota;
pub use refusal::{Problem, Problems};
pub use server::{Access, Server};
pub use worker::{Limits, run_worker_process};
