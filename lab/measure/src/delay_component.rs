//! The components of a message's delay.

use serde::{Deserialize, Serialize};

/// The causes for which a message waits, in the order in which they occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DelayComponent {
    /// Time before the message is passed to the transport: schedule slip, connection setup, the server's application.
    Slip,
    /// Time in the sender's buffer: waiting for the window, for Nagle's algorithm or for pacing.
    Sender,
    /// Time from the first transmission of the message's last octet to the transmission that completed the message:
    /// loss detection and retransmission.
    Recovery,
    /// Time on the wire, in queues, and until the receiving application has woken up.
    Network,
    /// Time during which the message was complete at the receiver, but data sent earlier were missing.
    HeadOfLine,
}

impl DelayComponent {
    /// All components, in the order in which they occur.
    pub const ALL: [Self; 5] = [Self::Slip, Self::Sender, Self::Recovery, Self::Network, Self::HeadOfLine];

    /// Returns the label of the component for a file of a page, as in a waterfall.
    pub const fn waterfall_label(self) -> &'static str {
        match self {
            Self::Slip => "before the transport",
            Self::Sender => "waiting at the sender",
            Self::Recovery => "loss recovery",
            Self::Network => "network",
            Self::HeadOfLine => "head-of-line wait",
        }
    }

    /// Returns the name of the component as one word, as in files.
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
