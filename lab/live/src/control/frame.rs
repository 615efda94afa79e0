//! The encoding of messages: length, content, and a MAC over the content and its position.

use std::fmt;
use std::io::{Read, Write};

use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;

use super::ControlError;

/// An HMAC key, or an HMAC. Both have 32 octets. RFC 2104, RFC 6234
pub(crate) type Key = [u8; 32];

/// Maximum length of a message in octets. The records of some million messages fit.
pub(crate) const MAX_MESSAGE: usize = 256 << 20;

/// Returns HMAC-SHA-256 over all parts. The length of each part precedes it, so that octets cannot move from one
/// part to another.
pub(crate) fn hmac(key: &[u8], parts: &[&[u8]]) -> Key {
    mac(key, parts).finalize().into_bytes().into()
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::new_from_slice(key).expect("a key may have any length");
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac
}

/// The sending half of a control channel.
pub(crate) struct Outbox<S> {
    stream: S,
    key: Key,
    /// The number of the next frame, which the frame's HMAC covers.
    next: u64,
}

/// The receiving half of a control channel.
pub(crate) struct Inbox<S> {
    stream: S,
    key: Key,
    /// The number of the next frame, which the frame's HMAC covers.
    next: u64,
}

/// Shows the number of the next frame, but not the key.
impl<S> fmt::Debug for Outbox<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outbox({})", self.next)
    }
}

/// Shows the number of the next frame, but not the key.
impl<S> fmt::Debug for Inbox<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inbox({})", self.next)
    }
}

impl<S: Write> Outbox<S> {
    /// Creates the sending half of a channel; `key` authenticates its frames.
    pub(crate) fn new(stream: S, key: Key) -> Self {
        Self { stream, key, next: 0 }
    }

    /// Sends a message as one frame.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> Result<(), ControlError> {
        let body = serde_json::to_vec(message).expect("messages can be serialised");
        if body.len() > MAX_MESSAGE {
            return Err(ControlError::TooLong(body.len(), MAX_MESSAGE));
        }
        let hmac = hmac(&self.key, &[&self.next.to_be_bytes(), &body]);
        self.next += 1;
        let length = (body.len() as u32).to_be_bytes();
        self.stream.write_all(&[&length[..], &body, &hmac].concat())?;
        Ok(self.stream.flush()?)
    }
}

impl<S: Read> Inbox<S> {
    /// Creates the receiving half of a channel; `key` authenticates its frames.
    pub(crate) fn new(stream: S, key: Key) -> Self {
        Self { stream, key, next: 0 }
    }

    /// Waits for the next message, which may have at most `max` octets, and returns it.
    pub(crate) fn receive_short<M: DeserializeOwned>(&mut self, max: usize) -> Result<M, ControlError> {
        let body = read_frame(&mut self.stream, max)?;
        let mut hmac = [0; size_of::<Key>()];
        self.stream.read_exact(&mut hmac)?;
        mac(&self.key, &[&self.next.to_be_bytes(), &body])
            .verify_slice(&hmac)
            .map_err(|_| ControlError::Forged)?;
        self.next += 1;
        parse(&body)
    }

    /// Waits for the next message and returns it.
    pub(crate) fn receive<M: DeserializeOwned>(&mut self) -> Result<M, ControlError> {
        self.receive_short(MAX_MESSAGE)
    }
}

/// Reads octets that their length precedes. The memory used grows with the octets that arrive, not with the
/// announced length.
pub(crate) fn read_frame(stream: &mut impl Read, max: usize) -> Result<Vec<u8>, ControlError> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > max {
        return Err(ControlError::TooLong(length, max));
    }
    let mut body = Vec::new();
    stream.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length { Err(ControlError::Closed) } else { Ok(body) }
}

/// Parses the content of a frame as JSON.
pub(crate) fn parse<M: DeserializeOwned>(body: &[u8]) -> Result<M, ControlError> {
    serde_json::from_slice(body).map_err(|problem| ControlError::Malformed(problem.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = [7; 32];

    fn sent(messages: &[&str]) -> Vec<u8> {
        let mut octets = Vec::new();
        let mut outbox = Outbox::new(&mut octets, KEY);
        messages.iter().for_each(|message| outbox.send(message).unwrap());
        octets
    }

    /// Returns all messages up to the first invalid one, and its error.
    fn received_messages(octets: &[u8], key: Key) -> (Vec<String>, ControlError) {
        let mut inbox = Inbox::new(octets, key);
        let mut received_messages = Vec::new();
        loop {
            match inbox.receive() {
                Ok(message) => received_messages.push(message),
                Err(problem) => return (received_messages, problem),
            }
        }
    }

    #[test]
    fn messages_arrive_in_order_before_the_end() {
        let (messages, end) = received_messages(&sent(&["one", "", "three"]), KEY);
        assert_eq!(messages, ["one", "", "three"]);
        assert!(matches!(end, ControlError::Closed));
    }

    #[test]
    fn a_truncated_message_is_refused() {
        let octets = sent(&["one"]);
        for length in 0..octets.len() {
            let (messages, problem) = received_messages(&octets[..length], KEY);
            assert!(messages.is_empty() && matches!(problem, ControlError::Closed), "{length}: {problem}");
        }
    }

    #[test]
    fn a_changed_bit_is_detected() {
        let octets = sent(&["one"]);
        for bit in 0..octets.len() * 8 {
            let mut wrong = octets.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            let (messages, problem) = received_messages(&wrong, KEY);
            let is_known =
                matches!(problem, ControlError::Forged | ControlError::Closed | ControlError::TooLong(..));
            assert!(messages.is_empty() && is_known, "{bit}: {problem}");
        }
    }

    #[test]
    fn repeated_missing_or_forged_messages_are_refused() {
        let [one, both] = [sent(&["one"]), sent(&["one", "two"])];
        let two = &both[one.len()..];
        for octets in [[&one[..], &one].concat(), [&both[..], &one].concat(), two.to_vec()] {
            let (_, problem) = received_messages(&octets, KEY);
            assert!(matches!(problem, ControlError::Forged), "{problem}");
        }
        assert!(matches!(received_messages(&one, [8; 32]), (none, ControlError::Forged) if none.is_empty()));
    }

    #[test]
    fn an_announced_length_allocates_nothing_and_a_huge_one_is_refused() {
        let (_, problem) = received_messages(&[0xff; 40], KEY);
        assert!(matches!(problem, ControlError::TooLong(0xffff_ffff, MAX_MESSAGE)), "{problem}");
        let mut inbox = Inbox::new(&[0, 0, 1, 0, b'"'][..], KEY);
        assert!(matches!(inbox.receive_short::<String>(255), Err(ControlError::TooLong(256, 255))));
        let announced = (MAX_MESSAGE as u32).to_be_bytes();
        assert!(matches!(read_frame(&mut &announced[..], MAX_MESSAGE), Err(ControlError::Closed)));
    }

    #[test]
    fn malformed_messages_are_reported_with_their_position() {
        for body in ["", "{", "[1,2", "\u{0}", "{\"a\":1e999}", &"[".repeat(10_000)] {
            let problem = parse::<String>(body.as_bytes()).unwrap_err().to_string();
            assert!(problem.contains("cannot parse") && problem.contains("line"), "{problem}");
        }
        assert!(parse::<String>(&[0xff, 0xfe]).is_err());
    }
}
