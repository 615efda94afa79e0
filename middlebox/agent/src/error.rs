//! Errors of a session.

use std::io;

use hol_base::Duration;
use hol_simco::{AgentError, ParseError, Refusal};

use crate::Server;

/// Why a session cannot be opened, a request was not answered, or it was refused. After [`Refused`](Self::Refused) the
/// session continues; after any other error it is unusable.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The server's name cannot be resolved.
    #[error("{host}: {source}; check the name of the server")]
    UnknownHost {
        /// The name that cannot be resolved.
        host: String,
        /// The error of the resolver.
        source: io::Error,
    },
    /// No connection to the server can be opened.
    #[error("cannot connect to {server}: {source}; check that the middlebox runs and listens there")]
    Connect {
        /// The server, as the user named it.
        server: Box<Server>,
        /// The error of the last attempt.
        source: io::Error,
    },
    /// The TLS handshake failed: one end rejected the identity of the other.
    #[error("TLS: {0}; {advice}", advice = advice(.0))]
    Tls(rustls::Error),
    /// The kernel lacks SCTP.
    #[error(
        "this kernel has no SCTP; load its module (modprobe sctp), or use SCTP over UDP (--over sctp-udp) or TCP"
    )]
    NoSctp,
    /// The session failed: the middlebox refused it, is not authentic, or violated the protocol.
    #[error(transparent)]
    Protocol(#[from] AgentError),
    /// The middlebox refused this one request.
    #[error("the middlebox refused the request: {0}")]
    Refused(Refusal),
    /// The middlebox could not parse a message of the agent. RFC 4540 section 5.1.1.
    #[error(
        "the middlebox could not parse our message (badly formed, RFC 4540 section 5.1.1); check that it supports SIMCO 3.0"
    )]
    BadlyFormed,
    /// The middlebox ended the session. RFC 4540 section 7.5.
    #[error("the middlebox has ended the session; rules stay in force until their lifetimes end")]
    Ended,
    /// The connection failed.
    #[error("the connection to the middlebox is lost: {0}; rules stay in force until their lifetimes end")]
    Lost(io::Error),
    /// The middlebox did not answer within this timeout.
    #[error("no answer from the middlebox within {0}; increase the timeout, or check the middlebox")]
    Timeout(Duration),
}

impl From<io::Error> for SessionError {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(problem) => Self::Tls(problem.clone()),
            None => Self::Lost(error),
        }
    }
}

fn advice(problem: &rustls::Error) -> &'static str {
    match problem {
        rustls::Error::InvalidCertificate(_) => {
            "check that the certificate names this middlebox, and that the file of authorities contains the authority that signed it"
        }
        rustls::Error::AlertReceived(_) => {
            "the middlebox sent this alert; check whether it requires a certificate, and trusts the authority that signed yours"
        }
        _ => "check that the middlebox listens for TLS at this address",
    }
}

impl From<ParseError> for SessionError {
    fn from(error: ParseError) -> Self {
        Self::Protocol(error.into())
    }
}
