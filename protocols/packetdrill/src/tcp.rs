//! The syntax of TCP segments: `P. 1:1001(1000) ack 1 win 257 <nop,nop,TS val 1 ecr 2>`.
//!
//! Sequence numbers are relative to the SYN of the end that sends them, our timestamps to the first one that a script
//! names.

use std::collections::{BTreeMap, VecDeque};

use hol_base::{Seed, Time};
use hol_stack::Protocol as Settings;
use hol_tcp::{Config, Endpoint, Info, State};
use hol_transport::Endpoint as _;
use hol_wire::tcp::{EcnCounters, Flags, Options, SackBlock, Segment, SeqNum, Timestamps};
use hol_wire::{Address, Packet, SendTimes, Transport};

use crate::protocol::{self, Protocol};
use crate::python::Value;
use crate::tokens::{Tokens, number};

const LOCAL_END: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 1), 1000);
const PEER_END: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 2), 80);
/// Sequence number of the peer's SYN. It is close to the maximum, so that the sequence numbers of the peer's data
/// wrap around.
const PEER_START: SeqNum = SeqNum(u32::MAX - 99);

/// A TCP endpoint, and the mapping between the numbers of the script and those on the wire.
pub(crate) struct Tcp {
    endpoint: Endpoint,
    config: Config,
    /// Sequence number of the endpoint's SYN; `None` before it was sent.
    our_syn: Option<SeqNum>,
    /// Value of the endpoint's timestamp clock that the script calls 0.
    clock: Option<u32>,
    /// The endpoint's timestamps on the wire, by the value that the script expects for them. The difference
    /// between the two may vary.
    stamps: BTreeMap<u32, u32>,
    /// Maximum deviation of a timestamp from the script; `None` disables the check.
    stamp_tolerance: Option<u32>,
}

/// Maximum number of octets of payload in an IP packet.
const MAX_PAYLOAD: usize = 65_535 - 40;

/// Names of the variables of a TCP endpoint that a script can use.
pub(crate) const VARIABLES: [&str; 17] = [
    "tcpi_state",
    "tcpi_snd_cwnd",
    "tcpi_snd_ssthresh",
    "tcpi_rto",
    "tcpi_rtt",
    "tcpi_total_retrans",
    "tcpi_unacked",
    "tcpi_sacked",
    "tcpi_lost",
    "tcpi_retrans",
    "tcpi_reordering",
    "tcpi_ca_state",
    "tcpi_snd_mss",
    "tcpi_delivered_ce",
    "tcpi_delivered_e1_bytes",
    "tcpi_delivered_e0_bytes",
    "tcpi_delivered_ce_bytes",
];

/// Checks that `line` can be parsed as an inbound or outbound segment.
pub(crate) fn check(line: &str, is_inbound: bool) -> Result<(), String> {
    let line = Line::parse(line)?;
    if !is_inbound {
        return Ok(());
    }
    if line.window.is_none() && !line.flags.contains(Flags::RST) {
        return Err(NO_WINDOW.to_owned());
    }
    if line.length > MAX_PAYLOAD {
        return Err(format!(
            "an inbound segment has {} octets of payload; the maximum in IP is {MAX_PAYLOAD}",
            line.length
        ));
    }
    line.options.map_or_else(|| Err(NO_OPTIONS.to_owned()), |_| Ok(()))
}

const NO_WINDOW: &str = "an inbound segment needs a window; write \"win N\"";
const NO_OPTIONS: &str = "an inbound segment needs its options; write them instead of \"...\"";

/// A segment in the syntax of scripts. Fields that are missing match any value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    flags: Flags,
    seq: u32,
    length: usize,
    ack: Option<u32>,
    window: Option<u16>,
    options: Option<Options>,
}

impl Line {
    fn parse(line: &str) -> Result<Self, String> {
        let mut words = Tokens::new(line);
        let flags = flags(words.next())?;
        let (seq, length) = range(words.next())?;
        let mut parsed =
            Self { flags, seq, length, ack: None, window: None, options: Some(Options::default()) };
        while !words.is_empty() {
            if words.take("<") {
                parsed.options = options(words.until(">")?)?;
                continue;
            }
            match words.next() {
                "ack" => parsed.ack = Some(number("ack", words.next())?),
                "win" => parsed.window = Some(number("win", words.next())?),
                other => {
                    return Err(format!("{other:?} is not a part of a segment; use ack, win or <options>"));
                }
            }
        }
        if flags.contains(Flags::ACK) != parsed.ack.is_some() {
            return Err(format!(
                "{line:?}: \".\" among the flags and \"ack N\" go together; write both or neither"
            ));
        }
        Ok(parsed)
    }
}

/// Parses the flags of a segment; a digit is the value of the ACE field. RFC 9768 section 3.2.2.
fn flags(word: &str) -> Result<Flags, String> {
    word.chars().try_fold(Flags::default(), |flags, letter| {
        Ok(flags
            | match letter {
                'S' => Flags::SYN,
                'F' => Flags::FIN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                '.' => Flags::ACK,
                'E' => Flags::ECE,
                'W' => Flags::CWR,
                'A' => Flags::AE,
                '0'..='7' => Flags((letter as u16 - '0' as u16) << 6),
                '-' => Flags::default(),
                _ => {
                    return Err(format!(
                        "{word:?} are not TCP flags; use S, F, R, P, E, W, A and \".\", or \"-\" for none"
                    ));
                }
            })
    })
}

/// Parses a sequence range such as `1:1001(1000)`; returns the first sequence number and the length.
fn range(word: &str) -> Result<(u32, usize), String> {
    let form = || {
        format!("{word:?} is not a range of sequence numbers; write first:end(length), as in 1:1001(1000)")
    };
    let (first, rest) = word.split_once(':').ok_or_else(form)?;
    let (end, length) = rest.split_once('(').ok_or_else(form)?;
    let (first, end): (u32, u32) = (number("a sequence number", first)?, number("a sequence number", end)?);
    let length: usize = number("a length", length.trim_end_matches(')'))?;
    if first.wrapping_add(length as u32) != end {
        return Err(format!(
            "{word:?}: {first} plus {length} octets is {}; correct the numbers",
            first.wrapping_add(length as u32)
        ));
    }
    Ok((first, length))
}

/// Parses the TCP options between `<` and `>`, in any order; `...` matches any options.
fn options(list: &str) -> Result<Option<Options>, String> {
    if list == "..." {
        return Ok(None);
    }
    let mut options = Options::default();
    for option in list.split(',') {
        let mut words = Tokens::new(option);
        match words.next() {
            "mss" => options.mss = Some(number("mss", words.next())?),
            "wscale" => options.window_scale = Some(number("wscale", words.next())?),
            "sackOK" => options.sack_permitted = true,
            "nop" | "eol" => {}
            "ECN" => options.accurate_ecn = Some(Box::new(counters(&mut words)?)),
            "TS" => {
                let (_, value, _, echo) = (words.next(), words.next(), words.next(), words.next());
                options.timestamps =
                    Some(Timestamps { value: number("val", value)?, echo: number("ecr", echo)? });
            }
            "sack" => {
                while !words.is_empty() {
                    let block = words.next();
                    let edges = block
                        .split_once(':')
                        .ok_or_else(|| format!("{block:?} is not a SACK block; write 1:1001"))?;
                    let (left, right) =
                        (number("a block's edge", edges.0)?, number("a block's edge", edges.1)?);
                    options.sack.push(SackBlock { left: SeqNum(left), right: SeqNum(right) });
                }
            }
            other => {
                return Err(format!(
                    "{other:?} is not a supported option; use mss, sackOK, wscale, nop, eol, \"TS val N ecr N\", \"sack N:N\" and <...>"
                ));
            }
        }
    }
    Ok(Some(options))
}

/// Parses the counters of an AccECN option, as in `e1b 1 ceb 0 e0b 1`. RFC 9768 section 3.2.3.
fn counters(words: &mut Tokens<'_>) -> Result<EcnCounters, String> {
    let mut counters = EcnCounters { begins_with_ect1: true, ..EcnCounters::default() };
    while !words.is_empty() {
        let (name, value) = (words.next(), number("a counter", words.next())?);
        let place = counters.values.len();
        if place == 0 {
            counters.begins_with_ect1 = name == "e1b";
        }
        let expected = if counters.begins_with_ect1 { ["e1b", "ceb", "e0b"] } else { ["e0b", "ceb", "e1b"] };
        if expected.get(place) != Some(&name) {
            return Err(format!(
                "{name:?} is not the next counter; use e1b N ceb N e0b N, or e0b N ceb N e1b N"
            ));
        }
        counters.values.push(value);
    }
    Ok(counters)
}

impl Tcp {
    /// Creates an endpoint without a connection.
    pub(crate) fn new(config: &Config) -> Self {
        // The script is the application and decides when to read.
        let config = Config { wakeup: hol_base::Duration::ZERO, ..config.clone() };
        let endpoint = Endpoint::connect(config.clone(), LOCAL_END, PEER_END, Seed(1).rng());
        Self {
            endpoint,
            config,
            our_syn: None,
            clock: None,
            stamps: BTreeMap::new(),
            stamp_tolerance: Some(0),
        }
    }

    fn start(&self) -> SeqNum {
        self.our_syn.unwrap_or_default()
    }

    fn payload(&self, ours: bool, line: &Line) -> Vec<u8> {
        let first = line.seq.wrapping_sub(1) as usize;
        (first..first + line.length).map(|offset| self.octet(ours, offset)).collect()
    }

    /// Translates an outbound segment to the numbers of the script.
    fn read(&mut self, segment: &Segment) -> Line {
        if segment.flags.contains(Flags::SYN) && self.our_syn.is_none() {
            self.our_syn = Some(segment.seq);
        }
        let Segment { flags, seq, ack, window, .. } = *segment;
        let mut options = segment.options.clone();
        for SackBlock { left, right } in &mut options.sack {
            (*left, *right) = (relative(*left, PEER_START), relative(*right, PEER_START));
        }
        if let (Some(stamps), Some(clock)) = (&mut options.timestamps, self.clock) {
            stamps.value = stamps.value.wrapping_sub(clock);
        }
        Line {
            flags,
            // The sequence number of a reset without a connection is an absolute 0.
            seq: if seq == SeqNum(0) { 0 } else { relative(seq, self.start()).0 },
            length: segment.payload.len(),
            ack: flags.contains(Flags::ACK).then(|| relative(ack, PEER_START).0),
            window: Some(window),
            options: Some(options),
        }
    }
}

fn relative(number: SeqNum, start: SeqNum) -> SeqNum {
    SeqNum(number.0.wrapping_sub(start.0))
}

fn segment_of(packet: &Packet) -> &Segment {
    match &packet.transport {
        Transport::Tcp(segment) => segment,
        other => unreachable!("TCP sends {other:?}"),
    }
}

impl Protocol for Tcp {
    fn endpoint(&mut self) -> &mut dyn hol_transport::Endpoint {
        &mut self.endpoint
    }

    fn listen(&mut self) {
        self.endpoint = Endpoint::listen(self.config.clone(), LOCAL_END, Seed(1).rng());
    }

    fn forget(&mut self) {
        self.endpoint = Endpoint::connect(self.config.clone(), LOCAL_END, PEER_END, Seed(1).rng());
    }

    fn apply_specification(&mut self, specification: &str) -> Result<(), String> {
        let Settings::Tcp { config, .. } = protocol::parse_settings(specification)? else {
            return Err(format!("{specification} is not TCP"));
        };
        self.config = Config { wakeup: hol_base::Duration::ZERO, ..config };
        match self.endpoint.state() {
            State::Listen => self.listen(),
            State::Closed if !self.endpoint.is_closed() => self.forget(),
            _ => self.endpoint.set_config(self.config.clone()),
        }
        Ok(())
    }

    fn packet(&mut self, text: &str) -> Result<Packet, String> {
        let line = Line::parse(text)?;
        if self.endpoint.state() == State::Listen {
            self.our_syn = None;
        }
        let window = line.window.or(line.flags.contains(Flags::RST).then_some(0)).ok_or(NO_WINDOW)?;
        let payload = self.payload(false, &line).into();
        let mut options = line.options.ok_or(NO_OPTIONS)?;
        for SackBlock { left, right } in &mut options.sack {
            (*left, *right) = (self.start() + left.0, self.start() + right.0);
        }
        if let (Some(stamps), Some(clock)) = (&mut options.timestamps, self.clock) {
            let named = self.stamps.get(&stamps.echo).copied();
            stamps.echo = named.unwrap_or(stamps.echo.wrapping_add(clock));
        }
        let segment = Segment {
            source_port: PEER_END.1,
            destination_port: LOCAL_END.1,
            seq: PEER_START + line.seq,
            ack: line.ack.map_or(SeqNum::default(), |ack| self.start() + ack),
            flags: line.flags,
            window,
            options,
            payload,
            stamp: SendTimes::default(),
        };
        Ok(Packet::new(PEER_END.0, LOCAL_END.0, segment))
    }

    fn differs(&mut self, text: &str, packet: &Packet) -> Result<Option<String>, String> {
        let line = Line::parse(text)?;
        let segment = segment_of(packet);
        if let (Some(Options { timestamps: Some(named), .. }), Some(stamps)) =
            (&line.options, segment.options.timestamps)
        {
            self.clock.get_or_insert(stamps.value.wrapping_sub(named.value));
            self.stamps.insert(named.value, stamps.value);
        }
        let got = self.read(segment);
        let mut wanted = Line {
            window: line.window.or(got.window),
            options: line.options.clone().or(got.options.clone()),
            ..line
        };
        if let (Some(Options { timestamps: Some(wanted), .. }), Some(Options { timestamps: Some(got), .. })) =
            (&mut wanted.options, &got.options)
        {
            let difference = (wanted.value.wrapping_sub(got.value) as i32).unsigned_abs();
            if self.stamp_tolerance.is_none_or(|tolerance| difference <= tolerance) {
                wanted.value = got.value;
            }
        }
        if segment.payload != self.payload(true, &got) {
            return Ok(Some(format!("{}, whose octets differ from those written", print(&got))));
        }
        Ok((wanted != got).then(|| print(&got)))
    }

    fn show(&mut self, packet: &Packet) -> String {
        let line = self.read(segment_of(packet));
        print(&line)
    }

    /// Merges segments as in packetdrill's run_packet.c do_outbound_script_packet and aggregate_packets: the
    /// result has the headers of the last one, and the sequence number and CWR of the first one.
    fn merge_packets(
        &mut self,
        text: &str,
        sent: &mut VecDeque<(Time, Packet)>,
        exact: bool,
    ) -> Result<bool, String> {
        let line = Line::parse(text)?;
        while let Some([(at, first), (then, second)]) = sent.make_contiguous().get_mut(..2) {
            let (Transport::Tcp(first), Transport::Tcp(second)) = (&mut first.transport, &second.transport)
            else {
                return Ok(false);
            };
            let (length, more) = (first.payload.len(), second.payload.len());
            let ends = first.flags.contains(Flags::PSH) || first.flags.contains(Flags::FIN);
            let is_cut = !exact || !ends && at == then;
            let fits = length > 0 && more > 0 && length + more <= line.length;
            if !fits || !is_cut || first.seq + length as u32 != second.seq {
                return Ok(false);
            }
            let cwr = if first.flags.contains(Flags::CWR) { Flags::CWR } else { Flags::default() };
            let payload = [&first.payload[..], &second.payload[..]].concat().into();
            **first = Segment { seq: first.seq, flags: second.flags | cwr, payload, ..(**second).clone() };
            *at = *then;
            let _ = sent.remove(1);
        }
        let Some((_, Packet { transport: Transport::Tcp(first), .. })) = sent.front() else {
            return Ok(false);
        };
        Ok(!exact && !first.payload.is_empty() && first.payload.len() < line.length)
    }

    fn variable(&self, name: &str) -> Option<Value> {
        let endpoint = &self.endpoint;
        let info = endpoint.info();
        let whole = |count: u32| Some(Value::Number(count.into()));
        match name {
            "tcpi_state" => Some(Value::Text(endpoint.state_name().to_owned())),
            "tcpi_snd_cwnd" => whole(endpoint.cwnd()),
            // Linux: TCP_INFINITE_SSTHRESH.
            "tcpi_snd_ssthresh" => whole(endpoint.ssthresh().min(i32::MAX as u32)),
            "tcpi_rto" => Some(Value::Number((endpoint.rto().as_nanos() / 1000) as f64)),
            "tcpi_rtt" => Some(Value::Number((endpoint.srtt()?.as_nanos() / 1000) as f64)),
            "tcpi_total_retrans" => {
                let counted = endpoint.statistics();
                Some(Value::Number((counted.fast_retransmissions + counted.timeout_retransmissions) as f64))
            }
            _ => whole(counted(&info, name)?),
        }
    }

    fn tolerate_stamps(&mut self, tolerance: Option<u32>) {
        self.stamp_tolerance = tolerance;
    }

    fn has_unread(&self) -> bool {
        self.endpoint.has_unread()
    }

    fn octet(&self, ours: bool, offset: usize) -> u8 {
        (offset % 251) as u8 ^ if ours { 0 } else { 0xff }
    }
}

/// Returns a variable whose value is a number, counted in segments as in Linux.
fn counted(info: &Info, name: &str) -> Option<u32> {
    Some(match name {
        "tcpi_unacked" => info.unacked,
        "tcpi_sacked" => info.sacked,
        "tcpi_lost" => info.lost,
        "tcpi_retrans" => info.retransmitted,
        "tcpi_reordering" => info.reordering,
        "tcpi_ca_state" => info.phase.into(),
        "tcpi_snd_mss" => info.mss,
        "tcpi_delivered_ce" => info.marked,
        "tcpi_delivered_e1_bytes" => info.delivered_octets[0],
        "tcpi_delivered_e0_bytes" => info.delivered_octets[1],
        "tcpi_delivered_ce_bytes" => info.delivered_octets[2],
        _ => return None,
    })
}

/// Formats a segment in the syntax of scripts.
fn print(line: &Line) -> String {
    let Line { flags, seq, length, ack, window, options } = line;
    let mut parts = vec![format!("{} {seq}:{}({length})", letters(*flags), seq.wrapping_add(*length as u32))];
    parts.extend(ack.map(|ack| format!("ack {ack}")));
    parts.extend(window.map(|window| format!("win {window}")));
    let named: Vec<_> = options.iter().flat_map(print_options).collect();
    if !named.is_empty() {
        parts.push(format!("<{}>", named.join(",")));
    }
    parts.join(" ")
}

fn letters(flags: Flags) -> String {
    let order = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::AE, 'A'),
        (Flags::ACK, '.'),
    ];
    let set: String =
        order.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, letter)| letter).collect();
    if set.is_empty() { "-".to_owned() } else { set }
}

fn print_options(options: &Options) -> Vec<String> {
    let mut named = Vec::new();
    named.extend(options.mss.map(|mss| format!("mss {mss}")));
    named.extend(options.sack_permitted.then(|| "sackOK".to_owned()));
    named.extend(options.timestamps.map(|stamps| format!("TS val {} ecr {}", stamps.value, stamps.echo)));
    named.extend(options.window_scale.map(|shift| format!("wscale {shift}")));
    if !options.sack.is_empty() {
        let blocks = options.sack.iter().map(|block| format!(" {}:{}", block.left.0, block.right.0));
        named.push(format!("sack{}", blocks.collect::<String>()));
    }
    named.extend(options.accurate_ecn.as_ref().map(ToString::to_string));
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_but_tcpi_rtt_has_an_initial_value() {
        let hol_stack::Protocol::Tcp { config, .. } =
            protocol::parse_settings("tcp:stack=linux-6.12").unwrap()
        else {
            panic!("no TCP")
        };
        let endpoint = Tcp::new(&config);
        let without: Vec<&str> =
            VARIABLES.into_iter().filter(|name| endpoint.variable(name).is_none()).collect();
        assert_eq!(without, ["tcpi_rtt"], "there is no sample yet");
    }

    #[test]
    fn segment_text_round_trips() {
        for text in [
            "S 0:0(0) win 65535 <mss 1460,sackOK,TS val 1 ecr 0,wscale 7>",
            "FP. 1:1001(1000) ack 1 win 257",
            ". 1:1(0) ack 4294967295 win 0 <sack 1:2 4:5>",
            "R 5:5(0) win 0",
        ] {
            assert_eq!(print(&Line::parse(text).unwrap()), text);
        }
        let any = Line::parse(". 1:1(0) ack 1 <...>").unwrap();
        assert_eq!((any.window, any.options), (None, None));
    }

    #[test]
    fn unreadable_segments_are_refused_with_a_correction() {
        for (text, cure) in [
            ("X 0:0(0)", "use S"),
            (". 1:3(1) ack 1", "plus 1 octets is 2"),
            ("P 1:2(1) ack 1", "both or neither"),
            ("S 0:0(0) urg 1", "use ack, win"),
            ("S 0:0(0) <ms 1>", "use mss"),
            (". 1:1(0) ack 1 <sack 1>", "write 1:1001"),
            ("S 0:0", "write first:end"),
        ] {
            let problem = Line::parse(text).unwrap_err();
            assert!(problem.contains(cure), "{text}: {problem}");
        }
    }
}
