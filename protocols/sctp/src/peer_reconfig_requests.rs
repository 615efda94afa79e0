//! Resets and additions of the peer's streams: the receiver of re-configuration requests. RFC 6525 section 5.2.

use hol_base::Time;
use hol_transport::{Event, Reconfiguration};
use hol_wire::sctp::{Cause, Chunk, Reconfig, ReconfigResult, ReconfigSerial, Tsn};

use crate::Endpoint;
use crate::acknowledge::SackRequest;
use crate::receive::deliver_interleaved_message;

/// The state of the peer's requests to reset or add streams.
#[derive(Debug)]
pub(crate) struct PeerReconfigRequests {
    /// Serial number of the last request processed.
    last_serial: ReconfigSerial,
    /// The results of the requests in the last chunk, which are sent again if the chunk is repeated. `None` if
    /// the answer is a request of ours. RFC 6525 section 5.2.1.
    answers: Vec<(ReconfigSerial, Option<ReconfigResult>)>,
    deferred: Option<Box<DeferredReset>>,
}

/// A reset of streams that waits until all data sent before it have arrived: "deferred reset processing". RFC
/// 6525 section 5.2.2 E2.
#[derive(Debug)]
struct DeferredReset {
    serial: ReconfigSerial,
    last_tsn: Tsn,
    streams: Vec<u16>,
    /// Received chunks that the peer sent after the reset.
    held_chunks: Vec<Chunk>,
    /// Number of octets of user data in the held chunks.
    octets: usize,
}

impl PeerReconfigRequests {
    /// Creates the state before any request. The serial number of the first request equals the peer's first TSN.
    /// RFC 6525 section 4.1.
    pub(crate) fn new(first: ReconfigSerial) -> Self {
        Self { last_serial: first - 1, answers: Vec::new(), deferred: None }
    }

    pub(crate) fn last(&self) -> ReconfigSerial {
        self.last_serial
    }

    pub(crate) fn is_deferring(&self) -> bool {
        self.deferred.is_some()
    }

    /// Returns the number of octets of user data that wait for a deferred reset.
    pub(crate) fn held_octets(&self) -> usize {
        self.deferred.as_ref().map_or(0, |deferred| deferred.octets)
    }

    /// Returns whether a received chunk must wait until its stream has been reset.
    pub(crate) fn defers(&self, stream: u16, tsn: Tsn) -> bool {
        self.deferred.as_ref().is_some_and(|deferred| {
            tsn.after(deferred.last_tsn)
                && (deferred.streams.is_empty() || deferred.streams.contains(&stream))
        })
    }

    pub(crate) fn hold(&mut self, chunk: Chunk) {
        if let Some(deferred) = &mut self.deferred {
            deferred.octets += chunk.user_data().map_or(0, |data| data.payload.len());
            deferred.held_chunks.push(chunk);
        }
    }
}

/// Returns whether these parameters are permitted in one RE-CONFIG chunk. RFC 6525 section 3.1.
fn may_be_combined(parameters: &[Reconfig]) -> bool {
    use Reconfig::{AddIncoming, AddOutgoing, IncomingReset, OutgoingReset, Response, TsnReset, Unknown};
    matches!(
        parameters,
        [OutgoingReset { .. } | IncomingReset { .. } | TsnReset { .. } | Response { .. } | Unknown { .. },]
            | [AddOutgoing { .. } | AddIncoming { .. }]
            | [OutgoingReset { .. }, IncomingReset { .. }]
            | [AddOutgoing { .. }, AddIncoming { .. }]
            | [Response { .. }, OutgoingReset { .. } | Response { .. }]
    )
}

impl Endpoint {
    /// Processes a RE-CONFIG chunk. RFC 6525 section 5.2.1.
    pub(crate) fn on_reconfig(&mut self, now: Time, parameters: &[Reconfig]) {
        if !self.state.is_established_or_shutting_down() {
            return;
        }
        if !may_be_combined(parameters) {
            let cause =
                Cause::ProtocolViolation(bytes::Bytes::from_static(b"parameters of a RE-CONFIG chunk"));
            return self.control.push_back((None, Chunk::Error(vec![cause])));
        }
        let mut requests = Vec::new();
        for parameter in parameters {
            match parameter {
                Reconfig::Response { serial, result, .. } => self.on_reconfig_response(now, *serial, *result),
                // Section 4: parameters after an unknown one are not read.
                Reconfig::Unknown { .. } => break,
                Reconfig::OutgoingReset { serial, .. }
                | Reconfig::IncomingReset { serial, .. }
                | Reconfig::TsnReset { serial }
                | Reconfig::AddOutgoing { serial, .. }
                | Reconfig::AddIncoming { serial, .. } => requests.push((*serial, parameter)),
            }
        }
        let Some((first, _)) = requests.first() else { return };
        if *first == self.peer_reconfig_requests.last_serial.next() {
            let answers =
                requests.iter().map(|(serial, request)| (*serial, self.on_request(now, request))).collect();
            self.peer_reconfig_requests.answers = answers;
            self.peer_reconfig_requests.last_serial = requests[requests.len() - 1].0;
        } else if !self.peer_reconfig_requests.answers.iter().any(|(serial, _)| serial == first) {
            return self.respond(*first, ReconfigResult::BAD_SEQUENCE_NUMBER);
        }
        // A SACK goes with the answers, because the peer may be waiting for it.
        if self.state.receives_data() {
            self.queue_sack();
        }
        self.answer_requests(now);
    }

    fn respond(&mut self, serial: ReconfigSerial, result: ReconfigResult) {
        self.send_reconfig(vec![Reconfig::Response { serial, result, next_tsns: None }]);
    }

    /// Answers the last requests, in a single chunk (RFC 6525 section 5.2.1) if section 3.1 permits it.
    fn answer_requests(&mut self, now: Time) {
        let mut next = self.next_request(now);
        let mut answers = Vec::new();
        for (serial, result) in self.peer_reconfig_requests.answers.clone() {
            let result = match (result, self.own_reconfig_requests.answer_to(serial)) {
                (Some(result), _) => result,
                (None, Some(own)) => {
                    next = Some(own.clone());
                    continue;
                }
                (None, None) if self.own_reconfig_requests.will_answer(serial) => ReconfigResult::IN_PROGRESS,
                (None, None) => ReconfigResult::NOTHING_TO_DO,
            };
            answers.push(Reconfig::Response { serial, result, next_tsns: None });
        }
        if answers.len() < 2 {
            answers.extend(next.take_if(|own| matches!(own, Reconfig::OutgoingReset { .. })));
        }
        for parameters in [answers, next.into_iter().collect()] {
            if !parameters.is_empty() {
                self.send_reconfig(parameters);
            }
        }
    }

    /// Performs a request of the peer and returns its result; `None` if the answer is a request of ours.
    fn on_request(&mut self, now: Time, request: &Reconfig) -> Option<ReconfigResult> {
        match request {
            Reconfig::OutgoingReset { serial, response, last_tsn, streams } => {
                self.complete_if(
                    |own| matches!(own, Reconfig::IncomingReset { serial, .. } if serial == response),
                );
                Some(self.on_outgoing_reset(now, *serial, *last_tsn, streams))
            }
            Reconfig::IncomingReset { serial, streams } => self.on_incoming_reset(*serial, streams),
            Reconfig::AddOutgoing { streams, .. } => {
                self.complete_if(|own| matches!(own, Reconfig::AddIncoming { .. }));
                Some(self.on_add_outgoing(*streams))
            }
            Reconfig::AddIncoming { serial, streams } => self.on_add_incoming(*serial, *streams),
            // Section 5.2.1 permits a refusal.
            Reconfig::TsnReset { .. } | Reconfig::Response { .. } | Reconfig::Unknown { .. } => {
                Some(ReconfigResult::DENIED)
            }
        }
    }

    /// Processes an Outgoing SSN Reset Request. RFC 6525 section 5.2.2.
    fn on_outgoing_reset(
        &mut self,
        now: Time,
        serial: ReconfigSerial,
        last_tsn: Tsn,
        streams: &[u16],
    ) -> ReconfigResult {
        if !streams.iter().all(|stream| self.streams_in.has_stream(*stream)) {
            return ReconfigResult::WRONG_SSN;
        }
        if self.peer_reconfig_requests.deferred.is_some() {
            return ReconfigResult::ALREADY_IN_PROGRESS;
        }
        if last_tsn.after(self.tsn_map.cumulative()) {
            let (streams, held) = (streams.to_vec(), Vec::new());
            self.peer_reconfig_requests.deferred =
                Some(Box::new(DeferredReset { serial, last_tsn, streams, held_chunks: held, octets: 0 }));
            return ReconfigResult::IN_PROGRESS;
        }
        self.reset_incoming(now, streams);
        ReconfigResult::PERFORMED
    }

    /// Resets incoming streams. RFC 6525 section 5.2.2 E3.
    fn reset_incoming(&mut self, now: Time, streams: &[u16]) {
        let all: Vec<u16> = (0..self.streams_in.count()).collect();
        let Self { interleaved, streams_in, reader, .. } = self;
        for stream in if streams.is_empty() { &all } else { streams } {
            streams_in.reset(*stream, |message| reader.receive(now, message));
            interleaved.reset(*stream, &mut |delivery| deliver_interleaved_message(reader, now, delivery));
        }
        let what = Reconfiguration::ResetIncoming(streams.to_vec());
        self.push_event(Event::Reconfigured { what, done: true });
    }

    /// Performs the deferred reset if all data sent before it have arrived. RFC 6525 section 5.2.2 E3 to E6.
    pub(crate) fn finish_deferred_reset(&mut self, now: Time, seen: &mut SackRequest) {
        let cumulative = self.tsn_map.cumulative();
        let is_due = |deferred: &mut Box<DeferredReset>| deferred.last_tsn.at_or_before(cumulative);
        let Some(deferred) = self.peer_reconfig_requests.deferred.take_if(is_due) else { return };
        self.reset_incoming(now, &deferred.streams);
        for chunk in deferred.held_chunks {
            match chunk {
                Chunk::Data(data) => self.deliver(now, data),
                Chunk::IData(data) => self.deliver_interleaved(now, *data),
                _ => {}
            }
        }
        let performed = ReconfigResult::PERFORMED;
        for (serial, result) in &mut self.peer_reconfig_requests.answers {
            if *serial == deferred.serial {
                *result = Some(performed);
            }
        }
        (seen.has_data, seen.at_once) = (true, true);
        self.respond(deferred.serial, performed);
    }

    /// Processes an Incoming SSN Reset Request. RFC 6525 section 5.2.3.
    fn on_incoming_reset(&mut self, serial: ReconfigSerial, streams: &[u16]) -> Option<ReconfigResult> {
        if !streams.iter().all(|stream| *stream < self.streams_out.count()) {
            return Some(ReconfigResult::WRONG_SSN);
        }
        if streams.len() > self.max_streams() || !self.state.sends_data() {
            return Some(ReconfigResult::DENIED);
        }
        if self.own_reconfig_requests.resets_all_of(streams) {
            return Some(ReconfigResult::NOTHING_TO_DO);
        }
        if self.own_reconfig_requests.awaits_request() {
            return Some(ReconfigResult::ALREADY_IN_PROGRESS);
        }
        self.enqueue_request(Reconfiguration::ResetOutgoing(streams.to_vec()), Some(serial));
        None
    }

    /// Processes an Add Outgoing Streams Request; refuses it if the peer's streams would exceed
    /// `max_inbound_streams`. RFC 6525 section 5.2.5.
    fn on_add_outgoing(&mut self, more: u16) -> ReconfigResult {
        let count = self.streams_in.count().checked_add(more);
        if count.is_none_or(|count| count > self.config.max_inbound_streams) {
            return ReconfigResult::DENIED;
        }
        self.streams_in.add(more);
        self.push_event(Event::Reconfigured { what: Reconfiguration::AddIncoming(more), done: true });
        ReconfigResult::PERFORMED
    }

    /// Processes an Add Incoming Streams Request; refuses it if our streams would exceed `streams` of the
    /// configuration. RFC 6525 section 5.2.6.
    fn on_add_incoming(&mut self, serial: ReconfigSerial, more: u16) -> Option<ReconfigResult> {
        let count = self.streams_out.count().checked_add(more);
        if count.is_none_or(|count| count > self.config.streams) || !self.state.sends_data() {
            return Some(ReconfigResult::DENIED);
        }
        if self.own_reconfig_requests.awaits_request() {
            return Some(ReconfigResult::ALREADY_IN_PROGRESS);
        }
        self.enqueue_request(Reconfiguration::AddOutgoing(more), Some(serial));
        None
    }
}
