//! The handshake. RFC 9293 section 3.5 and 3.10.7.1 to 3.10.7.3.

use bytes::Bytes;
use hol_base::Time;
use hol_congestion::Algorithm;
use hol_transport::{Event, Failure};
use hol_wire::tcp::{Flags, Options, Segment, SeqNum};
use hol_wire::{Address, Ecn};

use crate::cwnd_validation::WindowUsage;
use crate::ecn::EcnState;
use crate::endpoint::initial_window;
use crate::loss_recovery::LossRecovery;
use crate::nagle::NagleState;
use crate::receive_sequence::ReceiveSequence;
use crate::rtt::Rtt;
use crate::scoreboard::{Scoreboard, SentSegment};
use crate::send_sequence::SendSequence;
use crate::timers::TimerPurpose;
use crate::{Config, Endpoint, State};

/// The peer's segment size in octets if it announces none. RFC 9293 section 3.7.1.
const DEFAULT_MSS: u16 = 536;
/// Minimum segment size of a peer in octets, for options and a few octets of data. Linux: TCP_MIN_SND_MSS.
const MIN_MSS: u16 = 48;

/// The options that both endpoints have agreed on in their SYNs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NegotiatedOptions {
    mss: u32,
    sack: bool,
    /// The time at which our first SYN was sent.
    first_syn: Time,
    /// Number of answers to SYNs that the peer has retransmitted.
    answers_again: u32,
}

impl NegotiatedOptions {
    /// Creates the state before any SYN.
    pub(crate) fn new(config: &Config) -> Self {
        Self { mss: config.mss.into(), sack: false, first_syn: Time::ZERO, answers_again: 0 }
    }

    /// Returns the payload length of a full-sized segment in octets. RFC 9293 section 3.7.1.
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// Returns when our first SYN was sent.
    pub(crate) fn first_syn(&self) -> Time {
        self.first_syn
    }

    /// Returns whether both endpoints support SACK. RFC 2018 section 2.
    pub(crate) fn uses_sack(&self) -> bool {
        self.sack
    }
}

impl Endpoint {
    /// Sends a SYN to open the connection.
    pub(crate) fn open(&mut self, now: Time) {
        if self.machine.state() != State::Closed || self.remote.is_none() || self.snd.is_iss_set() {
            return;
        }
        self.machine.open();
        self.choose_sequence_number();
        self.send_syn(now, self.marks.syn_flags(Flags::SYN));
    }

    /// Chooses a random initial sequence number. RFC 9293 section 3.4.1. Zero is not used: it means that the
    /// connection was never opened.
    fn choose_sequence_number(&mut self) {
        self.snd.set_iss(SeqNum(self.rng.next_u32().max(1)));
    }

    /// Sends a SYN or SYN-ACK, and adds it to the retransmission queue.
    fn send_syn(&mut self, now: Time, flags: Flags) {
        let seq = self.snd.una();
        self.negotiated.first_syn = now;
        self.snd.on_syn_sent();
        self.board = Scoreboard::default();
        self.board.push(SentSegment::new(now, seq, flags, Bytes::new()));
        self.transmit(now, seq, flags, Bytes::new(), (now, false));
        self.timers.arm(now, TimerPurpose::Retransmission, self.rtt.rto());
    }

    /// Returns the options of our SYN, or of our SYN-ACK, which accepts options of the peer.
    pub(crate) fn syn_options(&self, now: Time, flags: Flags) -> Options {
        let answer = flags.contains(Flags::ACK);
        let offers_scale = self.config.window_scale > 0 && (!answer || self.rcv.is_scaled());
        let stamps = if answer { self.timestamps.are_enabled() } else { self.config.timestamps };
        let is_first = self.board.front().is_some_and(|syn| !syn.ever_resent);
        Options {
            mss: Some(self.config.mss),
            window_scale: offers_scale.then_some(self.config.window_scale),
            sack_permitted: if answer { self.negotiated.uses_sack() } else { self.config.sack },
            timestamps: stamps.then(|| self.timestamps.option(now)),
            accurate_ecn: if answer && is_first { self.marks.option_of_syn_ack() } else { None },
            ..Options::default()
        }
    }

    /// Negotiates the options from the peer's SYN or SYN-ACK.
    fn negotiate(&mut self, ecn: Ecn, syn: &Segment) {
        let Options { mss, window_scale, sack_permitted, timestamps, accurate_ecn, sack: _, mptcp: _ } =
            &syn.options;
        self.timestamps.negotiate(self.config.timestamps, *timestamps);
        let scale = window_scale.filter(|_| self.config.window_scale > 0);
        let negotiated = u32::from(mss.unwrap_or(DEFAULT_MSS).max(MIN_MSS).min(self.config.mss));
        let mss = negotiated - self.timestamps.length();
        self.negotiated =
            NegotiatedOptions { mss, sack: self.config.sack && *sack_permitted, ..self.negotiated };
        self.marks.negotiate(syn.flags, ecn);
        self.marks.accurate().on_first_option(accurate_ecn.as_deref());
        self.snd.on_syn(syn, scale);
        self.rcv.on_syn(syn.seq, scale.map(|_| self.config.window_scale));
    }

    /// Processes a segment in LISTEN. RFC 9293 section 3.10.7.2.
    pub(crate) fn segment_arrives_in_listen(
        &mut self,
        now: Time,
        source: Address,
        ecn: Ecn,
        segment: &Segment,
    ) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            self.reject(source, segment);
        } else if segment.flags.contains(Flags::SYN) {
            self.remote = Some((source, segment.source_port));
            self.machine.on_syn_received();
            self.choose_sequence_number();
            self.negotiate(ecn, segment);
            self.send_syn(now, self.marks.syn_flags(Flags::SYN | Flags::ACK));
        }
    }

    /// Processes a segment in SYN-SENT. RFC 9293 section 3.10.7.3.
    pub(crate) fn segment_arrives_in_syn_sent(
        &mut self,
        now: Time,
        source: Address,
        ecn: Ecn,
        segment: &Segment,
    ) {
        let has = |flag| segment.flags.contains(flag);
        if has(Flags::ACK) && segment.ack != self.snd.nxt() {
            if !has(Flags::RST) {
                self.reject(source, segment);
            }
            return;
        }
        if has(Flags::RST) {
            if has(Flags::ACK) {
                self.end(Event::Failed { reason: Failure::Refused });
            }
            return;
        }
        if !has(Flags::SYN) {
            return;
        }
        self.negotiate(ecn, segment);
        if has(Flags::ACK) {
            self.process_ack(now, segment);
            self.establish(now);
            self.send_ack(now);
            self.push_pending(now);
        } else {
            // Simultaneous open. RFC 9293 section 3.5, figure 7.
            self.machine.on_syn_received();
            self.send_syn(now, self.marks.syn_flags(Flags::SYN | Flags::ACK));
        }
    }

    /// Answers a SYN that the peer has retransmitted, because our SYN-ACK was lost.
    pub(crate) fn answer_retransmitted_syn(&mut self, now: Time, again: Flags, ecn: Ecn) {
        let Some(syn) = self.board.front() else { return };
        self.marks.on_retransmitted_syn(again, ecn);
        let (seq, flags) = (syn.seq, self.marks.retransmitted_syn_flags(syn.flags, false));
        self.negotiated.answers_again += 1;
        // A retransmitted SYN-ACK provides no round-trip sample (Karn).
        self.board.note_retransmission(0, now, true, None);
        self.transmit(now, seq, flags, Bytes::new(), (now, false));
        // This counts as a retransmission: the next one is not due before the peer could answer. Linux: tcp_check_req.
        self.timers.arm(now, TimerPurpose::Retransmission, self.rtt.rto());
    }

    /// Returns whether the peer has started the handshake but not completed it.
    pub(crate) fn is_embryonic(&self) -> bool {
        self.machine.state() == State::SynReceived && self.machine.is_passive()
    }

    /// Returns to LISTEN after a failed handshake, without telling the application. RFC 9293 section 3.10.7.4,
    /// second and fourth.
    pub(crate) fn listen_again(&mut self) {
        self.machine.listen_again();
        self.remote = None;
        self.negotiated = NegotiatedOptions::new(&self.config);
        self.timers.stop();
        (self.snd, self.rcv) = (SendSequence::default(), ReceiveSequence::default());
        self.board = Scoreboard::default();
        self.episode = LossRecovery::new(&self.config);
        self.rtt = Rtt::new(&self.config);
        self.marks = EcnState::new(&self.config);
    }

    /// Establishes the connection: the handshake is complete.
    pub(crate) fn establish(&mut self, now: Time) {
        self.machine.establish();
        let congested = self.syn_was_lost();
        self.episode = LossRecovery::new(&self.config);
        // Without marks these controllers do not detect congestion. RFC 8257 section 3.1, RFC 9331 section 4.1.
        let algorithm = match self.config.congestion {
            Algorithm::Dctcp | Algorithm::Prague if !self.marks.is_negotiated() => Algorithm::Reno,
            algorithm => algorithm,
        };
        self.cwnd = initial_window(&self.config, algorithm, self.negotiated.mss());
        if congested {
            self.cwnd.set_cwnd(self.cwnd.quantum());
        }
        self.grow_send_buffer();
        self.init_pacing(now);
        self.rtt.on_established();
        self.acks.on_established(now);
        let mss = self.advertised_mss();
        self.buffer.on_established(mss, self.rcv.is_scaled());
        self.sizing.on_established(
            now,
            self.rcv.nxt(),
            self.buffer.first_round_octets(self.rcv.offered(), mss),
        );
        self.usage = WindowUsage::begin(self.snd.una(), now);
        self.update_rate();
        self.small = NagleState::begin(self.snd.una());
        self.start_keepalive(now);
        self.reader.push_event(Event::Connected);
    }

    /// Returns whether the SYN was probably lost to congestion, so that the initial window is one segment (RFC
    /// 5681 section 3.1). That is so if it was sent more than twice, because RFC 6928 section 2 tolerates one
    /// loss, and if the peer does not echo the timestamp of the first SYN. Linux: tcp_init_transfer,
    /// tcp_try_undo_spurious_syn.
    fn syn_was_lost(&self) -> bool {
        let timeouts = self.episode.timeouts.syn_timeouts();
        let again = timeouts + self.negotiated.answers_again;
        timeouts > 0 && again > 1 && !self.timestamps.echoes_time(self.negotiated.first_syn)
    }

    /// Answers a segment that belongs to no connection with a reset, if an answer is permitted.
    pub(crate) fn reject(&mut self, source: Address, segment: &Segment) {
        let Some(reset) = reset_for(segment) else { return };
        let known = self.remote.replace((source, segment.source_port));
        self.send_to_peer(Ecn::NotCapable, |_, _| reset);
        self.remote = known;
    }
}

/// Returns the reset with which a closed port answers a segment; `None` if it must not answer. RFC 9293 section
/// 3.10.7.1.
pub fn reset_for(segment: &Segment) -> Option<Segment> {
    if segment.flags.contains(Flags::RST) {
        return None;
    }
    let answers = segment.flags.contains(Flags::ACK);
    Some(Segment {
        source_port: segment.destination_port,
        destination_port: segment.source_port,
        seq: if answers { segment.ack } else { SeqNum(0) },
        ack: segment.seq + segment.sequence_length(),
        flags: if answers { Flags::RST } else { Flags::RST | Flags::ACK },
        window: 0,
        options: Options::default(),
        payload: Bytes::new(),
        stamp: Default::default(),
    })
}
