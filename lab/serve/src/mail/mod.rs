//! Mail after every change, by SMTP or into a directory.

mod letter;
mod post;

pub use post::{Change, Mailer, Post, PostError};
