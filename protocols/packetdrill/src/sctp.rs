//! The syntax of SCTP packets: `sctp: DATA[flgs=BE, len=1016, tsn=1, sid=0, ssn=0, ppid=0]`, chunks separated by `;`.
//!
//! Our tags and TSNs in a script are relative to the values that the script gives our INIT or INIT ACK; the
//! peer's are taken literally. By default a packet has a checksum and the tag that its receiver chose for the
//! association (0 for an INIT); `sctp(tag=N): ...` and `sctp(zero_checksum): ...` override that.

mod chunk;
mod item;

use std::collections::BTreeMap;

use hol_base::{Duration, Seed};
use hol_sctp::{Config, Endpoint};
use hol_stack::Protocol as Settings;
use hol_transport::{Endpoint as _, ReceivedData};
use hol_wire::sctp::{
    Chunk, DataFlags, Init, Packet as SctpPacket, Parameter, Reconfig, ReconfigSerial, Tsn,
};
use hol_wire::{Address, Packet, Transport};

use crate::protocol::{self, ArrivedMessage, Protocol};
use crate::python::Value;
use crate::tokens::number;
use chunk::PeerValues;
use item::Item;

const LOCAL_END: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 1), 1000);
const PEER_END: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 2), 80);

/// An SCTP endpoint, and the mapping between the tags and TSNs of the script and those on the wire.
pub(crate) struct Sctp {
    endpoint: Endpoint,
    config: Config,
    /// The endpoint's verification tags, each as the script's value and the value on the wire, in the order in
    /// which they were learned.
    tags: Vec<(u32, u32)>,
    /// The verification tags of the current association: the endpoint's and the peer's.
    association: Option<(u32, u32)>,
    /// The endpoint's TSNs on the wire minus those of the script. `next_shift` is the value from the last INIT
    /// ACK, which applies once the cookie has been returned.
    shift: Option<u32>,
    next_shift: Option<u32>,
    /// The last initiate tag that the peer (the script) has chosen.
    peer_tag: u32,
    /// The tag of the last inbound packet. The reply to an out-of-the-blue packet reflects it. RFC 9260 section
    /// 8.4.
    last_tag: u32,
    peer_values: PeerValues,
    listens: bool,
    /// Received fragments, by TSN.
    fragments: BTreeMap<u32, Fragment>,
}

/// A received fragment.
#[derive(Debug, Clone)]
struct Fragment {
    flags: DataFlags,
    stream: u16,
    /// SSN or MID of the fragment.
    number: u32,
    payload: bytes::Bytes,
}

/// Names of the variables of an SCTP endpoint that a script can use.
pub(crate) const VARIABLES: [&str; 8] = [
    "sstat_state",
    "sstat_outstrms",
    "spinfo_cwnd",
    "spinfo_ssthresh",
    "spinfo_flight",
    "spinfo_rto",
    "spinfo_srtt",
    "sent_again",
];

/// Checks that `line` can be parsed as an inbound or outbound packet.
pub(crate) fn check(line: &str, is_inbound: bool) -> Result<(), String> {
    let line = Line::parse(line)?;
    let seen = PeerValues::default();
    match line.chunks.is_empty() {
        true => Err(NO_CHUNKS.to_owned()),
        false if is_inbound => line.chunks.iter().try_for_each(|item| chunk::read(item, &seen).map(drop)),
        false => line.chunks.iter().try_for_each(chunk::check_name),
    }
}

const NO_CHUNKS: &str = "the packet has no chunks; write \"sctp: CHUNK[...]\"";

/// An SCTP packet in the syntax of scripts.
struct Line {
    tag: Option<u32>,
    /// Whether the packet has a checksum of zero (RFC 9653).
    zero_checksum: bool,
    chunks: Vec<Item>,
}

impl Line {
    fn parse(line: &str) -> Result<Self, String> {
        let form = || format!("{line:?} is not a packet; write \"sctp: CHUNK[...]; CHUNK[...]\"");
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
                        "{option:?} is not an option of a packet; write sctp(tag=N), sctp(zero_checksum) or both with a comma"
                    ));
                }
            }
        }
        Ok(parsed)
    }
}

impl Sctp {
    /// Creates an endpoint without an association.
    pub(crate) fn new(config: &Config) -> Self {
        // The script is the application and decides when to read.
        let config = Config { wakeup: Duration::ZERO, ..config.clone() };
        Self {
            endpoint: active(&config),
            config,
            tags: Vec::new(),
            association: None,
            shift: None,
            next_shift: None,
            peer_tag: 0,
            last_tag: 0,
            peer_values: PeerValues::default(),
            listens: false,
            fragments: BTreeMap::new(),
        }
    }

    /// Translates the endpoint's TSNs in an inbound chunk from the script's values to those on the wire.
    fn translate(&self, chunk: &mut Chunk) {
        let shift = self.shift.unwrap_or(0);
        match chunk {
            Chunk::Sack(sack) => {
                sack.cumulative_tsn += shift;
                sack.duplicates.iter_mut().for_each(|tsn| *tsn += shift);
            }
            Chunk::Shutdown { cumulative_tsn: tsn } | Chunk::Ecne(tsn) => *tsn += shift,
            // Request sequence numbers start at the initial TSN. RFC 6525 section 4.1.
            Chunk::Reconfig(parameters) => parameters.iter_mut().for_each(|parameter| match parameter {
                Reconfig::OutgoingReset { response: serial, .. } | Reconfig::Response { serial, .. } => {
                    *serial += shift;
                }
                _ => {}
            }),
            _ => {}
        }
    }

    /// Stores a received fragment, so that it can be recognised when its message is delivered.
    fn note_fragment(&mut self, chunk: &Chunk) {
        let (tsn, fragment) = match chunk {
            Chunk::Data(data) => {
                let (number, payload) = (data.ssn.0.into(), data.payload.clone());
                (data.tsn, Fragment { flags: data.flags, stream: data.stream, number, payload })
            }
            Chunk::IData(data) => {
                let (number, payload) = (data.mid.0, data.payload.clone());
                (data.tsn, Fragment { flags: data.flags, stream: data.stream, number, payload })
            }
            _ => return,
        };
        self.fragments.insert(tsn.0, fragment);
    }

    /// Checks that a delivered message consists of received fragments, from a first to a last one. Returns the TSN
    /// and the first fragment, or `None` if the octets do not identify the fragments, because the script gives the
    /// octets or a fragment has fewer than 4.
    fn fragments_of(&self, stream: u16, mut payload: &[u8]) -> Result<Option<(u32, &Fragment)>, String> {
        let mut first = None;
        while let Some(octets) = payload.first_chunk() {
            let tsn = u32::from_be_bytes(*octets);
            let known = self.fragments.get(&tsn).filter(|fragment| payload.starts_with(&fragment.payload));
            let Some(fragment) = known.filter(|fragment| fragment.payload.len() >= 4) else {
                return Ok(None);
            };
            payload = &payload[fragment.payload.len()..];
            let begins = fragment.flags.contains(DataFlags::BEGIN);
            let ends = fragment.flags.contains(DataFlags::END);
            if begins != first.is_none() || ends != payload.is_empty() || fragment.stream != stream {
                return Err(format!(
                    "a message was delivered with the fragment of TSN {tsn} in the wrong position"
                ));
            }
            first.get_or_insert((tsn, fragment));
        }
        Ok(first.filter(|_| payload.is_empty()))
    }

    /// Translates an outbound chunk to the tags and TSNs of the script.
    fn outbound_item(&self, chunk: &Chunk) -> Item {
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
        chunk::to_item(&chunk)
    }

    /// Returns the script's value of a tag that is on the wire.
    fn named(&self, tag: u32) -> u32 {
        self.tags.iter().find(|(_, ours)| *ours == tag).map_or(tag, |(name, _)| *name)
    }

    /// Returns the tag on the wire for a tag in the script.
    fn tag(&self, name: u32) -> u32 {
        self.tags.iter().find(|(known, _)| *known == name).map_or(name, |(_, ours)| *ours)
    }

    /// Learns the mapping of tag and TSN from the endpoint's INIT or INIT ACK and the values that the script
    /// expects there.
    fn learn(&mut self, chunk: &Chunk, expected: Option<&Item>) -> Result<(), String> {
        match chunk {
            Chunk::Init(init) | Chunk::InitAck(init) => self.learn_init(init, expected)?,
            Chunk::Heartbeat(info) => self.peer_values.heartbeat = info.clone(),
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
                self.peer_values.cookie = cookie.clone();
            }
        }
        Ok(())
    }

    fn print(&self, packet: &SctpPacket) -> String {
        let chunks: Vec<String> =
            packet.chunks.iter().map(|chunk| self.outbound_item(chunk).to_string()).collect();
        let zero_checksum = if packet.zero_checksum { ", zero_checksum" } else { "" };
        format!("sctp(tag={}{zero_checksum}): {}", self.named(packet.verification_tag), chunks.join("; "))
    }

    /// Returns the verification tag that an outbound packet has unless the script gives another.
    fn usual_tag(&self, packet: &SctpPacket) -> u32 {
        let association = self.association.map_or(self.peer_tag, |(_, peer)| peer);
        match packet.chunks[0] {
            Chunk::Init(_) => 0,
            Chunk::Abort { reflected: true, .. } | Chunk::ShutdownComplete { reflected: true } => {
                self.last_tag
            }
            // The reply to an INIT has the INIT's initiate tag, even if there is an association.
            Chunk::InitAck(_) => self.peer_tag,
            Chunk::Abort { .. } if self.last_tag == 0 => self.peer_tag,
            _ => association,
        }
    }
}

fn active(config: &Config) -> Endpoint {
    Endpoint::connect(
        config.clone(),
        vec![LOCAL_END.0],
        LOCAL_END.1,
        vec![PEER_END.0],
        PEER_END.1,
        Seed(1).rng(),
    )
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

    fn forget(&mut self) {
        self.listens = false;
        self.endpoint = active(&self.config);
    }

    fn apply_specification(&mut self, specification: &str) -> Result<(), String> {
        let Settings::Sctp { config, .. } = protocol::parse_settings(specification)? else {
            return Err(format!("{specification} is not SCTP"));
        };
        self.config = Config { wakeup: Duration::ZERO, ..config };
        // Cookies in transit belong to the current endpoint.
        let is_new =
            self.endpoint.state_name() == "CLOSED" && !self.endpoint.is_closed() && self.tags.is_empty();
        match (is_new, self.listens) {
            (true, true) => self.listen(),
            (true, false) => self.forget(),
            (false, _) => self.endpoint.set_config(self.config.clone()),
        }
        Ok(())
    }

    fn listen(&mut self) {
        self.listens = true;
        self.endpoint = Endpoint::listen(self.config.clone(), vec![LOCAL_END.0], LOCAL_END.1, Seed(1).rng());
    }

    fn packet(&mut self, text: &str) -> Result<Packet, String> {
        let line = Line::parse(text)?;
        let mut chunks = Vec::new();
        for item in &line.chunks {
            let mut chunk = chunk::read(item, &self.peer_values)?;
            self.translate(&mut chunk);
            self.note_fragment(&chunk);
            chunks.push(chunk);
        }
        match chunks.first() {
            Some(Chunk::Init(init) | Chunk::InitAck(init)) => self.peer_tag = init.initiate_tag,
            Some(Chunk::CookieEcho(_)) => self.shift = self.next_shift.or(self.shift),
            Some(_) => {}
            None => return Err(NO_CHUNKS.to_owned()),
        }
        let last = self.tags.last().map_or(0, |(_, ours)| *ours);
        let usual = match chunks[0] {
            Chunk::Init(_) => 0,
            Chunk::CookieEcho(_) => last,
            _ => self.association.map_or(last, |(ours, _)| ours),
        };
        let verification_tag = line.tag.map_or(usual, |name| self.tag(name));
        if matches!(chunks[0], Chunk::CookieEcho(_) | Chunk::InitAck(_)) {
            self.association = Some((verification_tag, self.peer_tag));
        }
        self.last_tag = verification_tag;
        let packet = SctpPacket {
            source_port: PEER_END.1,
            destination_port: LOCAL_END.1,
            verification_tag,
            zero_checksum: line.zero_checksum,
            chunks: chunks.into(),
        };
        Ok(Packet::new(PEER_END.0, LOCAL_END.0, Transport::Sctp(Box::new(packet))))
    }

    fn differs(&mut self, text: &str, packet: &Packet) -> Result<Option<String>, String> {
        let line = Line::parse(text)?;
        let packet = sctp_of(packet);
        for (index, chunk) in packet.chunks.iter().enumerate() {
            self.learn(chunk, line.chunks.get(index))?;
        }
        let tag = line.tag.map_or_else(|| self.usual_tag(packet), |name| self.tag(name));
        let same = line.chunks.len() == packet.chunks.len()
            && line
                .chunks
                .iter()
                .zip(&packet.chunks)
                .all(|(item, chunk)| item.describes(&self.outbound_item(chunk)));
        let same = same && line.zero_checksum == packet.zero_checksum;
        Ok((!same || tag != packet.verification_tag).then(|| self.print(packet)))
    }

    fn show(&mut self, packet: &Packet) -> String {
        self.print(sctp_of(packet))
    }

    fn variable(&self, name: &str) -> Option<Value> {
        let path = self.endpoint.paths().first();
        let count = match name {
            "sstat_state" => return Some(Value::Text(self.endpoint.state_name().to_owned())),
            "sstat_outstrms" => self.endpoint.outbound_streams().into(),
            "spinfo_cwnd" => path?.cwnd(),
            "spinfo_ssthresh" => path?.ssthresh(),
            "spinfo_flight" => path?.flight_size(),
            "spinfo_rto" => path?.rto().as_nanos() / 1_000_000,
            "spinfo_srtt" => path?.srtt()?.as_nanos() / 1_000_000,
            "sent_again" => {
                let counted = self.endpoint.statistics();
                counted.fast_retransmissions + counted.timeout_retransmissions
            }
            _ => return None,
        };
        Some(Value::Number(count as f64))
    }

    fn octet(&self, _ours: bool, offset: usize) -> u8 {
        offset as u8
    }

    fn message(&self, received: &ReceivedData) -> Option<Result<ArrivedMessage, String>> {
        let ReceivedData { stream, unordered, ppid, ref payload, .. } = *received;
        let whole = self.fragments_of(stream, payload);
        Some(whole.map(|first| ArrivedMessage {
            length: payload.len(),
            stream,
            unordered,
            ppid,
            number: first.map(|(_, fragment)| fragment.number),
            tsn: first.map(|(tsn, _)| tsn),
        }))
    }

    fn has_unread(&self) -> bool {
        self.endpoint.has_unread()
    }
}
