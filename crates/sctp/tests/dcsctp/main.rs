//! Our SCTP and dcsctp's, WebRTC's, which nobody here wrote, octets on a wire in virtual time: who is server and who client, what is
//! sent, who ends it and how, over packets that are lost and overtake each other. `HOL_WIRES` says how many wires of each kind.

#[path = "../talks/mod.rs"]
mod talks;
mod theirs;

use std::collections::{BTreeMap, BTreeSet};

use dcsctp::api::{
    Options, ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_LOWER_LAYER_DTLS as OVER_DTLS,
    ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_NONE as NO_METHOD,
};
use hol_base::{Duration, Rng, Seed, Time};
use hol_wire::sctp::{self, Chunk, DataFlags};
use hol_wire::{Packet, Transport};

use crate::talks::{End, Ended, HERE, LOSSES, SIDES, Side, TALKS, Talk, Talker, Terms};
use crate::theirs::Theirs;

/// Between the two ends.
struct Wire {
    own_side: Side,
    loss: f64,
    /// A packet may take so much longer than the one before it.
    jitter: Duration,
    chance: Rng,
    under_way: BTreeMap<(Time, u64), (Side, bytes::Bytes)>,
    sent: u64,
    /// Packets with I-DATA chunks.
    interleaved: u64,
    /// Packets with a checksum of zero, by either end.
    without_checksum: [u64; 2],
    /// dcsctp has sent its SHUTDOWN ACK, and then heard by an ABORT with the T bit that we know of no association any more.
    ///
    /// It sends SACKs behind its SHUTDOWN ACK. One that comes after this is answered so (RFC 9260 section 8.4), and the answer may come before
    /// our SHUTDOWN COMPLETE, or instead of it. dcsctp takes it for an abort; but who sent it has had the SHUTDOWN ACK.
    shut_down: bool,
    aborted_when_shut_down: bool,
    /// The last TSNs of messages that dcsctp has sent: it may send SHUTDOWN while some still wait in its queues, though an association
    /// stays in SHUTDOWN-PENDING until all is acknowledged (RFC 9260 section 9.2).
    ends: BTreeSet<u32>,
}

impl Wire {
    const DELAY: Duration = Duration::from_millis(10);

    fn new(own_side: Side, loss: f64, jitter: Duration, chance: Rng) -> Self {
        Self {
            own_side,
            loss,
            jitter,
            chance,
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

    /// What comes to dcsctp.
    fn note(&mut self, packet: &sctp::Packet) {
        let is_abort = |chunk: &Chunk| matches!(chunk, Chunk::Abort { reflected: true, .. });
        self.aborted_when_shut_down |= self.shut_down && packet.chunks.iter().any(is_abort);
    }
}

/// What went wrong, if anything did.
fn wrong(talk: &Talk, terms: Terms, mut wire: Wire, seed: Seed) -> Option<String> {
    /// Nobody is silent for so long unless it is over, or stuck.
    const LIMIT: Time = Time::from_millis(600_000);
    let (own_side, peer_side) = (wire.own_side, wire.own_side.other());
    fastrand::seed(seed.derive("dcsctp").rng().next_u64());
    let method = if terms.zero_checksum { OVER_DTLS } else { NO_METHOD };
    let options = Options {
        enable_message_interleaving: terms.interleaving,
        zero_checksum_alternate_error_detection_method: method,
        ..Options::default()
    };
    let mut own = Talker::new(own_side, talk, talks::own(own_side, talk, terms, seed));
    let mut peer = Talker::new(peer_side, talk, Theirs::new(peer_side, talk, &options));
    let mut now = Time::ZERO;
    own.begin(now);
    peer.begin(now);
    loop {
        let due = own.go_on(now, |packet| wire.take(now, peer_side, &packet));
        let peer_due = peer.go_on(now, |packet| wire.take(now, own_side, &packet));
        let is_over = own.done.ended.is_some() && peer.done.ended.is_some() && wire.under_way.is_empty();
        let arrival = wire.under_way.first_key_value().map(|((at, _), _)| *at);
        let Some(next) = Time::earliest([due, peer_due, arrival]).filter(|at| !is_over && *at < LIMIT) else {
            break;
        };
        now = next;
        while let Some(entry) = wire.under_way.first_entry()
            && entry.key().0 <= now
        {
            let (to, octets) = entry.remove();
            let packet = sctp::Packet::parse(octets).unwrap();
            if to == own_side {
                own.arrives(now, Packet::new(HERE, HERE, packet));
            } else {
                wire.note(&packet);
                peer.arrives(now, Packet::new(HERE, HERE, packet));
            }
        }
    }
    if wire.aborted_when_shut_down && own.done.ended == Some(Ended::Closed) {
        peer.done.ended = peer.done.ended.map(|_| Ended::Closed);
    }
    if own.done.ended == Some(Ended::Closed) && peer_side == Side::Client && talk.end == End::ClientCloses {
        // What it never sent.
        own.done.got += talk.messages.saturating_sub(wire.ends.len() as u32);
    }
    let went_well = talk.went_well(own_side, &own.done) && talk.went_well(peer_side, &peer.done);
    let as_agreed = terms.interleaving == (wire.interleaved > 0)
        && [terms.zero_checksum; 2] == wire.without_checksum.map(|packets| packets > 0);
    (!went_well || !as_agreed).then(|| {
        format!("at {now} we {:?}, the peer {:?}, {} with I-DATA", own.done, peer.done, wire.interleaved)
    })
}

/// Every talk, with us as client and as server, over wires that lose and over one whose packets overtake each other.
fn every_talk_goes_well(terms: Terms) {
    let seeds = std::env::var("HOL_WIRES").ok().and_then(|count| count.parse().ok()).unwrap_or(1);
    let mut wires: Vec<_> = LOSSES.map(|loss| (loss, Duration::ZERO)).to_vec();
    wires.push((0.01, Duration::from_millis(15)));
    let (mut cases, mut problems) = (0, Vec::new());
    for (talk, side) in TALKS.iter().flat_map(|talk| SIDES.map(|side| (talk, side))) {
        for (loss, jitter) in &wires {
            for seed in 0..seeds {
                let wire = Wire::new(side, *loss, *jitter, Seed(seed).derive("wire").rng());
                cases += 1;
                if let Some(what) = wrong(talk, terms, wire, Seed(seed)) {
                    let name = side.name();
                    problems.push(format!(
                        "{}, we are the {name}, {loss} lost, {jitter} late, seed {seed}: {what}",
                        talk.name
                    ));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{} of {cases}:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn dcsctp_understands_us_and_we_it() {
    every_talk_goes_well(Terms { interleaving: false, zero_checksum: false });
}

/// RFC 8260 section 2.2.1.
#[test]
fn dcsctp_and_we_interleave_messages() {
    every_talk_goes_well(Terms { interleaving: true, zero_checksum: false });
}

/// RFC 9653 section 5.
#[test]
fn dcsctp_and_we_leave_checksums_out() {
    every_talk_goes_well(Terms { interleaving: false, zero_checksum: true });
}
