//! The cost of TLS 1.3 for an application over a byte stream: its round trip and its octets. Nothing is
//! encrypted.
//!
//! A wrapper around either application exchanges handshake messages of the right sizes before it reports
//! that the connection is open, and makes each message as long as its records (RFC 8446 sections 2 and 5.2).

use std::collections::{BTreeMap, VecDeque};

use bytes::{BufMut, Bytes, BytesMut};
use hol_base::Time;
use hol_transport::FramingError;

use crate::contract::{Application, ConnectionId, Delivery, Input, Outgoing, Output, Progress};
use crate::ledger::Ledger;
use crate::{FramingFn, WorkloadError};

/// The messages of a TLS handshake: the lengths of their records, in octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// Length of the client's first message (`ClientHello`), in octets.
    pub hello: u16,
    /// Length of the server's message (`ServerHello` to `Finished`), in octets.
    pub answer: u16,
    /// Length of the client's second message, in octets: `Finished`, preceded by `EndOfEarlyData` if the client has
    /// sent early data.
    pub finished: u16,
    /// Whether the client sends application data together with its first message.
    pub is_early: bool,
}

/// Maximum number of octets of plaintext in a record. RFC 8446 section 5.1.
const MAX_RECORD: usize = 1 << 14;
/// Octets that a record has in addition to its plaintext: header, content type and authentication tag. RFC 8446 section
/// 5.2.
const RECORD_OVERHEAD: usize = 5 + 1 + 16;
/// Length of the header with which each message starts here, instead of the header of its first record, in octets: the
/// content type, and the length of all records of the message.
const MESSAGE_HEADER: usize = 1 + 4;
/// Content types of records. RFC 8446 appendix B.1.
const HANDSHAKE_RECORD: u8 = 22;
const APPLICATION_DATA: u8 = 23;

/// Returns the length of the records that carry a message of `octets` octets, in octets.
const fn protected(octets: usize) -> usize {
    octets + RECORD_OVERHEAD * octets.div_ceil(MAX_RECORD)
}

/// Returns the length of the message in records of this length, in octets.
const fn plaintext(records: usize) -> usize {
    records - RECORD_OVERHEAD * records.div_ceil(MAX_RECORD + RECORD_OVERHEAD)
}

/// Returns the length of all records of the message that starts with `octets`.
pub(crate) fn length_of(octets: &[u8]) -> Result<Option<usize>, FramingError> {
    let Some((kind, length)) = octets.first().zip(octets.get(1..).and_then(<[u8]>::first_chunk)) else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length) as usize;
    let is_possible = (MESSAGE_HEADER..=protected(WorkloadError::MAX_SIZE as usize)).contains(&length);
    match *kind {
        HANDSHAKE_RECORD | APPLICATION_DATA if is_possible => Ok(Some(length)),
        _ => Err(FramingError("not the records of a TLS message")),
    }
}

/// Returns the function that finds message boundaries in a byte stream. With TLS, these are the boundaries of the
/// records of each message.
pub(crate) fn framing_fn(handshake: Option<Handshake>, plain: FramingFn) -> FramingFn {
    if handshake.is_some() { length_of } else { plain }
}

fn records(kind: u8, payload: &[u8], length: usize) -> Bytes {
    let mut records = BytesMut::with_capacity(length);
    records.put_u8(kind);
    records.put_u32(length as u32);
    records.put_slice(payload);
    records.put_bytes(0, length - MESSAGE_HEADER - payload.len());
    records.freeze()
}

fn protect(payload: &Bytes) -> Bytes {
    records(APPLICATION_DATA, payload, protected(payload.len()))
}

fn unprotect(records: &Bytes) -> Bytes {
    records.slice(MESSAGE_HEADER..MESSAGE_HEADER + plaintext(records.len()))
}

/// Runs an application over TLS if there is a handshake, otherwise without.
pub(crate) fn with_tls(
    application: Box<dyn Application>,
    handshake: Option<Handshake>,
) -> Box<dyn Application> {
    match handshake {
        None => application,
        Some(handshake) => Box::new(TlsApplication {
            application,
            handshake,
            connections: BTreeMap::new(),
            outbox: VecDeque::new(),
            unsent_records: BTreeMap::new(),
            requested: 0,
            opened: 0,
            connected: None,
            sends_handshake: false,
            is_blocked: false,
        }),
    }
}

/// An application that sends its messages over TLS on a byte stream.
#[derive(Debug)]
struct TlsApplication {
    application: Box<dyn Application>,
    handshake: Handshake,
    connections: BTreeMap<ConnectionId, HandshakeState>,
    /// Handshake messages that the transport has not accepted yet.
    outbox: VecDeque<Outgoing>,
    /// Records of messages that the transport has not accepted, or only in part; the application will repeat these
    /// messages.
    unsent_records: BTreeMap<ConnectionId, Bytes>,
    /// Number of connections that the application has requested.
    requested: u32,
    /// Number of connections that the application may use.
    opened: u32,
    /// When all requested connections were first open; `None` before.
    connected: Option<Time>,
    /// Whether the last message sent is a handshake message.
    sends_handshake: bool,
    /// Whether the transport has rejected a handshake message.
    is_blocked: bool,
}

/// The state of a connection's handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandshakeState {
    /// The client waits for the server's answer. With early data its application may send already.
    AwaitsAnswer,
    /// The server waits for the client's first or second message.
    AwaitsClient,
    Done,
}

impl TlsApplication {
    fn send(&mut self, connection: ConnectionId, octets: u16) {
        let payload = records(HANDSHAKE_RECORD, &[], octets.into());
        self.outbox.push_back(Outgoing { connection, stream: 0, payload, delivery: None, entry: None });
    }

    /// Handles a handshake message of the peer.
    fn handle_handshake_message(&mut self, now: Time, connection: ConnectionId) {
        let Handshake { answer, finished, is_early, .. } = self.handshake;
        let state = self.connections.entry(connection).or_insert(HandshakeState::AwaitsClient);
        match *state {
            HandshakeState::AwaitsAnswer => {
                *state = HandshakeState::Done;
                self.send(connection, finished);
                if !is_early {
                    self.open(now, connection);
                }
            }
            HandshakeState::AwaitsClient => {
                *state = HandshakeState::Done;
                self.send(connection, answer);
            }
            // The client's Finished.
            HandshakeState::Done => {}
        }
    }

    /// Removes and returns the next handshake message. On a connection that has accepted a message only in part,
    /// handshake messages wait for the rest, because they would interrupt a record.
    fn next_handshake(&mut self) -> Option<Outgoing> {
        let is_free = |outgoing: &Outgoing| !self.unsent_records.contains_key(&outgoing.connection);
        let next = self.outbox.iter().position(is_free)?;
        self.outbox.remove(next)
    }

    /// Returns the records that carry a message, or their remaining octets if the transport has accepted a part of
    /// them.
    fn protected(&mut self, outgoing: Outgoing) -> Outgoing {
        let refused = self.unsent_records.remove(&outgoing.connection);
        let is_refused = |records: &Bytes| {
            (records.as_ptr(), records.len()) == (outgoing.payload.as_ptr(), outgoing.payload.len())
        };
        match refused {
            Some(records) if is_refused(&records) => outgoing,
            _ => Outgoing { payload: protect(&outgoing.payload), ..outgoing },
        }
    }

    fn open(&mut self, now: Time, connection: ConnectionId) {
        self.opened += 1;
        if self.opened == self.requested {
            self.connected.get_or_insert(now);
        }
        self.application.handle(now, Input::Opened(connection));
        self.application.handle(now, Input::Writable(connection));
    }

    /// Returns whether the application may send on a connection.
    fn is_open(&self, connection: ConnectionId) -> bool {
        match self.connections.get(&connection) {
            None => false,
            Some(HandshakeState::AwaitsAnswer) => self.handshake.is_early,
            Some(HandshakeState::AwaitsClient | HandshakeState::Done) => true,
        }
    }
}

impl Application for TlsApplication {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Opened(connection) => {
                self.connections.insert(connection, HandshakeState::AwaitsAnswer);
                self.send(connection, self.handshake.hello);
                if self.handshake.is_early {
                    self.open(now, connection);
                }
            }
            Input::Accepted(connection) => {
                self.connections.insert(connection, HandshakeState::AwaitsClient);
                self.application.handle(now, Input::Accepted(connection));
            }
            Input::Message(delivery) if delivery.payload.first() == Some(&APPLICATION_DATA) => {
                let payload = unprotect(&delivery.payload);
                self.application.handle(now, Input::Message(Delivery { payload, ..delivery }));
            }
            Input::Message(delivery) => self.handle_handshake_message(now, delivery.connection),
            Input::Full(outgoing) if self.sends_handshake => {
                self.outbox.push_front(outgoing);
                self.is_blocked = true;
            }
            Input::Full(outgoing) => {
                self.unsent_records.insert(outgoing.connection, outgoing.payload.clone());
                self.application.handle(now, Input::Full(outgoing));
            }
            Input::Writable(connection) => {
                self.is_blocked = false;
                self.application.handle(now, Input::Writable(connection));
            }
            Input::Closed(connection) | Input::Failed(connection, _) => {
                self.connections.remove(&connection);
                self.unsent_records.remove(&connection);
                self.application.handle(now, input);
            }
            Input::PeerClosed(_) => self.application.handle(now, input),
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if self.is_blocked {
            return Output::Wait(Time::MAX);
        }
        let handshake = self.next_handshake();
        self.sends_handshake = handshake.is_some();
        if let Some(outgoing) = handshake {
            return Output::Send(outgoing);
        }
        loop {
            match self.application.poll(now) {
                Output::Send(outgoing) if !self.is_open(outgoing.connection) => {
                    self.application.handle(now, Input::Full(outgoing));
                }
                Output::Send(outgoing) => return Output::Send(self.protected(outgoing)),
                Output::Open(connection) => {
                    self.requested += 1;
                    return Output::Open(connection);
                }
                output => return output,
            }
        }
    }

    #[inline]
    fn progress(&self) -> Progress {
        self.application.progress()
    }

    fn is_reading(&self) -> bool {
        self.application.is_reading()
    }

    fn connected(&self, opened: Option<Time>) -> Option<Time> {
        opened.and(self.connected)
    }

    fn ledger(&mut self) -> &mut Ledger {
        self.application.ledger()
    }

    fn end(&mut self, now: Time) -> bool {
        self.application.end(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partial_transport::PartialTransport;
    use crate::{Host, StreamLayout, WorkloadSpec};
    use hol_base::Seed;
    use hol_transport::DeliveryTimes;
    use proptest::prelude::*;

    const FULL: Handshake = Handshake { hello: 261, answer: 2623, finished: 64, is_early: false };

    proptest! {
        /// A record has at most 2^14 octets of content and 22 octets in addition. RFC 8446 section 5.2.
        #[test]
        fn unprotect_reverses_protect(octets in 0_usize..70_000) {
            let payload: Bytes = (0..octets).map(|at| at as u8).collect::<Vec<u8>>().into();
            let records = protect(&payload);
            prop_assert_eq!(records.len(), octets + 22 * octets.div_ceil(16_384));
            if octets > 0 {
                prop_assert_eq!(length_of(&records), Ok(Some(records.len())));
                prop_assert_eq!(unprotect(&records), payload);
            }
        }
    }

    #[test]
    fn octets_that_are_no_tls_record_are_refused() {
        assert!(length_of(b"GET / HTTP").is_err());
        assert_eq!(length_of(&[HANDSHAKE_RECORD, 0, 0, 1]), Ok(None));
        assert!(length_of(&[APPLICATION_DATA, 0, 0, 0, 4]).is_err());
    }

    /// Runs two applications that are connected; each message arrives `each` ms after it was sent.
    fn exchange(handshake: Option<Handshake>, kind: &str, each: u64) -> (Vec<usize>, Time) {
        let lanes =
            StreamLayout { streams: 1, connections: 1, may_lose_messages: false, is_stream: true, handshake };
        let spec: WorkloadSpec = serde_json::from_str(kind).unwrap();
        let mut sides = [spec.client(lanes, 1, Seed(1)), spec.server(lanes, 1, Host::default())];
        let id = ConnectionId(0);
        assert!(matches!(sides[0].poll(Time::ZERO), Output::Open(_)));
        sides[0].handle(Time::ZERO, Input::Opened(id));
        sides[1].handle(Time::ZERO, Input::Accepted(id));
        let (mut sizes, mut now, mut under_way) = (Vec::new(), Time::ZERO, VecDeque::new());
        while sides[0].progress().messages_done == 0 {
            for (side, application) in sides.iter_mut().enumerate() {
                while let Output::Send(outgoing) = application.poll(now) {
                    sizes.push(outgoing.payload.len());
                    under_way.push_back((
                        1 - side,
                        now + hol_base::Duration::from_millis(each),
                        outgoing.payload,
                    ));
                }
            }
            let (to, arrives, payload) = under_way.pop_front().expect("one end sends");
            now = arrives;
            let delivery_times = DeliveryTimes::default();
            sides[to]
                .handle(now, Input::Message(Delivery { connection: id, stream: 0, payload, delivery_times }));
        }
        assert!(sides[0].connected(Some(Time::ZERO)).is_some());
        (sizes, now)
    }

    /// The first message waits a round trip (RFC 8446 section 2), but does not wait if it is early data (section 2.3).
    #[test]
    fn first_message_waits_a_round_trip_unless_it_is_early_data() {
        const PINGPONG: &str = "{\"kind\":\"pingpong\",\"size\":\"100B\"}";
        assert_eq!(exchange(None, PINGPONG, 10), (vec![100, 100], Time::from_millis(20)));
        let (sizes, answered) = exchange(Some(FULL), PINGPONG, 10);
        assert_eq!((sizes, answered), (vec![261, 2623, 64, 122, 122], Time::from_millis(40)));
        let early = Handshake { hello: 500, answer: 171, finished: 90, is_early: true };
        let (sizes, answered) = exchange(Some(early), PINGPONG, 10);
        assert_eq!((&sizes[..3], answered), (&[500, 122, 171][..], Time::from_millis(20)));
    }

    /// With TLS, a page that may send before its connection is open sends after the handshake.
    #[test]
    fn early_application_waits_for_the_handshake() {
        let (sizes, _) = exchange(Some(FULL), "{\"kind\":\"page\",\"objects\":0,\"early\":true}", 10);
        assert_eq!(&sizes[..3], &[261, 2623, 64]);
    }

    proptest! {
        /// Records do not interrupt each other, even if a connection accepts only parts of them (RFC 8446 section 5.1).
        /// A handshake message once interrupted a message of early data.
        #[test]
        fn messages_and_handshakes_are_not_interleaved(
            rooms in prop::collection::vec(1_usize..400, 1..200),
            answered_after in 0_usize..40,
            returns_rest: bool,
            is_early: bool,
        ) {
            let handshake = Handshake { hello: 500, answer: 171, finished: 90, is_early };
            let lanes =
                StreamLayout { streams: 1, connections: 1, may_lose_messages: false, is_stream: true, handshake: Some(handshake) };
            let spec: WorkloadSpec = serde_json::from_str("{\"kind\":\"bulk\",\"size\":\"300B\"}").unwrap();
            let (mut client, id) = (spec.client(lanes, crate::ENDLESS, Seed(1)), ConnectionId(0));
            let mut transport = PartialTransport::new(returns_rest);
            prop_assert!(matches!(client.poll(Time::ZERO), Output::Open(_)));
            client.handle(Time::ZERO, Input::Opened(id));
            for (turn, room) in rooms.iter().enumerate() {
                if turn == answered_after {
                    let payload = records(HANDSHAKE_RECORD, &[], 171);
                    let delivery_times = DeliveryTimes::default();
                    client.handle(Time::ZERO, Input::Message(Delivery { connection: id, stream: 0, payload, delivery_times }));
                }
                client.handle(Time::ZERO, Input::Writable(id));
                // It accepts some messages, then a part of one.
                for _ in 0..9 {
                    let Output::Send(outgoing) = client.poll(Time::ZERO) else { break };
                    if let Some(refused) = transport.send(outgoing, *room) {
                        client.handle(Time::ZERO, Input::Full(refused));
                        break;
                    }
                }
            }
            prop_assert!(transport.lengths(length_of).iter().all(|length| [500, 90, 322].contains(length)));
        }
    }
}
