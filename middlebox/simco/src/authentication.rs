//! Authentication by challenges and tokens, RFC 4540 sections 4.3.2 and 7.2.
//!
//! The RFC defines where challenges and tokens are sent, and leaves their content open. These traits define the
//! content; a [shared secret](crate::SharedSecrets) is one implementation.

use std::fmt;

use crate::{Challenge, Token};

/// The challenges that are exchanged when a session is established.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChallengePair {
    /// The agent's challenge in the SE request; `None` if the agent does not authenticate the middlebox.
    pub agent_challenge: Option<Challenge>,
    /// The middlebox's challenge in the SA reply; `None` if the agent need not authenticate itself.
    pub middlebox_challenge: Option<Challenge>,
}

/// The authentication in a middlebox: it authenticates agents, and proves its own identity.
pub trait Authentication: fmt::Debug + Send {
    /// Returns a challenge that has never been used before.
    fn challenge(&mut self) -> Challenge;

    /// Returns the token that answers the agent's challenge; empty if the middlebox cannot authenticate itself.
    fn prove(&self, exchange: &ChallengePair) -> Token;

    /// Returns the name of the agent that answered the middlebox's challenge with this token; `None` if no known agent
    /// would answer so.
    fn recognize(&self, exchange: &ChallengePair, token: &Token) -> Option<String>;
}

/// The authentication in an agent: it authenticates the middlebox, and proves its own identity.
pub trait Credentials: fmt::Debug + Send {
    /// Returns a challenge that has never been used before; `None` if the agent does not authenticate the middlebox.
    fn challenge(&mut self) -> Option<Challenge>;

    /// Returns the token that answers the middlebox's challenge; empty if the agent cannot authenticate itself.
    fn prove(&self, exchange: &ChallengePair) -> Token;

    /// Returns true if the token answers the agent's challenge correctly.
    fn recognizes(&self, exchange: &ChallengePair, token: &Token) -> bool;
}

/// No authentication with SIMCO: either lower layers authenticate agents and middleboxes, or nothing does.
#[derive(Debug, Clone, Copy)]
pub struct Unauthenticated;

impl Authentication for Unauthenticated {
    fn challenge(&mut self) -> Challenge {
        Challenge::new(Vec::new())
    }

    fn prove(&self, _: &ChallengePair) -> Token {
        Token::empty()
    }

    fn recognize(&self, _: &ChallengePair, _: &Token) -> Option<String> {
        None
    }
}

impl Credentials for Unauthenticated {
    fn challenge(&mut self) -> Option<Challenge> {
        None
    }

    fn prove(&self, _: &ChallengePair) -> Token {
        Token::empty()
    }

    fn recognizes(&self, _: &ChallengePair, _: &Token) -> bool {
        false
    }
}
