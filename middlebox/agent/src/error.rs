//! Errors of a session.

use std::io;

use hol_base::Duration;
use hol_simco::{AgentError, ParseError, Refusal};

use crate::Server;

/// Why there is no session, no answer, or a refusal. After [`Refused`](Self::Refused) the session continues,
/// after anything else it is unusable.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The server's name is unknown.
    #[error("{host}: {source}; check the name of the server")]
    UnknownHost {
        /// The name.
        host: String,
        /// The system's error.
        source: io::Error,
    },
    /// Nobody answers there.
    #[error("cannot connect to {server}: {source}; does the middlebox run there, and listen?")]
    Connect {
        /// Its address.
        server: Box<Server>,
        /// The system's error.
        source: io::Error,
    },
    /// TLS rejects the identity of the other side, or the other side rejects ours.
    #[error("TLS: {0}; {cure}", cure = cure(.0))]
    Tls(rustls::Error),
    /// The kernel lacks SCTP.
    #[error("this kernel has no SCTP; load its module (modprobe sctp), or use TCP")]
    NoSctp,
    /// A protocol error: the session is refused, or the middlebox is not authentic.
    #[error(transparent)]
    Protocol(#[from] AgentError),
    /// The middlebox refuses one request.
    #[error("the middlebox refuses: {0}")]
    Refused(Refusal),
    /// The middlebox could not parse our message. RFC 4540 section 5.1.1.
    #[error("the middlebox says that it got a badly formed message; is that a SIMCO 3.0 middlebox?")]
    BadlyFormed,
    /// The middlebox ended the session. RFC 4540 section 7.5.
    #[error("the middlebox has ended the session; rules live on until their lifetimes end")]
    Ended,
    /// The connection broke.
    #[error("the connection to the middlebox is lost: {0}; rules live on until their lifetimes end")]
    Lost(io::Error),
    /// No answer in time.
    #[error("the middlebox has not answered for {0}; allow more time, or look after it")]
    Silent(Duration),
}

impl From<io::Error> for SessionError {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(problem) => Self::Tls(problem.clone()),
            None => Self::Lost(error),
        }
    }
}

fn cure(problem: &rustls::Error) -> &'static str {
    match problem {
        rustls::Error::InvalidCertificate(_) => {
            "is that the middlebox, by the name in its certificate, and does the file of authorities have the one that has certified it?"
        }
        rustls::Error::AlertReceived(_) => {
            "the middlebox says so: does it want a certificate, and know who has certified this one?"
        }
        _ => "does the middlebox listen for TLS there?",
    }
}

impl From<ParseError> for SessionError {
    fn from(error: ParseError) -> Self {
        Self::Protocol(error.into())
    }
}
