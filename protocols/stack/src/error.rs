//! What can be wrong with a specification.

/// A specification that could not be read; the message names the cure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The word before the colon is no transport.
    #[error("unknown transport {0:?}; {hint}", hint = transport(.0))]
    UnknownTransport(String),
    /// No such stack.
    #[error("unknown stack {name:?}; known are {known}")]
    UnknownStack {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The stack has no endpoints of the transport.
    #[error("stack {name} has no {transport}; take {known}")]
    ForeignStack {
        /// What was asked for.
        name: &'static str,
        /// The transport.
        transport: &'static str,
        /// The stacks that have it.
        known: String,
    },
    /// No such option.
    #[error("{transport} has no option {key:?}{hint}")]
    UnknownOption {
        /// The transport.
        transport: &'static str,
        /// What was asked for.
        key: String,
        /// What may have been meant, or all there is.
        hint: String,
    },
    /// An option without a value, where one is needed.
    #[error("option {0:?} needs a value, as in {0}=…")]
    MissingValue(String),
    /// The same option twice.
    #[error("option {0:?} is given twice")]
    Repeated(String),
    /// A value that the option does not take.
    #[error("{key}={value}: {problem}")]
    BadValue {
        /// The option.
        key: String,
        /// Its value as given.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Says how a transport is written that is none as it stands.
fn transport(name: &str) -> String {
    let small = name.to_lowercase();
    match crate::kind::Kind::ALL.into_iter().find(|kind| kind.name() == small) {
        Some(kind) => format!("write {:?}", kind.name()),
        None => "known are \"tcp\", \"sctp\", \"quic\", \"mptcp\" and \"udp\", with options as in \"sctp:streams=8\""
            .to_owned(),
    }
}
