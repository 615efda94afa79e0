//! Mail about state changes, by SMTP or into a directory.

mod content;
mod mailer;

pub use content::is_reported;
pub use mailer::{MailDestination, MailError, Mailer, StateChangeMail};
