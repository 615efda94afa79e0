//! The event sources of the event loop.

use hol_simco::SessionId;

/// A source of events that the poller reports as ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    /// The signal that stops the daemon.
    Stop,
    /// The signal to reload the policy and the secrets.
    Reload,
    /// A listening socket, by its index.
    Listener(u32),
    /// A socket for port mappings, by its index.
    PortMapper(u32),
    /// A queue of a port of SCTP over UDP, by its index.
    SctpQueue(u32),
    Connection(SessionId),
}

const LISTENERS: u64 = 1 << 32;
const STOP: u64 = 2 << 32;
const RELOAD: u64 = 3 << 32;
const PORT_MAPPERS: u64 = 4 << 32;
const SCTP_QUEUES: u64 = 5 << 32;

impl From<Token> for u64 {
    fn from(token: Token) -> Self {
        match token {
            Token::Connection(id) => id.0.into(),
            Token::Listener(number) => LISTENERS + Self::from(number),
            Token::PortMapper(number) => PORT_MAPPERS + Self::from(number),
            Token::SctpQueue(number) => SCTP_QUEUES + Self::from(number),
            Token::Stop => STOP,
            Token::Reload => RELOAD,
        }
    }
}

impl From<u64> for Token {
    fn from(number: u64) -> Self {
        match number {
            STOP => Self::Stop,
            RELOAD => Self::Reload,
            queue @ SCTP_QUEUES.. => Self::SctpQueue(queue as u32),
            mapper @ PORT_MAPPERS.. => Self::PortMapper(mapper as u32),
            listener @ LISTENERS.. => Self::Listener(listener as u32),
            connection => Self::Connection(SessionId(connection as u32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_conversion_to_numbers() {
        let numbers = [0, 1, u32::MAX];
        let connections = numbers.map(|number| Token::Connection(SessionId(number)));
        let sockets = [Token::Listener, Token::PortMapper, Token::SctpQueue];
        let sockets = sockets.into_iter().flat_map(|token| numbers.map(token));
        for token in [Token::Stop, Token::Reload].into_iter().chain(sockets).chain(connections) {
            assert_eq!(Token::from(u64::from(token)), token);
        }
    }
}
