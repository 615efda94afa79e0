//! Exchanges between two ends of an association, of which one is ours and the other an independent
//! implementation: one table for all of them.

#![allow(dead_code, unused_imports, reason = "each peer uses what it needs of it")]

mod program;
mod talker;
mod wire;

use bytes::Bytes;
use hol_base::{ByteCount, Duration, Seed};
use hol_sctp::{Config, Endpoint};
use hol_wire::Address;

pub use program::make;
pub use talker::{Done, Talker};
pub use wire::every_talk_goes_well;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// How an association ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Orderly shutdown.
    Closed,
    /// Reset by the peer.
    Reset,
    /// Aborted by this end.
    Aborted,
}

/// Which end terminates the association when everything is done, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    ClientCloses,
    ClientAborts,
    ServerCloses,
    ServerAborts,
}

/// The messages that the client sends, and their handling.
#[derive(Debug, Clone, Copy)]
pub struct Talk {
    pub name: &'static str,
    pub messages: u32,
    pub size: usize,
    pub streams: u16,
    pub unordered: bool,
    /// Maximum number of retransmissions, after which a message is abandoned, except for the last one on each stream. RFC 7496 section 4.
    pub retransmissions: Option<u32>,
    /// Whether the server returns every message.
    pub echo: bool,
    /// Whenever this many messages have returned, the client resets its streams, and then the server its own,
    /// as when data channels are closed. RFC 6525 section 5.1.2; RFC 8831 section 6.7.
    pub resets: Option<u32>,
    pub end: End,
}

/// The extensions that both ends offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// I-DATA. RFC 8260 section 2.2.1.
    pub interleaving: bool,
    /// A checksum of zero. RFC 9653 section 5.1.
    pub zero_checksum: bool,
}

const PLAIN: Talk = Talk {
    name: "messages of 100 octets on 8 streams, and back",
    messages: 400,
    size: 100,
    streams: 8,
    unordered: false,
    retransmissions: None,
    echo: true,
    resets: None,
    end: End::ClientCloses,
};

pub const TALKS: [Talk; 9] = [
    PLAIN,
    Talk { name: "messages of 200,000 octets, and back", messages: 10, size: 200_000, streams: 2, ..PLAIN },
    Talk { name: "unordered ones, and back", size: 500, unordered: true, ..PLAIN },
    Talk { name: "as fast as it goes", messages: 2000, size: 1000, streams: 4, echo: false, ..PLAIN },
    Talk {
        name: "messages that are given up",
        messages: 2000,
        size: 200,
        retransmissions: Some(0),
        echo: false,
        ..PLAIN
    },
    Talk { name: "streams that begin anew", messages: 200, resets: Some(40), ..PLAIN },
    Talk { name: "the client aborts", messages: 50, end: End::ClientAborts, ..PLAIN },
    Talk { name: "the server closes", messages: 50, echo: false, end: End::ServerCloses, ..PLAIN },
    Talk { name: "the server aborts", messages: 50, echo: false, end: End::ServerAborts, ..PLAIN },
];

/// The shares of lost packets, in both directions.
pub const LOSSES: [f64; 3] = [0.0, 0.01, 0.05];

/// The roles of our end.
pub const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// The address of both ends.
pub const HERE: Address = hol_wire::ipv4(127, 0, 0, 1);

impl Side {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    pub const fn port(self) -> u16 {
        match self {
            Self::Client => 5001,
            Self::Server => 5000,
        }
    }
}

impl End {
    pub const fn by(self) -> Side {
        match self {
            Self::ClientCloses | Self::ClientAborts => Side::Client,
            Self::ServerCloses | Self::ServerAborts => Side::Server,
        }
    }

    pub const fn is_abort(self) -> bool {
        matches!(self, Self::ClientAborts | Self::ServerAborts)
    }
}

impl Talk {
    /// Returns whether an end has received everything unchanged, and knows how the association ended.
    pub fn went_well(&self, side: Side, done: &Done) -> bool {
        let due = match side {
            Side::Client if !self.echo => 0..=0,
            _ if self.retransmissions.is_some() => self.messages / 2..=self.messages,
            _ => self.messages..=self.messages,
        };
        let ended = match (self.end.is_abort(), self.end.by() == side) {
            (false, _) => Ended::Closed,
            (true, true) => Ended::Aborted,
            (true, false) => Ended::Reset,
        };
        // No reset precedes the first message or follows the last one.
        let resets = self.resets.map_or(0, |every| (self.messages - 1) / every * u32::from(self.streams));
        let has_reset = done.resets == [resets; 2];
        has_reset && due.contains(&done.got) && done.wrong == 0 && done.ended == Some(ended)
    }
}

/// Returns our end: the endpoint of the model world, with the behaviour of Linux except for long timers and
/// features that others do not support: fragments are numbered as in RFC 8260, and abandoned messages leave
/// no hole.
pub fn own(side: Side, talk: &Talk, terms: Terms, seed: Seed) -> Endpoint {
    let config = Config {
        streams: talk.streams,
        mtu: ByteCount(1400),
        receive_buffer: ByteCount(1_000_000),
        send_buffer: ByteCount(1_000_000),
        rto_initial: Duration::from_millis(100),
        rto_min: Duration::from_millis(50),
        rto_max: Duration::from_secs(1),
        wakeup: Duration::ZERO,
        interleaving: terms.interleaving,
        zero_checksum: terms.zero_checksum,
        second_fsn_is_zero: false,
        sack_checks_limits_first: false,
        reconfig: talk.resets.is_some(),
        ..Config::linux_6_12()
    };
    let (port, remote, rng) = (side.port(), side.other().port(), seed.derive("endpoint").rng());
    match side {
        Side::Client => Endpoint::connect(config, vec![HERE], port, vec![HERE], remote, rng),
        Side::Server => Endpoint::listen(config, vec![HERE], port, rng),
    }
}

/// Returns a message that starts with its number, from which all other octets follow.
fn filled(number: u32, size: usize) -> Bytes {
    let octet = |at: usize| (number.wrapping_mul(31).wrapping_add(at as u32 * 7)) as u8;
    number.to_be_bytes().into_iter().chain((4..size).map(octet)).collect()
}

/// Returns the number of a message; `None` if the message is damaged.
fn number_of(payload: &Bytes, size: usize) -> Option<u32> {
    let number = payload.first_chunk().map(|octets| u32::from_be_bytes(*octets))?;
    (filled(number, size) == *payload).then_some(number)
}
