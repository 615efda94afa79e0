//! The event sources of a run.

use hol_scenario::Side;
use hol_workloads::ConnectionId;

/// A source that may become ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    Alarm,
    /// Another thread ended the run.
    Stop,
    /// An application on another thread has work for this run.
    WakeSignal,
    /// A report of the end on another host has arrived.
    PeerReport,
    /// Addresses of the client were added or removed.
    HostAddresses,
    /// The timer for sampling the connections.
    Tick,
    /// The server's listening socket.
    Listener,
    /// The socket of a connection of an end.
    Connection(Side, ConnectionId),
}

impl From<Token> for u64 {
    fn from(token: Token) -> Self {
        match token {
            Token::Alarm => 0,
            Token::Listener => 1,
            Token::Stop => 2,
            Token::WakeSignal => 3,
            Token::HostAddresses => 4,
            Token::Tick => 5,
            Token::PeerReport => 6,
            Token::Connection(Side::Client, ConnectionId(number)) => 8 + 2 * Self::from(number),
            Token::Connection(Side::Server, ConnectionId(number)) => 9 + 2 * Self::from(number),
        }
    }
}

impl From<u64> for Token {
    fn from(number: u64) -> Self {
        match number {
            0 => Self::Alarm,
            1 => Self::Listener,
            2 => Self::Stop,
            3 => Self::WakeSignal,
            4 => Self::HostAddresses,
            5 => Self::Tick,
            6 => Self::PeerReport,
            other => {
                let end = if other.is_multiple_of(2) { Side::Client } else { Side::Server };
                Self::Connection(end, ConnectionId(((other - 8) / 2) as u32))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_encoding() {
        let connections = [0, 1, u32::MAX]
            .map(ConnectionId)
            .into_iter()
            .flat_map(|number| [Side::Client, Side::Server].map(|end| Token::Connection(end, number)));
        let others = [
            Token::Alarm,
            Token::Listener,
            Token::Stop,
            Token::WakeSignal,
            Token::HostAddresses,
            Token::Tick,
            Token::PeerReport,
        ];
        for token in connections.chain(others) {
            assert_eq!(Token::from(u64::from(token)), token);
        }
    }
}
