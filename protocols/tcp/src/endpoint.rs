//! One end of a TCP connection: its inputs and outputs.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use hol_base::{Duration, Rng, Time};
use hol_congestion::{Algorithm, CongestionWindow};
use hol_transport::{Command, Event, Input, Output, PathState, ReceivingApplication, Statistics};
use hol_wire::{Address, Packet, Transport};

use crate::connect::NegotiatedOptions;
use crate::cwnd_validation::WindowUsage;
use crate::delayed_ack::DelayedAckState;
use crate::ecn::EcnState;
use crate::keepalive::KeepAlive;
use crate::loss_recovery::LossRecovery;
use crate::nagle::NagleState;
use crate::pacing::Pacer;
use crate::packet_memory::PacketMemory;
use crate::reassembly::Reassembly;
use crate::receive_buffer::ReceiveBuffer;
use crate::receive_sequence::ReceiveSequence;
use crate::right_sizing::RightSizing;
use crate::rtt::Rtt;
use crate::scoreboard::Scoreboard;
use crate::send_queue::SendQueue;
use crate::send_sequence::SendSequence;
use crate::state_machine::StateMachine;
use crate::timers::{Clock, ExpiredTimer, TimerPurpose, Timers};
use crate::timestamps::Timestamps;
use crate::{Config, CongestionUnit, State};

/// One end of a TCP connection.
#[derive(Debug)]
pub struct Endpoint {
    /// The configuration. All connections of a flow share it, so that it stays in the processor's cache.
    pub(crate) config: Arc<Config>,
    pub(crate) local: (Address, u16),
    pub(crate) remote: Option<(Address, u16)>,
    pub(crate) machine: StateMachine,
    pub(crate) rng: Rng,
    pub(crate) negotiated: NegotiatedOptions,
    pub(crate) marks: EcnState,
    pub(crate) queue: SendQueue,
    /// How much memory packets use in the buffers.
    pub(crate) memory: PacketMemory,
    /// Current limit of the send buffer. Linux: sk_sndbuf.
    send_buffer: u64,
    pub(crate) small: NagleState,
    pub(crate) snd: SendSequence,
    pub(crate) rcv: ReceiveSequence,
    pub(crate) reassembly: Reassembly,
    pub(crate) buffer: ReceiveBuffer,
    pub(crate) sizing: RightSizing,
    /// When an unacceptable segment without data was last answered.
    pub(crate) last_challenge: Option<Time>,
    pub(crate) acks: DelayedAckState,
    pub(crate) board: Scoreboard,
    pub(crate) cwnd: CongestionWindow,
    pub(crate) usage: WindowUsage,
    pub(crate) pacer: Pacer,
    pub(crate) episode: LossRecovery,
    pub(crate) rtt: Rtt,
    pub(crate) timestamps: Timestamps,
    /// The latest reading of the clock for timestamps. Linux: tcp_mstamp.
    pub(crate) clock_reading: Time,
    pub(crate) timers: Timers,
    pub(crate) keepalive: KeepAlive,
    /// Packets that the next calls of `poll` return, in order.
    pub(crate) packets: VecDeque<Packet>,
    /// Events that wait for the application.
    pub(crate) reader: ReceivingApplication,
    /// Whether `can_send` has returned false since the last event `Writable`.
    blocked: Cell<bool>,
    /// Whether less than a third of the send buffer was free when the application last polled the socket. Linux:
    /// SOCK_NOSPACE.
    is_send_buffer_short: bool,
    /// When the application last received data; `None` if it has polled the socket since.
    turn_start: Option<Time>,
    /// Whether new data wait until the network layer has sent the packets in its queue.
    pub(crate) is_throttled: bool,
    /// Whether `accepts` has accepted only a part of a write of the application.
    partial: Cell<bool>,
    /// Whether the next write continues a part that was written before.
    pub(crate) continues_write: bool,
    pub(crate) statistics: Statistics,
}

impl Endpoint {
    /// Creates a client endpoint, which opens the connection when it receives `Connect`.
    pub fn connect(
        config: impl Into<Arc<Config>>,
        local: (Address, u16),
        remote: (Address, u16),
        rng: Rng,
    ) -> Self {
        Self::new(config.into(), local, Some(remote), State::Closed, rng)
    }

    /// Creates an endpoint that waits for one connection.
    pub fn listen(config: impl Into<Arc<Config>>, local: (Address, u16), rng: Rng) -> Self {
        Self::new(config.into(), local, None, State::Listen, rng)
    }

    fn new(
        config: Arc<Config>,
        local: (Address, u16),
        remote: Option<(Address, u16)>,
        state: State,
        mut rng: Rng,
    ) -> Self {
        let clock = Clock::new(config.clock_granularity, config.timer_wheel);
        Self {
            local,
            remote,
            machine: StateMachine::new(state),
            negotiated: NegotiatedOptions::new(&config),
            marks: EcnState::new(&config),
            queue: SendQueue::default(),
            memory: PacketMemory::new(config.packet_head),
            send_buffer: config.send_buffer.0,
            small: NagleState::default(),
            snd: SendSequence::default(),
            rcv: ReceiveSequence::default(),
            reassembly: Reassembly::default(),
            buffer: ReceiveBuffer::new(&config),
            sizing: RightSizing::default(),
            last_challenge: None,
            acks: DelayedAckState::new(&config),
            board: Scoreboard::default(),
            cwnd: initial_window(&config, config.congestion, config.mss.into()),
            usage: WindowUsage::default(),
            pacer: Pacer::default(),
            episode: LossRecovery::new(&config),
            rtt: Rtt::new(&config),
            timestamps: Timestamps::new(config.timestamp_clock, rng.next_u32()),
            clock_reading: Time::ZERO,
            timers: Timers::new(clock),
            keepalive: KeepAlive::default(),
            packets: VecDeque::new(),
            reader: ReceivingApplication::new(config.wakeup),
            blocked: Cell::new(false),
            is_send_buffer_short: false,
            turn_start: None,
            is_throttled: false,
            partial: Cell::new(false),
            continues_write: false,
            statistics: Statistics::default(),
            config,
            rng,
        }
    }

    /// Returns whether the connection has ended and the endpoint may be dropped.
    pub fn is_closed(&self) -> bool {
        self.machine.state() == State::Closed && self.snd.is_iss_set() && self.reader.is_empty()
    }

    /// Returns the state of the connection.
    pub fn state(&self) -> State {
        self.machine.state()
    }

    /// Returns the name of the connection's state in RFC 9293.
    pub fn state_name(&self) -> &'static str {
        self.machine.state().name()
    }

    /// Returns the congestion window in the configured unit (segments or octets).
    pub fn cwnd(&self) -> u32 {
        self.cwnd.cwnd()
    }

    /// Returns the slow start threshold in the configured unit (segments or octets).
    pub fn ssthresh(&self) -> u32 {
        self.cwnd.ssthresh()
    }

    /// Returns the smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    /// Returns the retransmission timeout, including its back-off.
    pub fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// Returns the peer's address and port; `None` before they are known.
    pub fn remote(&self) -> Option<(Address, u16)> {
        self.remote
    }

    /// Returns whether received data wait that the application has not read.
    pub fn has_unread(&self) -> bool {
        self.reader.unread() > 0
    }

    /// Sets the configuration from now on, except for the options that the handshake has negotiated. Linux:
    /// do_tcp_setsockopt, sk_setsockopt.
    pub fn set_config(&mut self, config: impl Into<Arc<Config>>) {
        let config = config.into();
        if config.send_buffer != self.config.send_buffer {
            self.send_buffer = config.send_buffer.0;
        }
        self.config = config;
    }

    fn command(&mut self, now: Time, command: Command) {
        match command {
            Command::Connect => self.open(now),
            Command::Send(message) => self.write(now, message.payload),
            Command::Close => self.close(now),
            Command::Reconfigure(what) => self.reader.push_event(Event::Reconfigured { what, done: false }),
            Command::Abort => self.abort(now),
            Command::Read(reads) => self.reader.set_reading(reads),
        }
    }

    fn expired(&mut self, now: Time, timer: ExpiredTimer) {
        self.end_turn();
        // tcp_compressed_ack_kick of Linux 6.12 does not call tcp_mstamp_refresh.
        if timer != ExpiredTimer::CompressedAck || self.config.sack_compression_reads_clock {
            self.clock_reading = now;
        }
        match timer {
            ExpiredTimer::DelayedAck => self.on_delayed_ack_expired(now),
            ExpiredTimer::CompressedAck | ExpiredTimer::HastenedAck => self.send_ack(now),
            ExpiredTimer::Departure => self.on_departure_due(now),
            ExpiredTimer::TimeWait => self.machine.end(),
            ExpiredTimer::Sender(TimerPurpose::Retransmission) => self.on_retransmission_timeout(now),
            ExpiredTimer::Sender(TimerPurpose::LossProbe) => self.send_loss_probe(now),
            ExpiredTimer::Sender(TimerPurpose::Reordering) => self.on_reordering_timeout(now),
            ExpiredTimer::Sender(TimerPurpose::Persist) => self.on_persist_timeout(now),
            ExpiredTimer::KeepAlive => self.on_keepalive_timeout(now),
        }
    }

    /// Returns whether the state of the connection permits the application to write.
    fn may_write(&self) -> bool {
        self.machine.state().may_send() && self.queue.is_open()
    }

    /// Returns how many octets the send buffer accepts now. As in Linux (tcp_sendmsg_locked), a block may be
    /// started if there is any room, and is then filled.
    fn writable(&self) -> usize {
        let space = self.send_space();
        if !self.uses_segmentation_offload() {
            return space;
        }
        let size = self.block_size();
        match self.queue.room(size) {
            0 if space > 0 => size,
            room => room,
        }
    }

    /// Returns whether the send buffer has room for a write. If not, the event `Writable` follows later.
    pub(crate) fn has_room(&self) -> bool {
        let room = self.writable() > 0;
        self.blocked.set(!room);
        room
    }

    /// Returns whether the next write is only the accepted part of a write of the application. Resets this state.
    pub(crate) fn take_is_partial_write(&self) -> bool {
        self.partial.take()
    }

    /// Returns the memory that the send buffer uses, in octets. Linux: sk_wmem_queued.
    pub(crate) fn send_memory(&self) -> usize {
        let blocks = self.queue.blocks() * self.memory.without_data() as usize;
        self.queue.length() + blocks + self.board.memory()
    }

    /// Returns the free space of the send buffer, in octets.
    fn send_space(&self) -> usize {
        (self.send_buffer as usize).saturating_sub(self.send_memory())
    }

    /// Enlarges the send buffer as the congestion window grows, if permitted. Linux: tcp_sndbuf_expand.
    pub(crate) fn grow_send_buffer(&mut self) {
        let max = self.config.send_buffer_max.0;
        self.send_buffer = self.send_buffer.max(self.send_buffer_for_window().min(max));
    }

    /// Tells a blocked application when a third of the send buffer is free again. First enlarges a buffer that is
    /// too small for the congestion window. Linux: tcp_check_space.
    pub(crate) fn check_space(&mut self) {
        if !(self.blocked.get() || self.is_send_buffer_short) {
            return;
        }
        if self.in_flight() < self.cwnd.cwnd() {
            self.grow_send_buffer();
        }
        if self.is_writable() {
            self.is_send_buffer_short = false;
            if self.blocked.take() {
                self.reader.push_event(Event::Writable);
            }
        }
    }

    /// Returns whether at least a third of the send buffer is free. Linux: sk_stream_is_writeable.
    fn is_writable(&self) -> bool {
        3 * self.send_space() >= self.send_buffer as usize
    }

    /// Handles a poll of the socket by the application: records whether the send buffer is short of space. Linux:
    /// tcp_poll.
    pub(crate) fn on_application_poll(&mut self) {
        self.is_send_buffer_short |= self.uses_segmentation_offload() && !self.is_writable();
    }

    /// Handles the end of the application's turn. After it has processed its data, the application polls the
    /// socket again before it sleeps. Linux: fs/eventpoll.c ep_send_events puts a ready socket back on the list
    /// and polls it once more.
    pub(crate) fn end_turn(&mut self) {
        if self.turn_start.take().is_some() {
            self.on_application_poll();
        }
    }

    /// Ends the application's turn if it began before `now`. A write at the same time still belongs to the turn.
    pub(crate) fn end_turn_before(&mut self, now: Time) {
        if self.turn_start.is_some_and(|began| began < now) {
            self.end_turn();
        }
    }

    /// Ends the connection at once, and reports `event`.
    pub(crate) fn end(&mut self, event: Event) {
        self.machine.end();
        self.timers.stop();
        self.queue.clear();
        self.reader.push_event(event);
    }
}

/// Returns the congestion window of a new connection.
pub(crate) fn initial_window(config: &Config, algorithm: Algorithm, mss: u32) -> CongestionWindow {
    let quantum = match config.congestion_unit {
        CongestionUnit::Packets => 1,
        CongestionUnit::Bytes => mss,
    };
    CongestionWindow::new(algorithm, quantum, config.initial_window * quantum, config.hystart)
}

impl hol_transport::Endpoint for Endpoint {
    fn handle(&mut self, now: Time, input: Input) {
        self.clock_reading = now;
        match input {
            Input::Command(command) => self.command(now, command),
            Input::AddressAdded(_) => {}
            Input::AddressRemoved(address) => self.on_address_removed(address),
            Input::Packet(packet) if packet.corrupted => {}
            Input::Packet(packet) => {
                if let Transport::Tcp(mut segment) = packet.transport {
                    self.segment_arrives(now, packet.source, packet.ecn, &mut segment);
                }
            }
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        loop {
            if let Some(packet) = self.packets.pop_front() {
                return Output::Transmit(packet);
            }
            if std::mem::take(&mut self.is_throttled) {
                self.on_departure_due(now);
                self.board.note_new_data_before(now);
                continue;
            }
            if self.reader.has_resumed() {
                self.clock_reading = now;
                self.on_buffer_space_freed(now);
                continue;
            }
            if let Some(event) = self.reader.next_event() {
                self.turn_start = Some(now);
                return Output::Event(event);
            }
            if self.reader.wake_if_due(now) {
                self.clock_reading = now;
                self.on_data_read(now);
                continue;
            }
            let next = Time::earliest([self.timers.next(), self.reader.deadline()]);
            if next.is_none_or(|at| at > now) {
                return Output::Wait(next);
            }
            if let Some(timer) = self.timers.expire(now) {
                self.expired(now, timer);
            }
        }
    }

    fn can_send(&self, length: usize) -> bool {
        let idle = self.queue.is_empty() && self.board.len() == 0;
        let fits = self.may_write() && (idle || length <= self.writable());
        if !fits {
            self.blocked.set(true);
        }
        fits
    }

    fn accepts(&self, length: usize) -> usize {
        if !self.uses_segmentation_offload() {
            return if self.can_send(length) { length } else { 0 };
        }
        let is_easy =
            self.queue.blocks() == 0 && length <= self.guaranteed_block_size() && self.send_space() > 0;
        let accepted = match self.may_write() {
            true if is_easy => length,
            true => self.writable().min(length),
            false => 0,
        };
        self.partial.set(accepted > 0 && accepted < length);
        if accepted == 0 {
            self.blocked.set(true);
        }
        accepted
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn paths(&self, tell: &mut dyn FnMut(PathState)) {
        let Some((peer, _)) = self.remote.filter(|_| self.machine.state() != State::Closed) else { return };
        let octets = |units: u32| match self.config.congestion_unit {
            CongestionUnit::Packets => u64::from(units) * u64::from(self.negotiated.mss()),
            CongestionUnit::Bytes => units.into(),
        };
        let ssthresh = Some(self.ssthresh()).filter(|units| *units < CongestionWindow::INFINITE);
        tell(PathState {
            peer,
            cwnd: Some(octets(self.cwnd())),
            ssthresh: ssthresh.map(octets),
            srtt: self.srtt(),
            pacing_rate: self.cwnd.pacing().map(|pacing| pacing.rate),
            in_flight: Some(self.board.in_flight(CongestionUnit::Bytes).into()),
        });
    }
}
