//! Resets and additions of our streams: the sender of re-configuration requests. RFC 6525 sections 5.1 and 5.2.7.

use std::collections::VecDeque;

use hol_base::Time;
use hol_transport::{Event, Reconfiguration};
use hol_wire::sctp::{Chunk, Reconfig, ReconfigResult, ReconfigSerial, Tsn};

use crate::Endpoint;

/// Our re-configuration requests to the peer. Only one is outstanding at a time. RFC 6525 section 5.1.1.
#[derive(Debug)]
pub(crate) struct OwnReconfigRequests {
    waiting_requests: VecDeque<QueuedRequest>,
    outstanding: Option<Box<OutstandingRequest>>,
    /// Serial number of the next request; the first one equals the initial TSN. RFC 6525 section 4.1.
    serial: ReconfigSerial,
}

/// A re-configuration request that has no serial number yet.
#[derive(Debug)]
struct QueuedRequest {
    request: Reconfiguration,
    /// Serial number of the peer's request that this request answers; `None` if it answers none. RFC 6525 section
    /// 5.1.2 A4.
    answers: Option<ReconfigSerial>,
}

/// The re-configuration request that the peer has not answered yet.
#[derive(Debug)]
struct OutstandingRequest {
    queued: QueuedRequest,
    serial: ReconfigSerial,
    /// The request chunk, as sent and retransmitted.
    request: Reconfig,
    /// The path on which the request was last sent.
    path: usize,
    /// Whether the peer has reported the request as in progress, so that a missing answer is no failure. RFC 6525
    /// section 5.2.7 H2.
    in_progress: bool,
    /// The TSN whose acknowledgement completes the reset. Until then, a FORWARD TSN may contain stream sequence
    /// numbers from before the reset.
    done_after: Option<Tsn>,
}

impl OwnReconfigRequests {
    pub(crate) fn new(serial: ReconfigSerial) -> Self {
        Self { waiting_requests: VecDeque::new(), outstanding: None, serial }
    }

    /// Returns whether no request is queued or outstanding.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting_requests.is_empty() && self.outstanding.is_none()
    }

    /// Returns whether the outstanding request resets all of these streams. RFC 6525 section 5.2.3.
    pub(crate) fn resets_all_of(&self, streams: &[u16]) -> bool {
        let reset = self.outstanding.as_ref().and_then(|outstanding| match &outstanding.queued.request {
            Reconfiguration::ResetOutgoing(reset) => Some(reset),
            _ => None,
        });
        reset.is_some_and(|reset| {
            reset.is_empty() || !streams.is_empty() && streams.iter().all(|stream| reset.contains(stream))
        })
    }

    /// Returns whether the peer will answer the outstanding request with a request of its own. As long as that is
    /// so, we must not queue a request as our answer to yet another request of the peer: both ends could wait for
    /// each other forever.
    pub(crate) fn awaits_request(&self) -> bool {
        self.outstanding.as_ref().is_some_and(|outstanding| {
            matches!(outstanding.request, Reconfig::IncomingReset { .. } | Reconfig::AddIncoming { .. })
        })
    }

    /// Returns the outstanding request if it is our answer to the peer's request `serial`.
    pub(crate) fn answer_to(&self, serial: ReconfigSerial) -> Option<&Reconfig> {
        let answer =
            self.outstanding.as_ref().filter(|outstanding| outstanding.queued.answers == Some(serial));
        answer.map(|outstanding| &outstanding.request)
    }

    /// Returns whether a queued request is our answer to the peer's request `serial`.
    pub(crate) fn will_answer(&self, serial: ReconfigSerial) -> bool {
        self.waiting_requests.iter().any(|queued| queued.answers == Some(serial))
    }
}

impl Endpoint {
    /// Queues a re-configuration request of the application, or tells the application at once if the request is
    /// impossible.
    pub(crate) fn request_reconfiguration(&mut self, now: Time, what: Reconfiguration) {
        let has_stream = |stream: &u16| *stream < self.streams_out.count();
        let can_be = match &what {
            Reconfiguration::ResetOutgoing(streams) => streams.iter().all(has_stream),
            Reconfiguration::AddOutgoing(more) => self.streams_out.count().checked_add(*more).is_some(),
            Reconfiguration::ResetIncoming(_) | Reconfiguration::AddIncoming(_) => true,
        };
        // Section 5.1.1: requests are sent only if the peer supports them.
        if !self.reconfig || !self.state.sends_data() || !can_be {
            return self.push_event(Event::Reconfigured { what, done: false });
        }
        let max = self.max_streams();
        match what {
            Reconfiguration::ResetOutgoing(streams) if streams.len() > max => {
                streams
                    .chunks(max)
                    .for_each(|some| self.enqueue_request(Reconfiguration::ResetOutgoing(some.into()), None));
            }
            Reconfiguration::ResetIncoming(streams) if streams.len() > max => {
                streams
                    .chunks(max)
                    .for_each(|some| self.enqueue_request(Reconfiguration::ResetIncoming(some.into()), None));
            }
            what => self.enqueue_request(what, None),
        }
        self.continue_reconfiguration(now);
    }

    /// Returns the maximum number of streams in one request.
    pub(crate) fn max_streams(&self) -> usize {
        (self.max_chunk_size() - Chunk::HEADER_LENGTH - 16) / 2
    }

    /// Queues a request. From now on, messages for the streams to be reset wait. RFC 6525 section 5.1.2 A1.
    pub(crate) fn enqueue_request(&mut self, what: Reconfiguration, answers: Option<ReconfigSerial>) {
        if let Reconfiguration::ResetOutgoing(streams) = &what {
            self.streams_out.hold(streams.clone());
        }
        self.own_reconfig_requests.waiting_requests.push_back(QueuedRequest { request: what, answers });
    }

    /// Completes resets whose data are acknowledged, and starts the next request if it is due; returns whether
    /// there is a chunk to send.
    pub(crate) fn continue_reconfiguration(&mut self, now: Time) -> bool {
        let settled = self.complete_acknowledged();
        let request = self.next_request(now);
        let goes_on = settled || request.is_some();
        if let Some(request) = request {
            self.send_reconfig(vec![request]);
        }
        goes_on
    }

    /// Queues a RE-CONFIG chunk with these parameters.
    pub(crate) fn send_reconfig(&mut self, parameters: Vec<Reconfig>) {
        self.control.push_back((None, Chunk::Reconfig(parameters)));
    }

    /// Returns the next request; `None` if one is outstanding, or if no request may be sent now. RFC 6525 sections
    /// 5.1.2 to 5.1.6.
    pub(crate) fn next_request(&mut self, now: Time) -> Option<Reconfig> {
        let own = &mut self.own_reconfig_requests;
        if own.outstanding.is_some() || !self.state.sends_data() {
            return None;
        }
        // A reset waits until the messages queued before it have been numbered.
        let is_due = |queued: &&QueuedRequest| match &queued.request {
            Reconfiguration::ResetOutgoing(streams) => !self.streams_out.has_unsent_of(streams),
            _ => true,
        };
        own.waiting_requests.front().filter(is_due)?;
        let queued = own.waiting_requests.pop_front()?;
        let serial = own.serial;
        own.serial = serial.next();
        let request = match &queued.request {
            Reconfiguration::ResetOutgoing(streams) => Reconfig::OutgoingReset {
                serial,
                response: queued.answers.unwrap_or(self.peer_reconfig_requests.last()),
                last_tsn: self.flight.next_tsn() - 1,
                streams: streams.clone(),
            },
            Reconfiguration::ResetIncoming(streams) => {
                Reconfig::IncomingReset { serial, streams: streams.clone() }
            }
            Reconfiguration::AddOutgoing(streams) => Reconfig::AddOutgoing { serial, streams: *streams },
            Reconfiguration::AddIncoming(streams) => Reconfig::AddIncoming { serial, streams: *streams },
        };
        let path = self.paths.active;
        own.outstanding = Some(Box::new(OutstandingRequest {
            queued,
            serial,
            request: request.clone(),
            path,
            in_progress: false,
            done_after: None,
        }));
        self.start_reconfig(now, path);
        Some(request)
    }

    fn start_reconfig(&mut self, now: Time, path: usize) {
        self.timers.reconfig = Some(self.clock.expiry(now, self.paths.list[path].rto()));
    }

    /// Handles the expiry of the Re-configuration Timer: retransmits the request, on another path if possible. RFC
    /// 6525 sections 5.1.1 and 5.2.7 H2.
    pub(crate) fn on_reconfig_expired(&mut self, now: Time) {
        let Some(outstanding) = &mut self.own_reconfig_requests.outstanding else { return };
        let (path, request) = (outstanding.path, outstanding.request.clone());
        if !std::mem::take(&mut outstanding.in_progress) {
            if self.error_count >= self.config.association_max_retrans {
                return self.on_association_max_retrans();
            }
            self.count_timeout(now, path);
        }
        let path = self.paths.next_active(path).unwrap_or(path);
        if let Some(outstanding) = &mut self.own_reconfig_requests.outstanding {
            outstanding.path = path;
        }
        self.control.push_back((Some(path), Chunk::Reconfig(vec![request])));
        self.start_reconfig(now, path);
    }

    /// Processes a response. RFC 6525 section 5.2.7.
    pub(crate) fn on_reconfig_response(&mut self, now: Time, serial: ReconfigSerial, result: ReconfigResult) {
        let Some(outstanding) = &mut self.own_reconfig_requests.outstanding else { return };
        if outstanding.serial != serial || outstanding.done_after.is_some() {
            return;
        }
        let path = outstanding.path;
        (self.error_count, self.paths.list[path].error_count) = (0, 0);
        if result == ReconfigResult::IN_PROGRESS {
            outstanding.in_progress = true;
            return self.start_reconfig(now, path);
        }
        self.timers.reconfig = None;
        match &outstanding.request {
            Reconfig::OutgoingReset { last_tsn, .. } if result.is_success() => {
                outstanding.done_after = Some(*last_tsn);
            }
            _ => self.complete_request(result.is_success()),
        }
        self.continue_reconfiguration(now);
    }

    /// Completes resets whose data are acknowledged. RFC 6525 section 5.2.7 H4.
    fn complete_acknowledged(&mut self) -> bool {
        let acknowledged = self.flight.cumulative();
        let done_after =
            self.own_reconfig_requests.outstanding.as_ref().and_then(|outstanding| outstanding.done_after);
        let is_done = done_after.is_some_and(|last| last.at_or_before(acknowledged));
        if is_done {
            self.complete_request(true);
        }
        is_done
    }

    /// Completes the outstanding request if the peer's request answers it. RFC 6525 sections 5.2.2 E1 and 5.2.6.
    pub(crate) fn complete_if(&mut self, is_answered: impl FnOnce(&Reconfig) -> bool) {
        if self
            .own_reconfig_requests
            .outstanding
            .as_ref()
            .is_some_and(|outstanding| is_answered(&outstanding.request))
        {
            self.timers.reconfig = None;
            self.own_reconfig_requests.outstanding = None;
        }
    }

    fn complete_request(&mut self, done: bool) {
        let Some(outstanding) = self.own_reconfig_requests.outstanding.take() else { return };
        let what = outstanding.queued.request;
        match &what {
            Reconfiguration::ResetOutgoing(streams) => {
                if done {
                    self.streams_out.reset(streams);
                }
                self.streams_out.release();
            }
            Reconfiguration::AddOutgoing(more) if done => self.streams_out.add(*more),
            _ => {}
        }
        self.push_event(Event::Reconfigured { what, done });
    }
}
