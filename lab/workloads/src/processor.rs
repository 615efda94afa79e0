//! The processor of a host, which needs time for each message that an application reads.
//!
//! All applications of a host share its processor, which serves one message at a time in the order of
//! reading. An application reads no more while its messages wait, so data stays in the transport, whose flow
//! control then stops the sender. After its message is served, the application may answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hol_base::{Duration, Time};

use crate::contract::{Application, Input, Output, Progress};
use crate::ledger::Ledger;

/// The processor of a host, which serves one message at a time; clones are the same processor.
#[derive(Debug, Clone)]
pub struct Processor {
    service: Duration,
    /// When the processor will have served all messages read so far, in ns of the common clock. Clones with different
    /// clocks share it.
    idle_from: Arc<AtomicU64>,
    /// Time of the common clock at which this clone's clock is zero, in ns.
    clock_zero: u64,
}

impl Processor {
    /// Creates a processor that needs `service` per message.
    pub(crate) fn new(service: Duration) -> Self {
        Self { service, idle_from: Arc::default(), clock_zero: 0 }
    }

    /// Returns the same processor for applications whose clock is zero at `clock_zero` ns of the common clock.
    pub fn with_clock_zero(self, clock_zero: u64) -> Self {
        Self { clock_zero, ..self }
    }

    /// Returns an application that behaves as `application` does, but whose messages wait for this processor.
    pub fn run(self, application: Box<dyn Application>) -> Box<dyn Application> {
        Box::new(ProcessorBoundApplication {
            application,
            processor: self,
            waiting_inputs: VecDeque::new(),
            state: ProcessorState::Idle,
        })
    }

    /// Reserves the processor for a message that is read now; returns when the processor starts to serve it.
    fn reserve(&self, now: Time) -> Time {
        let now = self.clock_zero + now.as_nanos();
        let after = |idle_from: u64| Some(idle_from.max(now).saturating_add(self.service.as_nanos()));
        let before = self.idle_from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after);
        Time::from_nanos(before.unwrap_or_default().max(now) - self.clock_zero)
    }
}

/// An application whose messages wait for its host's processor before they are handled.
#[derive(Debug)]
struct ProcessorBoundApplication {
    application: Box<dyn Application>,
    processor: Processor,
    /// Messages that have been read but not served, and inputs that arrived after them.
    waiting_inputs: VecDeque<Input>,
    state: ProcessorState,
}

/// The state of the processor as seen by an application.
#[derive(Debug, Clone, Copy)]
enum ProcessorState {
    /// The processor serves no message of the application.
    Idle,
    /// The processor starts to serve the oldest waiting message at this time.
    StartsAt(Time),
    /// The processor serves a message of the application until this time.
    EndsAt(Time),
}

impl ProcessorBoundApplication {
    /// Passes the oldest input to the application.
    fn take_oldest(&mut self, now: Time) {
        if let Some(input) = self.waiting_inputs.pop_front() {
            self.application.handle(now, input);
        }
    }

    /// Passes inputs to the application up to the next message, and reserves the processor for this message.
    fn start_next_message(&mut self, now: Time) {
        while matches!(self.state, ProcessorState::Idle) {
            match self.waiting_inputs.front() {
                Some(Input::Message(_)) => self.state = ProcessorState::StartsAt(self.processor.reserve(now)),
                Some(_) => self.take_oldest(now),
                None => return,
            }
        }
    }
}

impl Application for ProcessorBoundApplication {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            // The application must get the end of the peer's data after the waiting messages.
            Input::Message(_) | Input::PeerClosed(_) => self.waiting_inputs.push_back(input),
            other => self.application.handle(now, other),
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        match self.state {
            ProcessorState::StartsAt(at) | ProcessorState::EndsAt(at) if at > now => return Output::Wait(at),
            ProcessorState::StartsAt(at) => {
                self.state = ProcessorState::EndsAt(at + self.processor.service);
                self.take_oldest(now);
                return Output::Processed;
            }
            ProcessorState::EndsAt(_) => self.state = ProcessorState::Idle,
            ProcessorState::Idle => {}
        }
        // Output for the last message comes before the next message.
        match self.application.poll(now) {
            Output::Wait(_) if !self.waiting_inputs.is_empty() => {
                self.start_next_message(now);
                self.poll(now)
            }
            output => output,
        }
    }

    #[inline]
    fn progress(&self) -> Progress {
        self.application.progress()
    }

    fn is_reading(&self) -> bool {
        matches!(self.state, ProcessorState::Idle) && self.waiting_inputs.is_empty()
    }

    fn connected(&self, opened: Option<Time>) -> Option<Time> {
        self.application.connected(opened)
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
    use crate::padded_messages::Padding;
    use crate::{ConnectionId, Delivery, Host, StreamLayout, WorkloadSpec};
    use hol_transport::DeliveryTimes;

    const ID: ConnectionId = ConnectionId(0);

    fn echo(processor: &Processor) -> Box<dyn Application> {
        let spec: WorkloadSpec = serde_json::from_str("{\"kind\":\"echo\"}").unwrap();
        let lanes = StreamLayout {
            streams: 1,
            connections: 1,
            may_lose_messages: false,
            is_stream: true,
            handshake: None,
        };
        processor.clone().run(spec.server(lanes, 10, Host::default()))
    }

    fn deliver(server: &mut dyn Application, at: u64, padding: &mut Padding, number: u32) {
        let (payload, delivery_times) = (padding.message(number), DeliveryTimes::default());
        let delivery = Delivery { connection: ID, stream: 0, payload, delivery_times };
        server.handle(Time::from_millis(at), Input::Message(delivery));
    }

    /// Polls the application at the time `at` until it waits. Returns the number of its answers, and the time until
    /// which it waits.
    fn poll(server: &mut dyn Application, at: u64) -> (u32, Time) {
        let mut answers = 0;
        loop {
            match server.poll(Time::from_millis(at)) {
                Output::Send(_) => answers += 1,
                Output::Wait(until) => return (answers, until),
                Output::Processed | Output::Close(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn messages_are_served_one_at_a_time_and_reading_stops_meanwhile() {
        let mut server = echo(&Processor::new(Duration::from_millis(5)));
        let mut padding = Padding::new(8);
        assert!(server.is_reading());
        deliver(server.as_mut(), 1, &mut padding, 0);
        deliver(server.as_mut(), 1, &mut padding, 1);
        server.handle(Time::from_millis(1), Input::PeerClosed(ID));
        assert_eq!(poll(server.as_mut(), 1), (0, Time::from_millis(6)));
        assert_eq!((server.is_reading(), server.progress().messages_done), (false, 1));
        assert_eq!(poll(server.as_mut(), 6), (1, Time::from_millis(11)));
        assert!(!server.is_reading());
        assert_eq!(poll(server.as_mut(), 11), (1, Time::MAX));
        assert!(server.is_reading());
    }

    #[test]
    fn applications_of_a_host_share_its_processor_in_order_of_reading() {
        let processor = Processor::new(Duration::from_millis(5));
        let (mut one, mut other) =
            (echo(&processor.clone().with_clock_zero(0)), echo(&processor.with_clock_zero(2_000_000)));
        let mut padding = Padding::new(8);
        deliver(one.as_mut(), 10, &mut padding, 0);
        assert_eq!(poll(one.as_mut(), 10), (0, Time::from_millis(15)));
        // The second clock shows 9 ms when the first shows 11 ms.
        deliver(other.as_mut(), 9, &mut padding, 0);
        assert_eq!(poll(other.as_mut(), 9), (0, Time::from_millis(13)), "it begins when the first is served");
        assert_eq!(poll(one.as_mut(), 15), (1, Time::MAX));
        assert_eq!(poll(other.as_mut(), 13), (0, Time::from_millis(18)));
        deliver(one.as_mut(), 16, &mut padding, 1);
        assert_eq!(poll(one.as_mut(), 16), (0, Time::from_millis(20)));
        assert_eq!(poll(other.as_mut(), 18), (1, Time::MAX));
    }
}
