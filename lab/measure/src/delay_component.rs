//! The components of a message's delay.

use serde::{Deserialize, Serialize};

/// What a message waits for, in the order of its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DelayComponent {
    /// To be handed to the transport: behind schedule, for a connection, for the server's application.
    Slip,
    /// In the sender's buffer: window, Nagle, pacing.
    Sender,
    /// From the first to the last transmission.
    Recovery,
    /// On the wire, in the queues, and until the receiving application has woken up.
    Network,
    /// Complete at the receiver, for something sent earlier.
    HeadOfLine,
}

impl DelayComponent {
    /// All components.
    pub const ALL: [Self; 5] = [Self::Slip, Self::Sender, Self::Recovery, Self::Network, Self::HeadOfLine];

    /// Returns what the component means for a file that is requested.
    pub const fn label_for_file(self) -> &'static str {
        match self {
            Self::Slip => "before the transport",
            Self::Sender => "waiting at the sender",
            Self::Recovery => "loss recovery",
            Self::Network => "network",
            Self::HeadOfLine => "head-of-line wait",
        }
    }

    /// Returns the name of the component, one word, as in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slip => "slip",
            Self::Sender => "sender",
            Self::Recovery => "recovery",
            Self::Network => "network",
            Self::HeadOfLine => "head-of-line",
        }
    }
}
