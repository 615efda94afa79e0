//! Errors of transport specifications.

/// An error in a transport specification; the message says how to correct it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The name before the colon is not a known transport.
    #[error("unknown transport {0:?}; {hint}", hint = transport(.0))]
    UnknownTransport(String),
    /// The stack is unknown.
    #[error("unknown stack {name:?}{hint}")]
    UnknownStack {
        /// The stack that was given.
        name: String,
        /// The name of the stack that was probably meant, or the names of all stacks.
        hint: String,
    },
    /// The stack does not support the transport.
    #[error("stack {name} has no {transport}; use {known}")]
    ForeignStack {
        /// The stack that was given.
        name: &'static str,
        /// Name of the transport.
        transport: &'static str,
        /// The names of the stacks that support the transport.
        known: String,
    },
    /// The transport has no such option.
    #[error("{transport} has no option {key:?}{hint}")]
    UnknownOption {
        /// Name of the transport.
        transport: &'static str,
        /// The option that was given.
        key: String,
        /// The name of the option that was probably meant, or the names of all options.
        hint: String,
    },
    /// An option lacks its value.
    #[error("option {0:?} needs a value, as in {0}=…")]
    MissingValue(String),
    /// An option is given twice.
    #[error("option {0:?} is given twice")]
    Repeated(String),
    /// The value of an option is invalid.
    #[error("{key}={value}: {problem}")]
    BadValue {
        /// The name of the option.
        key: String,
        /// The value that was given.
        value: String,
        /// Why the value is invalid.
        problem: String,
    },
}

/// Suggests the correct name for an unknown transport.
fn transport(name: &str) -> String {
    let small = name.to_lowercase();
    match crate::kind::ProtocolKind::ALL.into_iter().find(|kind| kind.name() == small) {
        Some(kind) => format!("write {:?}", kind.name()),
        None => "known are \"tcp\", \"sctp\", \"quic\", \"mptcp\" and \"udp\", with options as in \"sctp:streams=8\""
            .to_owned(),
    }
}
