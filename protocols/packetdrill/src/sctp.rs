//! SCTP as scripts write it: `sctp: DATA[flgs=BE, len=1016, tsn=1, sid=0, ssn=0, ppid=0]`, chunks separated by `;`.
//!
//! Our tags and TSNs are those that the script gives them where it expects our INIT or INIT ACK; the peer's are as written. A
//! packet has the tag that its receiver chose last, an INIT none, unless it is written `sctp(tag=N): ...`, and a checksum, unless it is
//! written `sctp(zero_checksum): ...`.

mod chunk;
mod item;

use hol_base::{Duration, Seed};
use hol_sctp::{Config, Endpoint};
use hol_transport::Endpoint as _;
use hol_wire::sctp::{Chunk, Init, Packet as SctpPacket, Parameter, Reconfig, ReconfigSerial, Tsn};
use hol_wire::{Address, Packet, Transport};

use crate::protocol::Protocol;
use crate::words::number;
use chunk::Seen;
use item::Item;

const LOCAL: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 1), 1000);
const PEER: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 2), 80);

/// An SCTP endpoint, and what a script's numbers are on its wire.
pub(crate) struct Sctp {
    endpoint: Endpoint,
    config: Config,
    /// Our tags: what the script calls each, the last one last.
    tags: Vec<(u32, u32)>,
    /// What our TSNs are more than the script says; and once its cookie comes back, the same of the last INIT ACK.
    shift: Option<u32>,
    next_shift: Option<u32>,
    /// The tag that the peer chose last.
    peer_tag: u32,
    seen: Seen,
}

/// A packet as a script writes it.
struct Line {
    tag: Option<u32>,
    zero_checksum: bool,
    chunks: Vec<Item>,
}

impl Line {
    fn parse(line: &str) -> Result<Self, String> {
        let form = || format!("{line:?} is no packet; write \"sctp: CHUNK[...]; CHUNK[...]\"");
        let (head, chunks) = line.split_once(':').ok_or_else(form)?;
        let options = head.trim().strip_prefix("sctp").ok_or_else(form)?.trim();
        let mut parsed = Self { tag: None, zero_checksum: false, chunks: Item::parse_all(chunks)? };
        for option in
            options.trim_matches(['(', ')']).split(',').map(str::trim).filter(|option| !option.is_empty())
        {
            match (option, option.strip_prefix("tag=")) {
                ("zero_checksum", _) => parsed.zero_checksum = true,
                (_, Some(tag)) => parsed.tag = Some(number("tag", tag)?),
                _ => {
                    return Err(format!(
                        "{option:?} is no option of a packet; write sctp(tag=N), sctp(zero_checksum) or both with a comma"
                    ));
                }
            }
        }
        Ok(parsed)
    }
}

impl Sctp {
    /// An endpoint without an association.
    pub(crate) fn new(config: &Config) -> Self {
        // The script is the application: it reads when it says so.
        let config = Config { wakeup: Duration::ZERO, ..config.clone() };
        let (local, peer) = (vec![LOCAL.0], vec![PEER.0]);
        Self {
            endpoint: Endpoint::connect(config.clone(), local, LOCAL.1, peer, PEER.1, Seed(1).rng()),
            config,
            tags: Vec::new(),
            shift: None,
            next_shift: None,
            peer_tag: 0,
            seen: Seen::default(),
        }
    }

    /// The TSNs of ours in a chunk that comes, as they are on the wire.
    fn translate(&self, chunk: &mut Chunk) {
        let shift = self.shift.unwrap_or(0);
        match chunk {
            Chunk::Sack(sack) => {
                sack.cumulative_tsn += shift;
                sack.duplicates.iter_mut().for_each(|tsn| *tsn += shift);
            }
            Chunk::Shutdown { cumulative_tsn: tsn } | Chunk::Ecne(tsn) => *tsn += shift,
            // Requests are numbered from the first TSN on. RFC 6525 section 4.1.
            Chunk::Reconfig(parameters) => parameters.iter_mut().for_each(|parameter| match parameter {
                Reconfig::OutgoingReset { response: serial, .. } | Reconfig::Response { serial, .. } => {
                    *serial += shift;
                }
                _ => {}
            }),
            _ => {}
        }
    }

    /// A chunk that left, in the numbers of a script.
    fn item(&self, chunk: &Chunk) -> Item {
        let ours = |tsn: Tsn| Tsn(tsn.0.wrapping_sub(self.shift.unwrap_or(0)));
        let mut chunk = chunk.clone();
        match &mut chunk {
            Chunk::Data(data) => data.tsn = ours(data.tsn),
            Chunk::Cwr(tsn) => *tsn = ours(*tsn),
            Chunk::ForwardTsn(forward) => forward.new_cumulative_tsn = ours(forward.new_cumulative_tsn),
            Chunk::IData(data) => data.tsn = ours(data.tsn),
            Chunk::IForwardTsn(forward) => forward.new_cumulative_tsn = ours(forward.new_cumulative_tsn),
            Chunk::Reconfig(parameters) => parameters.iter_mut().for_each(|parameter| match parameter {
                Reconfig::OutgoingReset { serial, last_tsn, .. } => {
                    (*serial, *last_tsn) = (ReconfigSerial(ours(Tsn(serial.0)).0), ours(*last_tsn));
                }
                Reconfig::IncomingReset { serial, .. }
                | Reconfig::TsnReset { serial }
                | Reconfig::AddOutgoing { serial, .. }
                | Reconfig::AddIncoming { serial, .. } => *serial = ReconfigSerial(ours(Tsn(serial.0)).0),
                Reconfig::Response { .. } | Reconfig::Unknown { .. } => {}
            }),
            Chunk::Init(init) | Chunk::InitAck(init) => {
                init.initiate_tag = self.named(init.initiate_tag);
                init.initial_tsn = init.initial_tsn - self.next_shift.or(self.shift).unwrap_or(0);
            }
            _ => {}
        }
        chunk::show(&chunk)
    }

    /// What the script calls a tag: its own name for one of ours.
    fn named(&self, tag: u32) -> u32 {
        self.tags.iter().find(|(_, ours)| *ours == tag).map_or(tag, |(name, _)| *name)
    }

    /// The tag that the script calls so.
    fn tag(&self, name: u32) -> u32 {
        self.tags.iter().find(|(known, _)| *known == name).map_or(name, |(_, ours)| *ours)
    }

    /// Notes what our INIT or INIT ACK says, in the numbers that the script gives it.
    fn learn(&mut self, chunk: &Chunk, expected: Option<&Item>) -> Result<(), String> {
        match chunk {
            Chunk::Init(init) | Chunk::InitAck(init) => self.learn_init(init, expected)?,
            Chunk::Heartbeat(info) => self.seen.heartbeat = info.clone(),
            _ => {}
        }
        Ok(())
    }

    fn learn_init(&mut self, init: &Init, expected: Option<&Item>) -> Result<(), String> {
        let first = self.tags.len() as u32 + 1;
        let say =
            |key: &str, otherwise: u32| expected.map_or(Ok(otherwise), |item| item.count_or(key, otherwise));
        if !self.tags.iter().any(|(_, ours)| *ours == init.initiate_tag) {
            self.tags.push((say("tag", first)?, init.initiate_tag));
        }
        let shift = init.initial_tsn.0.wrapping_sub(say("tsn", 1)?);
        self.shift = self.shift.or(Some(shift));
        self.next_shift = Some(shift);
        for parameter in &init.parameters {
            if let Parameter::StateCookie(cookie) = parameter {
                self.seen.cookie = cookie.clone();
            }
        }
        Ok(())
    }

    fn print(&self, packet: &SctpPacket) -> String {
        let chunks: Vec<String> = packet.chunks.iter().map(|chunk| self.item(chunk).to_string()).collect();
        let zero_checksum = if packet.zero_checksum { ", zero_checksum" } else { "" };
        format!("sctp(tag={}{zero_checksum}): {}", self.named(packet.verification_tag), chunks.join("; "))
    }

    /// The tag of a packet to the peer that does not name it.
    fn usual_tag(&self, packet: &SctpPacket) -> u32 {
        if matches!(packet.chunks[0], Chunk::Init(_)) { 0 } else { self.peer_tag }
    }
}

fn sctp_of(packet: &Packet) -> &SctpPacket {
    match &packet.transport {
        Transport::Sctp(packet) => packet,
        other => unreachable!("SCTP sends {other:?}"),
    }
}

impl Protocol for Sctp {
    fn endpoint(&mut self) -> &mut dyn hol_transport::Endpoint {
        &mut self.endpoint
    }

    fn listen(&mut self) {
        self.endpoint = Endpoint::listen(self.config.clone(), vec![LOCAL.0], LOCAL.1, Seed(1).rng());
    }

    fn packet(&mut self, text: &str) -> Result<Packet, String> {
        let line = Line::parse(text)?;
        let mut chunks = Vec::new();
        for item in &line.chunks {
            let mut chunk = chunk::read(item, &self.seen)?;
            self.translate(&mut chunk);
            chunks.push(chunk);
        }
        match chunks.first() {
            Some(Chunk::Init(init) | Chunk::InitAck(init)) => self.peer_tag = init.initiate_tag,
            Some(Chunk::CookieEcho(_)) => self.shift = self.next_shift.or(self.shift),
            Some(_) => {}
            None => return Err("a packet without chunks; write \"sctp: CHUNK[...]\"".to_owned()),
        }
        let own = self.tags.last().map_or(0, |(_, ours)| *ours);
        let usual = if matches!(chunks[0], Chunk::Init(_)) { 0 } else { own };
        let verification_tag = line.tag.map_or(usual, |name| self.tag(name));
        let packet = SctpPacket {
            source_port: PEER.1,
            destination_port: LOCAL.1,
            verification_tag,
            zero_checksum: line.zero_checksum,
            chunks: chunks.into(),
        };
        Ok(Packet::new(PEER.0, LOCAL.0, Transport::Sctp(Box::new(packet))))
    }

    fn differs(&mut self, text: &str, packet: &Packet) -> Result<Option<String>, String> {
        let line = Line::parse(text)?;
        let packet = sctp_of(packet);
        for (index, chunk) in packet.chunks.iter().enumerate() {
            self.learn(chunk, line.chunks.get(index))?;
        }
        let tag = line.tag.map_or_else(|| self.usual_tag(packet), |name| self.tag(name));
        let same = line.chunks.len() == packet.chunks.len()
            && line.chunks.iter().zip(&packet.chunks).all(|(item, chunk)| item.describes(&self.item(chunk)));
        let same = same && line.zero_checksum == packet.zero_checksum;
        Ok((!same || tag != packet.verification_tag).then(|| self.print(packet)))
    }

    fn show(&mut self, packet: &Packet) -> String {
        self.print(sctp_of(packet))
    }

    fn variable(&self, name: &str) -> Option<String> {
        let path = self.endpoint.paths().first();
        Some(match name {
            "sstat_state" => self.endpoint.state_name().to_owned(),
            "sstat_outstrms" => self.endpoint.outbound_streams().to_string(),
            "spinfo_cwnd" => path?.cwnd().to_string(),
            "spinfo_ssthresh" => path?.ssthresh().to_string(),
            "spinfo_flight" => path?.flight_size().to_string(),
            "spinfo_rto" => (path?.rto().as_nanos() / 1_000_000).to_string(),
            "spinfo_srtt" => (path?.srtt()?.as_nanos() / 1_000_000).to_string(),
            "sent_again" => {
                let counted = self.endpoint.statistics();
                (counted.fast_retransmissions + counted.timeout_retransmissions).to_string()
            }
            _ => return None,
        })
    }

    fn octet(&self, _ours: bool, offset: usize) -> u8 {
        offset as u8
    }

    fn keeps_messages(&self) -> bool {
        true
    }
}
