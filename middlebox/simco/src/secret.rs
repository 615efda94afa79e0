//! Authentication by a secret that agent and middlebox share: HMAC-SHA-256 over both challenges, RFC 2104.
//!
//! An agent's challenge is a nonce and the agent's name; a middlebox's is a nonce. A token is a MAC; the
//! agent's is followed by its name:
//!
//! ```text
//! MAC(secret, role | length, agent's challenge | length, middlebox's challenge | name)
//! ```
//!
//! The role prevents reflection of a token, and both challenges bind it to this session. The exchange protects
//! only the start of a session; the rest needs TLS or IPsec (RFC 4540 section 9).

use std::collections::BTreeMap;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use hol_base::rewrite_parse_error;
use sha2::Sha256;

use crate::{Authentication, Challenge, ChallengePair, Credentials, Owner, Token};

/// Length of a nonce and of a MAC in octets.
const NONCE_OCTETS: usize = 32;
const MAC_OCTETS: usize = 32;

/// A source of nonces, which are 32 unpredictable octets each and never repeat.
pub type Nonces = Box<dyn FnMut() -> [u8; NONCE_OCTETS] + Send>;

/// A secret shared by an agent and its middlebox.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

/// The middlebox's copy of the secrets of all agents.
pub struct SharedSecrets {
    secrets: BTreeMap<String, Secret>,
    /// A secret against which the MACs of unknown agents are checked, so that an attacker cannot learn which
    /// agents exist.
    decoy: Secret,
    nonces: Nonces,
}

/// The agent's copy of its secret.
pub struct SharedSecret {
    name: String,
    secret: Secret,
    nonces: Nonces,
}

/// Why a text contains no valid secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The file is not a TOML table of strings.
    #[error("line {line}: {message}; write one line for each agent: name = \"secret\"")]
    Syntax {
        /// Line number, from 1.
        line: usize,
        /// Description of the error, without the secret.
        message: String,
    },
    /// The secret is so short that it can be guessed.
    #[error("the secret of `{name}` has {octets} octets; use {min} or more random ones", min = Secret::MIN_LENGTH)]
    TooShort {
        /// Name of the agent.
        name: String,
        /// Length of the secret in octets.
        octets: usize,
    },
    /// The file contains no secret of the agent with this name.
    #[error("no secret for `{0}`; add a line {0} = \"…\", as in the middlebox's file")]
    Missing(String),
    /// This name of an agent is empty, or too long for an owner attribute.
    #[error("the agent's name `{0}` is empty or has more than {limit} octets", limit = Owner::LIMIT)]
    Name(String),
}

impl Secret {
    /// Minimum number of octets of a secret.
    pub const MIN_LENGTH: usize = 16;

    /// Creates the secret of the agent with this name.
    pub fn new(name: &str, octets: &[u8]) -> Result<Self, SecretError> {
        if name.is_empty() || name.len() > Owner::LIMIT {
            Err(SecretError::Name(name.to_owned()))
        } else if octets.len() < Self::MIN_LENGTH {
            Err(SecretError::TooShort { name: name.to_owned(), octets: octets.len() })
        } else {
            Ok(Self(octets.to_vec()))
        }
    }

    fn mac(&self, role: Role, exchange: &ChallengePair, name: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of every length");
        mac.update(role.label());
        for challenge in [&exchange.agent_challenge, &exchange.middlebox_challenge] {
            // A challenge has at most 4096 octets, so this length means that there is no challenge.
            let length = challenge.as_ref().map_or(u16::MAX, |challenge| challenge.octets().len() as u16);
            mac.update(&length.to_be_bytes());
            mac.update(challenge.as_ref().map_or(&[], Challenge::octets));
        }
        mac.update(name.as_bytes());
        mac
    }

    fn token(&self, role: Role, exchange: &ChallengePair, name: &str) -> Vec<u8> {
        self.mac(role, exchange, name).finalize().into_bytes().to_vec()
    }

    /// Checks a MAC in a time that does not depend on whether the MAC is right.
    fn verify(&self, role: Role, exchange: &ChallengePair, name: &str, mac: &[u8]) -> bool {
        self.mac(role, exchange, name).verify_slice(mac).is_ok()
    }
}

impl SecretError {
    /// Describes a syntax error without the text of the line, which may contain a secret. The parser's own
    /// message would show the text.
    fn syntax(text: &str, error: &toml::de::Error) -> Self {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        Self::Syntax { line: 1 + before.matches('\n').count(), message: rewrite_parse_error(error.message()) }
    }
}

/// A debug output without the secret, which must not be logged.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The sender of a token.
#[derive(Clone, Copy)]
enum Role {
    Agent,
    Middlebox,
}

impl Role {
    fn label(self) -> &'static [u8] {
        match self {
            Self::Agent => b"SIMCO agent",
            Self::Middlebox => b"SIMCO middlebox",
        }
    }
}

/// Parses secrets, one line per agent, such as `call-server = "…"`.
fn parse(text: &str) -> Result<BTreeMap<String, Secret>, SecretError> {
    let table: BTreeMap<String, String> =
        toml::from_str(text).map_err(|error| SecretError::syntax(text, &error))?;
    let secrets = table.into_iter().map(|(name, text)| {
        let secret = Secret::new(&name, text.as_bytes())?;
        Ok((name, secret))
    });
    secrets.collect()
}

impl SharedSecrets {
    /// Parses a file of secrets, one line per agent, such as `call-server = "…"`.
    pub fn parse(text: &str, mut nonces: Nonces) -> Result<Self, SecretError> {
        Ok(Self { secrets: parse(text)?, decoy: Secret(nonces().to_vec()), nonces })
    }

    /// Returns the agents that have a secret.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.secrets.keys().map(String::as_str)
    }

    /// Returns true if this agent has a secret.
    pub fn knows(&self, name: &str) -> bool {
        self.secrets.contains_key(name)
    }

    fn secret(&self, name: &str) -> &Secret {
        self.secrets.get(name).unwrap_or(&self.decoy)
    }
}

impl fmt::Debug for SharedSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSecrets").field("secrets", &self.secrets).finish_non_exhaustive()
    }
}

impl Authentication for SharedSecrets {
    fn challenge(&mut self) -> Challenge {
        Challenge::new((self.nonces)().to_vec())
    }

    fn prove(&self, exchange: &ChallengePair) -> Token {
        let challenged_by = |challenge: &Challenge| {
            let (_nonce, name) = challenge.octets().split_at_checked(NONCE_OCTETS)?;
            String::from_utf8(name.to_vec()).ok()
        };
        match exchange.agent_challenge.as_ref().and_then(challenged_by) {
            Some(name) => Token::new(self.secret(&name).token(Role::Middlebox, exchange, &name)),
            None => Token::empty(),
        }
    }

    fn recognize(&self, exchange: &ChallengePair, token: &Token) -> Option<String> {
        let (mac, name) = token.octets().split_at_checked(MAC_OCTETS)?;
        let name = std::str::from_utf8(name).ok()?;
        let is_right = self.secret(name).verify(Role::Agent, exchange, name, mac);
        (is_right && self.secrets.contains_key(name)).then(|| name.to_owned())
    }
}

impl SharedSecret {
    /// Creates the credentials of the agent with this name.
    pub fn new(name: &str, secret: Secret, nonces: Nonces) -> Self {
        Self { name: name.to_owned(), secret, nonces }
    }

    /// Parses the secret of the agent `name` in the middlebox's file of secrets, or in a part of that file.
    pub fn parse(name: &str, text: &str, nonces: Nonces) -> Result<Self, SecretError> {
        let secret = parse(text)?.remove(name).ok_or_else(|| SecretError::Missing(name.to_owned()))?;
        Ok(Self::new(name, secret, nonces))
    }
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSecret").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Credentials for SharedSecret {
    fn challenge(&mut self) -> Option<Challenge> {
        Some(Challenge::new([&(self.nonces)()[..], self.name.as_bytes()].concat()))
    }

    fn prove(&self, exchange: &ChallengePair) -> Token {
        let mac = self.secret.token(Role::Agent, exchange, &self.name);
        Token::new([&mac[..], self.name.as_bytes()].concat())
    }

    fn recognizes(&self, exchange: &ChallengePair, token: &Token) -> bool {
        self.secret.verify(Role::Middlebox, exchange, &self.name, token.octets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "call-server = '0123456789abcdef'\nbackup = 'fedcba9876543210'";

    /// Returns nonces that differ, which suffices for a test.
    fn nonces(mut next: u8) -> Nonces {
        Box::new(move || {
            next += 1;
            [next; NONCE_OCTETS]
        })
    }

    fn agent(name: &str, secret: &str) -> SharedSecret {
        SharedSecret::new(name, Secret::new(name, secret.as_bytes()).unwrap(), nonces(0))
    }

    fn exchange(agent: &mut SharedSecret, middlebox: &mut SharedSecrets) -> ChallengePair {
        let middlebox_challenge = Some(Authentication::challenge(middlebox));
        ChallengePair { agent_challenge: Credentials::challenge(agent), middlebox_challenge }
    }

    /// RFC 4540 section 7.2: both sides may request authentication.
    #[test]
    fn agent_and_middlebox_recognize_each_other() {
        let mut middlebox = SharedSecrets::parse(FILE, nonces(100)).unwrap();
        let mut agent = agent("backup", "fedcba9876543210");
        let exchange = exchange(&mut agent, &mut middlebox);
        assert!(agent.recognizes(&exchange, &Authentication::prove(&middlebox, &exchange)));
        let token = Credentials::prove(&agent, &exchange);
        assert_eq!(middlebox.recognize(&exchange, &token).as_deref(), Some("backup"));
    }

    #[test]
    fn a_token_is_invalid_in_other_exchanges() {
        let mut middlebox = SharedSecrets::parse(FILE, nonces(100)).unwrap();
        let mut agent = agent("backup", "fedcba9876543210");
        let exchange = exchange(&mut agent, &mut middlebox);
        let token = Credentials::prove(&agent, &exchange);
        let later = ChallengePair {
            middlebox_challenge: Some(Authentication::challenge(&mut middlebox)),
            ..exchange.clone()
        };
        assert_eq!(middlebox.recognize(&later, &token), None, "another session");
        let mut forged = token.octets().to_vec();
        forged[0] ^= 1;
        assert_eq!(middlebox.recognize(&exchange, &Token::new(forged)), None, "a changed MAC");
        let renamed = [&token.octets()[..MAC_OCTETS], b"call-server"].concat();
        assert_eq!(middlebox.recognize(&exchange, &Token::new(renamed)), None, "another agent");
        let reflected = Authentication::prove(&middlebox, &exchange);
        let reflected = [reflected.octets(), b"backup"].concat();
        assert_eq!(middlebox.recognize(&exchange, &Token::new(reflected)), None, "the middlebox's own");
        assert_eq!(middlebox.recognize(&exchange, &Token::empty()), None);
    }

    /// RFC 4540 section 7.2: an empty token means "cannot authenticate", but unauthenticated peers must not
    /// learn which agents exist.
    #[test]
    fn an_unknown_agent_gets_an_invalid_token() {
        let mut middlebox = SharedSecrets::parse(FILE, nonces(100)).unwrap();
        let mut stranger = agent("stranger", "0123456789abcdef");
        let exchange = exchange(&mut stranger, &mut middlebox);
        let token = Authentication::prove(&middlebox, &exchange);
        assert_eq!(token.octets().len(), MAC_OCTETS);
        assert!(!stranger.recognizes(&exchange, &token));
        assert_eq!(middlebox.recognize(&exchange, &Credentials::prove(&stranger, &exchange)), None);
        let foreign = ChallengePair {
            agent_challenge: Some(Challenge::new("not of this scheme")),
            middlebox_challenge: None,
        };
        assert_eq!(Authentication::prove(&middlebox, &foreign), Token::empty());
    }

    /// RFC 4231, test case 2, through the same crates.
    #[test]
    fn the_mac_matches_the_test_vector_of_the_rfc() {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        mac.update(b"what do ya want for nothing?");
        let expected = 0x5bdc_c146_bf60_754e_6a04_2426_0895_75c7_u128.to_be_bytes();
        assert_eq!(mac.finalize().into_bytes()[..16], expected);
    }

    #[test]
    fn an_agent_finds_its_secret_in_the_file_of_the_middlebox() {
        let mut middlebox = SharedSecrets::parse(FILE, nonces(100)).unwrap();
        let mut agent = SharedSecret::parse("backup", FILE, nonces(0)).unwrap();
        let exchange = exchange(&mut agent, &mut middlebox);
        assert!(agent.recognizes(&exchange, &Authentication::prove(&middlebox, &exchange)));
        let error = SharedSecret::parse("back-up", FILE, nonces(0)).unwrap_err().to_string();
        assert!(error.contains("no secret for `back-up`"), "{error}");
    }

    #[test]
    fn a_secret_is_not_printed_and_has_a_minimum_length() {
        let middlebox = SharedSecrets::parse(FILE, nonces(100)).unwrap();
        assert!(!format!("{middlebox:?}").contains("0123"));
        let error = SharedSecrets::parse("x = 'short'", nonces(0)).unwrap_err().to_string();
        assert!(error.contains("`x`") && error.contains("16") && !error.contains("short'"), "{error}");
        let error =
            SharedSecrets::parse("# x\nx = hunter2hunter2hunter2", nonces(0)).unwrap_err().to_string();
        assert!(error.starts_with("line 2: ") && !error.contains("hunter2"), "{error}");
    }
}
