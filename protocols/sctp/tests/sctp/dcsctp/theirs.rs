//! Implements our `Endpoint` trait for dcsctp.

use bytes::Bytes;
use dcsctp::api::{
    DcSctpSocket, ErrorKind, Message, Options, PpId, SendOptions, SocketEvent, SocketState, SocketTime,
    StreamId,
};
use hol_base::Time;
use hol_transport::{
    Command, DeliveryTimes, Endpoint, Event, Failure, Input, Output, ReceivedData, Reconfiguration,
    Reliability, Statistics,
};
use hol_wire::{Packet, Transport, sctp};

use crate::talks::{HERE, Side, Talk};

pub struct Theirs {
    socket: Box<dyn DcSctpSocket>,
    streams: u16,
    statistics: Statistics,
    /// Whether we have aborted: after an abort the library reports a normal close.
    aborts: bool,
}

impl Theirs {
    /// Maximum number of octets in its queues.
    const ROOM: usize = 1_000_000;

    pub fn new(side: Side, talk: &Talk, options: &Options) -> Self {
        let options = Options {
            local_port: side.port(),
            remote_port: side.other().port(),
            mtu: 1400 - hol_wire::ip_header_length(HERE),
            announced_maximum_outgoing_streams: talk.streams,
            max_message_size: Self::ROOM,
            max_receiver_window_buffer_size: Self::ROOM,
            ..options.clone()
        };
        Self::start(&options, talk.streams)
    }

    /// Returns an endpoint with the library's default options.
    pub fn with_defaults(side: Side) -> Self {
        let options =
            Options { local_port: side.port(), remote_port: side.other().port(), ..Options::default() };
        Self::start(&options, 1)
    }

    fn start(options: &Options, streams: u16) -> Self {
        let socket = dcsctp::new_socket("", options);
        Self { socket, streams, statistics: Statistics::default(), aborts: false }
    }

    fn advance(&mut self, now: Time) {
        self.socket.advance_time(SocketTime::zero() + std::time::Duration::from_nanos(now.as_nanos()));
    }

    fn send(&mut self, message: hol_transport::Message) {
        let hol_transport::Message { stream, unordered, reliability, ppid, payload } = message;
        let (mut lifetime, mut max_retransmissions) = (None, None);
        match reliability {
            Reliability::Full => {}
            Reliability::Lifetime(time) => {
                lifetime = Some(std::time::Duration::from_nanos(time.as_nanos()));
            }
            Reliability::Retransmissions(max) => max_retransmissions = Some(max as u16),
        }
        let how = SendOptions { unordered, lifetime, max_retransmissions, lifecycle_id: None };
        self.socket.send(Message::new(StreamId(stream), PpId(ppid), payload.to_vec()), &how).unwrap();
    }

    fn event(&mut self, event: SocketEvent) -> Option<Output> {
        Some(match event {
            SocketEvent::SendPacket(octets) => {
                let packet = sctp::Packet::parse(Bytes::from(octets)).unwrap();
                Output::Transmit(Packet::new(HERE, HERE, packet))
            }
            SocketEvent::OnConnected() => Output::Event(Event::Connected),
            SocketEvent::OnClosed() if self.aborts => {
                Output::Event(Event::Failed { reason: Failure::Aborted })
            }
            SocketEvent::OnClosed() => Output::Event(Event::Closed),
            SocketEvent::OnStreamsResetPerformed(streams) => {
                reconfigured(Reconfiguration::ResetOutgoing(numbers(&streams)))
            }
            SocketEvent::OnIncomingStreamReset(streams) => {
                reconfigured(Reconfiguration::ResetIncoming(numbers(&streams)))
            }
            SocketEvent::OnAborted(ErrorKind::PeerReported, _) => {
                Output::Event(Event::Failed { reason: Failure::AbortedByPeer })
            }
            SocketEvent::OnAborted(kind, why) => panic!("dcsctp gave up: {kind:?}, {why}"),
            _ => return None,
        })
    }
}

fn numbers(streams: &[StreamId]) -> Vec<u16> {
    streams.iter().map(|stream| stream.0).collect()
}

fn reconfigured(what: Reconfiguration) -> Output {
    Output::Event(Event::Reconfigured { what, done: true })
}

impl Endpoint for Theirs {
    fn handle(&mut self, now: Time, input: Input) {
        self.advance(now);
        match input {
            Input::Packet(packet) => {
                let Transport::Sctp(packet) = packet.transport else { return };
                self.socket.handle_input(&packet.to_bytes());
            }
            Input::Command(Command::Connect) => self.socket.connect(),
            Input::Command(Command::Send(message)) => self.send(message),
            Input::Command(Command::Reconfigure(Reconfiguration::ResetOutgoing(streams))) => {
                let streams: Vec<StreamId> = streams.into_iter().map(StreamId).collect();
                self.socket.reset_streams(&streams).unwrap();
            }
            Input::Command(Command::Close) => self.socket.shutdown(),
            Input::Command(Command::Abort) => {
                self.aborts = true;
                self.socket.close();
            }
            Input::Command(Command::Reconfigure(_) | Command::Read(_))
            | Input::AddressAdded(_)
            | Input::AddressRemoved(_) => {}
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        self.advance(now);
        if let Some(message) = self.socket.get_next_message() {
            let Message { stream_id, ppid, payload } = message;
            let received = ReceivedData {
                stream: stream_id.0,
                unordered: false,
                ppid: ppid.0,
                payload: payload.into(),
                delivery_times: DeliveryTimes::default(),
            };
            return Output::Event(Event::Received(received));
        }
        while let Some(event) = self.socket.poll_event() {
            if let Some(output) = self.event(event) {
                return output;
            }
        }
        let due = self.socket.poll_timeout();
        // A deadline that is due now is handled at the next nanosecond.
        let at = Time::from_nanos((due - SocketTime::zero()).as_nanos() as u64);
        Output::Wait(
            (due != SocketTime::infinite_future()).then(|| at.max(now + hol_base::Duration::from_nanos(1))),
        )
    }

    fn can_send(&self, length: usize) -> bool {
        let queued: usize =
            (0..self.streams).map(|stream| self.socket.buffered_amount(StreamId(stream))).sum();
        self.socket.state() == SocketState::Connected && queued + length <= Self::ROOM
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}
