//! The components of a message's delay.

use serde::{Deserialize, Serialize};

/// A part of a message's delay, by its cause; the parts are in the order in which they occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DelayComponent {
    /// Time before the message is passed to the transport: a late schedule, connection setup, and the server's
    /// application.
    Slip,
    /// Time in the sender's buffer, where the message waits for the window, for Nagle's algorithm or for pacing.
    Sender,
    /// Time from the first transmission of the message's last octet until the transmission that completed the
    /// message: the time for loss detection and retransmission.
    Recovery,
    /// Time on the wire and in queues, and until the receiving application has woken up.
    Network,
    /// Time during which the message was complete at the receiver, but data sent earlier were missing.
    HeadOfLine,
}

impl DelayComponent {
    /// All components of the delay, in the order in which they occur.
    pub const ALL: [Self; 5] = [Self::Slip, Self::Sender, Self::Recovery, Self::Network, Self::HeadOfLine];

    /// Returns the label of the component in a waterfall, which shows the files of a page.
    pub const fn waterfall_label(self) -> &'static str {
        match self {
            Self::Slip => "before the transport",
            Self::Sender => "waiting at the sender",
            Self::Recovery => "loss recovery",
            Self::Network => "network",
            Self::HeadOfLine => "head-of-line wait",
        }
    }

    /// Returns the name of the component as one word, for use in files.
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
