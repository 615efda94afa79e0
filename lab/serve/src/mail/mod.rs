//! Mail about state changes, by SMTP or into a directory.

mod content;
mod mailer;

#[cfg(test)]
pub use content::tests::experiment as experiment_for_tests;
pub use content::{is_reported, tables};
pub use mailer::{MailDestination, MailError, Mailer, StateChangeMail};
