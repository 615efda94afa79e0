//! Mail about state changes, by SMTP or into a directory.

mod content;
mod mailer;

pub use content::is_news;
pub use mailer::{Change, MailDestination, MailError, Mailer};
