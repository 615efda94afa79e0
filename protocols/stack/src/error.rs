//! Errors of transport specifications.

/// An error in a specification; the message says how to correct it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// An unknown transport before the colon.
    #[error("unknown transport {0:?}; {hint}", hint = transport(.0))]
    UnknownTransport(String),
    /// An unknown stack.
    #[error("unknown stack {name:?}{hint}")]
    UnknownStack {
        /// The given name.
        name: String,
        /// The stack that may have been meant, or all stacks.
        hint: String,
    },
    /// A stack that does not support the transport.
    #[error("stack {name} has no {transport}; use {known}")]
    ForeignStack {
        /// The given stack.
        name: &'static str,
        /// The transport.
        transport: &'static str,
        /// The stacks that support the transport.
        known: String,
    },
    /// An unknown option.
    #[error("{transport} has no option {key:?}{hint}")]
    UnknownOption {
        /// The transport.
        transport: &'static str,
        /// The given option.
        key: String,
        /// The option that may have been meant, or all options.
        hint: String,
    },
    /// An option without its value.
    #[error("option {0:?} needs a value, as in {0}=…")]
    MissingValue(String),
    /// The same option twice.
    #[error("option {0:?} is given twice")]
    Repeated(String),
    /// An invalid value of an option.
    #[error("{key}={value}: {problem}")]
    BadValue {
        /// The option.
        key: String,
        /// The given value.
        value: String,
        /// The reason why the value is invalid.
        problem: String,
    },
}

/// Returns how to write an unknown transport correctly.
fn transport(name: &str) -> String {
    let small = name.to_lowercase();
    match crate::kind::ProtocolKind::ALL.into_iter().find(|kind| kind.name() == small) {
        Some(kind) => format!("write {:?}", kind.name()),
        None => "known are \"tcp\", \"sctp\", \"quic\", \"mptcp\" and \"udp\", with options as in \"sctp:streams=8\""
            .to_owned(),
    }
}
