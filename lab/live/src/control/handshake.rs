//! The handshake of two hosts. Each sends its version and a fresh nonce, and proves with both nonces that it
//! knows the secret.
//!
//! The client proves it first, so an attacker without the secret receives no proof that could be used to test
//! guesses. From then on each direction has its own key, derived from both greetings, so messages of another
//! connection or direction are rejected.

use std::io::{Read, Write};

use hol_scenario::Side;
use serde::{Deserialize, Serialize};

use super::ControlError;
use super::frame::{self, Inbox, Outbox, hmac};
use crate::secret::Secret;

/// Version of the control channel's messages, which is increased with every change of a message.
const PROTOCOL_VERSION: u32 = 6;

/// Maximum length of a message of the handshake, in octets.
const MAX_GREETING: usize = 1 << 10;

/// Labels from which the keys of both directions are derived.
const CLIENT_LABEL: &[u8] = b"client";
const SERVER_LABEL: &[u8] = b"server";

/// The first message that a host sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Hello {
    hol: String,
    protocol: u32,
    version: String,
    nonce: [u8; 32],
}

/// The message that proves that its sender knows the secret, by a MAC.
#[derive(Debug, Serialize, Deserialize)]
enum Proof {
    IKnow,
}

impl Hello {
    fn new() -> Result<Self, ControlError> {
        let mut nonce = [0; 32];
        getrandom::fill(&mut nonce).map_err(|problem| ControlError::Randomness(problem.to_string()))?;
        Ok(Self {
            hol: "live".to_owned(),
            protocol: PROTOCOL_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            nonce,
        })
    }

    fn name(&self) -> String {
        format!("{} (protocol {})", self.version, self.protocol)
    }
}

fn send(stream: &mut impl Write, body: &[u8]) -> Result<(), ControlError> {
    stream.write_all(&[&(body.len() as u32).to_be_bytes()[..], body].concat())?;
    Ok(stream.flush()?)
}

/// Performs the handshake on a stream, whose two halves are given separately.
pub(crate) fn authenticate<R: Read, W: Write>(
    side: Side,
    secret: &Secret,
    (mut from, mut to): (R, W),
) -> Result<(Inbox<R>, Outbox<W>), ControlError> {
    let own = Hello::new()?;
    let said = serde_json::to_vec(&own).expect("a greeting can be serialised");
    let heard = if side == Side::Client {
        send(&mut to, &said)?;
        frame::read_frame(&mut from, MAX_GREETING)?
    } else {
        let heard = frame::read_frame(&mut from, MAX_GREETING)?;
        // A peer that does not speak this protocol gets no answer.
        frame::parse::<Hello>(&heard)?;
        send(&mut to, &said)?;
        heard
    };
    let other: Hello = frame::parse(&heard)?;
    if other.hol != own.hol || other.nonce == own.nonce {
        return Err(ControlError::Malformed(
            "the program that listens there is not hol; start `hol live serve` on that host, or check host and port"
                .to_owned(),
        ));
    }
    if (other.protocol, &other.version) != (own.protocol, &own.version) {
        return Err(ControlError::Version { theirs: other.name(), ours: own.name() });
    }
    let [client, server] = if side == Side::Client { [&said, &heard] } else { [&heard, &said] };
    let key = hmac(secret.octets(), &[b"headofline live", client, server]);
    let (mine, theirs) = match side {
        Side::Client => (CLIENT_LABEL, SERVER_LABEL),
        Side::Server => (SERVER_LABEL, CLIENT_LABEL),
    };
    let mut inbox = Inbox::new(from, hmac(&key, &[theirs]));
    let mut outbox = Outbox::new(to, hmac(&key, &[mine]));
    if side == Side::Client {
        outbox.send(&Proof::IKnow)?;
    }
    // A server that rejects the proof closes the connection.
    let heard = inbox.receive_short::<Proof>(MAX_GREETING);
    let Proof::IKnow = heard.map_err(|problem| match problem {
        ControlError::Forged => ControlError::Secret,
        ControlError::Closed if side == Side::Client => ControlError::Secret,
        other => other,
    })?;
    if side == Side::Server {
        outbox.send(&Proof::IKnow)?;
    }
    Ok((inbox, outbox))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text).unwrap()
    }

    type Met = Result<(Inbox<UnixStream>, Outbox<UnixStream>), ControlError>;

    /// Performs the handshake; closes the stream after an error, as a host does.
    fn meet(side: Side, secret: &Secret, stream: UnixStream) -> Met {
        authenticate(side, secret, (stream.try_clone().unwrap(), stream))
    }

    fn both(client: &str, server: &str) -> [Met; 2] {
        let (one, other) = UnixStream::pair().unwrap();
        let server = secret(server);
        let server = thread::spawn(move || meet(Side::Server, &server, other));
        let client = meet(Side::Client, &secret(client), one);
        [client, server.join().unwrap()]
    }

    #[test]
    fn with_the_same_secret_messages_pass_in_both_directions() {
        let [client, server] = both("same", "same").map(Result::unwrap);
        let ((mut inbox, mut outbox), (mut far_inbox, mut far_outbox)) = (client, server);
        outbox.send(&"asked").unwrap();
        assert_eq!(far_inbox.receive::<String>().unwrap(), "asked");
        far_outbox.send(&"answered").unwrap();
        assert_eq!(inbox.receive::<String>().unwrap(), "answered");
    }

    #[test]
    fn another_secret_is_refused_on_both_sides_without_a_proof() {
        let [client, server] = both("one", "other");
        assert!(matches!(client, Err(ControlError::Secret)));
        assert!(matches!(server, Err(ControlError::Secret)));
    }

    /// Returns the octets with which a server replies to these octets, and its error.
    fn answer(octets: &[u8]) -> (Vec<u8>, ControlError) {
        let (mut one, other) = UnixStream::pair().unwrap();
        one.write_all(octets).unwrap();
        one.shutdown(std::net::Shutdown::Write).unwrap();
        let problem = meet(Side::Server, &secret("x"), other).expect_err("the octets are not a greeting");
        let mut said = Vec::new();
        // A connection that is closed before all octets were read is reset, which is an end, too.
        let _ = one.read_to_end(&mut said);
        (said, problem)
    }

    fn framed(body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32).to_be_bytes()[..], body].concat()
    }

    #[test]
    fn a_server_sends_nothing_to_other_programs() {
        let hello = serde_json::to_vec(&Hello::new().unwrap()).unwrap();
        for octets in [
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            vec![],
            vec![0xff; 100],
            framed(b"{}"),
            framed(&hello[..hello.len() - 1]),
            framed(&vec![b'['; MAX_GREETING]),
            framed(&vec![b' '; MAX_GREETING + 1]),
        ] {
            assert!(answer(&octets).0.is_empty(), "{:?}", String::from_utf8_lossy(&octets));
        }
    }

    #[test]
    fn both_sides_report_another_version() {
        for other in [
            Hello { version: "0.0.1".to_owned(), ..Hello::new().unwrap() },
            Hello { protocol: PROTOCOL_VERSION + 1, ..Hello::new().unwrap() },
        ] {
            let (said, problem) = answer(&framed(&serde_json::to_vec(&other).unwrap()));
            assert!(problem.to_string().contains("install the same"), "{problem}");
            let greeting: Hello =
                frame::parse(&frame::read_frame(&mut &said[..], MAX_GREETING).unwrap()).unwrap();
            assert_eq!(framed(&serde_json::to_vec(&greeting).unwrap()).len(), said.len());
        }
    }

    /// The recorded handshake of one connection is invalid on another.
    #[test]
    fn a_replayed_handshake_is_refused() {
        let hello = serde_json::to_vec(&Hello::new().unwrap()).unwrap();
        let key = hmac(secret("x").octets(), &[b"headofline live", &hello, &hello]);
        let mut octets = framed(&hello);
        Outbox::new(&mut octets, hmac(&key, &[CLIENT_LABEL])).send(&Proof::IKnow).unwrap();
        assert!(matches!(answer(&octets).1, ControlError::Secret));
    }
}
