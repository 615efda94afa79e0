//! Authentication by challenges and tokens, RFC 4540 sections 4.3.2 and 7.2.
//!
//! The RFC defines where challenges and tokens are sent, and leaves their content open. These traits define the
//! content; a [shared secret](crate::SharedSecrets) is one implementation.

use std::fmt;

use crate::{Challenge, Token};

/// The challenges of one session establishment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChallengePair {
    /// The agent's challenge, in the SE request; `None` if the agent does not authenticate the middlebox.
    pub agent_challenge: Option<Challenge>,
    /// The middlebox's challenge, in the SA reply; `None` if the agent need not authenticate itself.
    pub middlebox_challenge: Option<Challenge>,
}

/// Authenticates a middlebox and its agents, on the side of the middlebox.
pub trait Authentication: fmt::Debug + Send {
    /// Returns a challenge that was never used before.
    fn challenge(&mut self) -> Challenge;

    /// Answers the agent's challenge; returns the empty token if that is impossible.
    fn prove(&self, exchange: &ChallengePair) -> Token;

    /// Returns the name of the agent that answered our challenge with this token; `None` if unknown.
    fn recognize(&self, exchange: &ChallengePair, token: &Token) -> Option<String>;
}

/// Authenticates an agent and its middlebox, on the side of the agent.
pub trait Credentials: fmt::Debug + Send {
    /// Returns a challenge that was never used before; `None` if the agent does not authenticate the
    /// middlebox.
    fn challenge(&mut self) -> Option<Challenge>;

    /// Answers the middlebox's challenge; returns the empty token if that is impossible.
    fn prove(&self, exchange: &ChallengePair) -> Token;

    /// Returns true if the token answers our challenge.
    fn recognizes(&self, exchange: &ChallengePair, token: &Token) -> bool;
}

/// No authentication by SIMCO: either the layers below authenticate agents and middleboxes, or nobody does.
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
