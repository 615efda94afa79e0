//! Mail about state changes, by SMTP or into a directory.

mod letter;
mod post;

pub use letter::is_news;
pub use post::{Change, Mailer, Post, PostError};
