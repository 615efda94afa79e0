//! The secret shared by the hosts of a live run.

use std::path::Path;
use std::sync::OnceLock;
use std::{env, fmt, fs};

use crate::control::hmac;

/// The secret that two hosts share.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// The environment variable with the secret, as an alternative to a file.
pub const SECRET_VARIABLE: &str = "HOL_LIVE_SECRET";

/// The secret that the command line gives for this process.
static COMMAND_LINE_SECRET: OnceLock<Secret> = OnceLock::new();

impl Secret {
    /// Creates the secret from the user's text. White space around the text is ignored.
    pub fn new(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => {
                Err("the secret is empty; write a secret into the file, or omit it, so that `hol live serve` creates one"
                    .to_owned())
            }
            text => Ok(Self(text.as_bytes().to_vec())),
        }
    }

    /// Reads the secret from a file.
    pub fn read(file: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(file);
        let place = file.display();
        let text = text
            .map_err(|problem| format!("{place}: {problem}; write the same secret into it on both hosts"))?;
        Self::new(&text).map_err(|problem| format!("{place}: {problem}"))
    }

    /// Reads the secret from its environment variable; `None` if that is not set.
    pub fn of_environment() -> Result<Option<Self>, String> {
        let Some(text) = env::var_os(SECRET_VARIABLE) else { return Ok(None) };
        let text =
            text.into_string().map_err(|_| format!("{SECRET_VARIABLE} is not UTF-8; use another secret"))?;
        Self::new(&text).map(Some).map_err(|problem| format!("{SECRET_VARIABLE}: {problem}"))
    }

    /// Generates a random secret; also returns its text.
    pub fn random() -> Result<(Self, String), String> {
        let mut octets = [0; 16];
        getrandom::fill(&mut octets).map_err(|problem| {
            format!("cannot get random numbers for a secret from the operating system: {problem}")
        })?;
        let text: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        Ok((Self(text.clone().into_bytes()), text))
    }

    /// Sets the secret of this process for runs with other hosts.
    pub fn set_for_process(self) {
        // The secret is set once, before the first run.
        let _ = COMMAND_LINE_SECRET.set(self);
    }

    /// Returns the secret of this process if one was set, otherwise the secret in the environment.
    pub(crate) fn find() -> Result<Self, String> {
        match COMMAND_LINE_SECRET.get() {
            Some(secret) => Ok(secret.clone()),
            None => Self::of_environment()?.ok_or_else(|| {
                format!("the secret is missing; set --secret-file FILE or {SECRET_VARIABLE} to the secret that `hol live serve` prints on \
                    the other host")
            }),
        }
    }

    /// Derives the secret of a run from the run's unique number.
    pub(crate) fn derive_for_run(&self, run: &[u8; 32]) -> [u8; 32] {
        hmac(&self.0, &[b"headofline live run", run])
    }

    /// Returns the secret as octets.
    pub(crate) fn octets(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_secret_is_refused_and_line_ends_are_removed() {
        for empty in ["", " \n"] {
            assert!(Secret::new(empty).unwrap_err().contains("empty"));
        }
        assert_eq!(Secret::new("abc\n"), Secret::new("abc"));
        let problem = Secret::read(Path::new("/no/such/file")).unwrap_err();
        assert!(problem.contains("/no/such/file") && problem.contains("both hosts"), "{problem}");
        let (one, text) = Secret::random().unwrap();
        assert_eq!((Secret::new(&text).unwrap(), text.len()), (one.clone(), 32));
        assert_ne!(Secret::random().unwrap().0, one);
        assert_eq!(format!("{one:?}"), "Secret");
    }
}
