//! Connects our end and another by octets on a wire in virtual time, which loses and reorders packets.

use std::collections::{BTreeMap, BTreeSet};

use hol_base::{Duration, Rng, Seed, Time};
use hol_transport::Endpoint;
use hol_wire::sctp::{self, Chunk, DataFlags};
use hol_wire::{Packet, Transport};

use super::{End, Ended, HERE, LOSSES, SIDES, Side, TALKS, Talk, Talker, Terms, own};

/// The parameters of an exchange.
struct Case<'a> {
    talk: &'a Talk,
    own_side: Side,
    terms: Terms,
    loss: f64,
    /// Maximum additional delay of a packet relative to the one before it.
    jitter: Duration,
    seed: Seed,
}

/// The wire between the two ends.
struct Wire {
    own_side: Side,
    loss: f64,
    jitter: Duration,
    chance: Rng,
    under_way: BTreeMap<(Time, u64), (Side, bytes::Bytes)>,
    sent: u64,
    /// Number of packets with I-DATA chunks.
    interleaved: u64,
    /// Number of packets with a checksum of zero, by end.
    without_checksum: [u64; 2],
    /// Whether the peer has sent its SHUTDOWN ACK, and then received an ABORT with the T bit, because our association has ended.
    ///
    /// Some peers send SACKs after their SHUTDOWN ACK. Such a SACK is answered with this ABORT (RFC 9260
    /// section 8.4), which may arrive before our SHUTDOWN COMPLETE, or instead of it. The peer reports an
    /// abort, although we have received its SHUTDOWN ACK.
    shut_down: bool,
    aborted_when_shut_down: bool,
    /// The last TSNs of messages that the peer has sent.
    ends: BTreeSet<u32>,
}

impl Wire {
    const DELAY: Duration = Duration::from_millis(10);

    fn new(case: &Case) -> Self {
        Self {
            own_side: case.own_side,
            loss: case.loss,
            jitter: case.jitter,
            chance: case.seed.derive("wire").rng(),
            under_way: BTreeMap::new(),
            sent: 0,
            interleaved: 0,
            without_checksum: [0; 2],
            shut_down: false,
            aborted_when_shut_down: false,
            ends: BTreeSet::new(),
        }
    }

    fn take(&mut self, now: Time, to: Side, packet: &Packet) {
        let Transport::Sctp(packet) = &packet.transport else { panic!("{packet} is no SCTP") };
        let has = |what: fn(&Chunk) -> bool| packet.chunks.iter().any(what);
        self.sent += 1;
        self.interleaved += u64::from(has(|chunk| matches!(chunk, Chunk::IData(_))));
        self.without_checksum[usize::from(to == self.own_side)] += u64::from(packet.zero_checksum);
        if to == self.own_side {
            let data = packet.chunks.iter().filter_map(Chunk::user_data);
            let ends = data.filter(|data| data.flags.contains(DataFlags::END));
            self.ends.extend(ends.map(|data| data.tsn.0));
        }
        self.shut_down |= to == self.own_side && has(|chunk| matches!(chunk, Chunk::ShutdownAck));
        if !self.chance.chance(self.loss) {
            let longer = Duration::from_nanos(self.chance.below(self.jitter.as_nanos() + 1));
            self.under_way.insert((now + Self::DELAY + longer, self.sent), (to, packet.to_bytes()));
        }
    }

    /// Records a packet that arrives at the peer.
    fn note(&mut self, packet: &sctp::Packet) {
        let is_abort = |chunk: &Chunk| matches!(chunk, Chunk::Abort { reflected: true, .. });
        self.aborted_when_shut_down |= self.shut_down && packet.chunks.iter().any(is_abort);
    }

    /// Runs until both ends are done, or nothing is pending; returns the time.
    fn carry<E: Endpoint, P: Endpoint>(&mut self, own: &mut Talker<E>, peer: &mut Talker<P>) -> Time {
        /// If nothing is due before this time, the exchange is over or stuck.
        const LIMIT: Time = Time::from_millis(600_000);
        let (own_side, peer_side) = (self.own_side, self.own_side.other());
        let mut now = Time::ZERO;
        own.begin(now);
        peer.begin(now);
        loop {
            let due = own.go_on(now, |packet| self.take(now, peer_side, &packet));
            let peer_due = peer.go_on(now, |packet| self.take(now, own_side, &packet));
            let is_over = own.done.ended.is_some() && peer.done.ended.is_some() && self.under_way.is_empty();
            let arrival = self.under_way.first_key_value().map(|((at, _), _)| *at);
            let next = Time::earliest([due, peer_due, arrival]).filter(|at| !is_over && *at < LIMIT);
            now = match next {
                Some(next) => next,
                None => return now,
            };
            while let Some(entry) = self.under_way.first_entry()
                && entry.key().0 <= now
            {
                let (to, octets) = entry.remove();
                let packet = sctp::Packet::parse(octets).unwrap();
                if to == own_side {
                    own.arrives(now, Packet::new(HERE, HERE, packet));
                } else {
                    self.note(&packet);
                    peer.arrives(now, Packet::new(HERE, HERE, packet));
                }
            }
        }
    }
}

/// Returns what went wrong, if anything did.
fn wrong(case: &Case, peer: impl Endpoint, leaves_unsent: bool) -> Option<String> {
    let Case { talk, own_side, terms, seed, .. } = *case;
    let mut wire = Wire::new(case);
    let mut own = Talker::new(own_side, talk, own(own_side, talk, terms, seed));
    let mut peer = Talker::new(own_side.other(), talk, peer);
    let now = wire.carry(&mut own, &mut peer);
    if wire.aborted_when_shut_down && own.done.ended == Some(Ended::Closed) {
        peer.done.ended = peer.done.ended.map(|_| Ended::Closed);
    }
    let has_left = own_side == Side::Server && talk.end == End::ClientCloses;
    if leaves_unsent && has_left && own.done.ended == Some(Ended::Closed) {
        own.done.got += talk.messages.saturating_sub(wire.ends.len() as u32);
    }
    let went_well = talk.went_well(own_side, &own.done) && talk.went_well(own_side.other(), &peer.done);
    let as_agreed = terms.interleaving == (wire.interleaved > 0)
        && [terms.zero_checksum; 2] == wire.without_checksum.map(|packets| packets > 0);
    (!went_well || !as_agreed).then(|| {
        format!("at {now} we {:?}, the peer {:?}, {} with I-DATA", own.done, peer.done, wire.interleaved)
    })
}

/// Runs every exchange, with us as client and as server, over wires with losses and over one with reordering;
/// `HOL_WIRES` sets the number of wires of each kind. A peer that `leaves_unsent` messages in its queues when
/// it closes is exempt from that check.
pub fn every_talk_goes_well<P: Endpoint>(
    terms: Terms,
    leaves_unsent: bool,
    peer: impl Fn(Side, &Talk, Seed) -> P,
) {
    let seeds = std::env::var("HOL_WIRES").ok().and_then(|count| count.parse().ok()).unwrap_or(1);
    let mut wires: Vec<_> = LOSSES.map(|loss| (loss, Duration::ZERO)).to_vec();
    wires.push((0.01, Duration::from_millis(15)));
    let (mut cases, mut problems) = (0, Vec::new());
    for (talk, own_side) in TALKS.iter().flat_map(|talk| SIDES.map(|side| (talk, side))) {
        for (loss, jitter) in wires.iter().copied() {
            for seed in (0..seeds).map(Seed) {
                let case = Case { talk, own_side, terms, loss, jitter, seed };
                cases += 1;
                if let Some(what) = wrong(&case, peer(own_side.other(), talk, seed), leaves_unsent) {
                    let name = own_side.name();
                    problems.push(format!(
                        "{}, we are the {name}, {loss} lost, {jitter} late, {seed:?}: {what}",
                        talk.name
                    ));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{} of {cases}:\n{}", problems.len(), problems.join("\n"));
}
