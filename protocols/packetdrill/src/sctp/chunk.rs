//! The syntax of chunks, parameters and error causes.

use std::net::Ipv4Addr;

use bytes::Bytes;
use hol_wire::SendTimes;
use hol_wire::sctp::{
    Cause, Chunk, Data, DataFlags, ForwardTsn, Fsn, GapAckBlock, IData, IForwardTsn, Init, Mid, Parameter,
    Reconfig, ReconfigResult, ReconfigSerial, Sack, SkippedMessages, Ssn, Tsn,
};

use super::item::{Item, integer, kind};

/// Maximum number of octets of a chunk.
const MAX_OCTETS: usize = 65_535;

const DATA_LETTERS: [(DataFlags, char); 4] = [
    (DataFlags::IMMEDIATE, 'I'),
    (DataFlags::UNORDERED, 'U'),
    (DataFlags::BEGIN, 'B'),
    (DataFlags::END, 'E'),
];

/// The cookie and the heartbeat information that arrived last. An inbound chunk echoes them if the script omits
/// the values.
#[derive(Debug, Default)]
pub(super) struct PeerValues {
    pub(super) cookie: Bytes,
    pub(super) heartbeat: Bytes,
}

/// Returns the inbound chunk that `item` describes.
pub(super) fn read(item: &Item, seen: &PeerValues) -> Result<Chunk, String> {
    let reflected = item.get("flgs").is_some_and(|flags| flags.contains('T'));
    Ok(match item.name.as_str() {
        "DATA" => Chunk::Data(data(item)?),
        "INIT" => Chunk::Init(Box::new(init(item)?)),
        "INIT_ACK" => Chunk::InitAck(Box::new(init(item)?)),
        "SACK" => Chunk::Sack(sack(item)?),
        "HEARTBEAT" => Chunk::Heartbeat(heartbeat_info(item, seen)?),
        "HEARTBEAT_ACK" => Chunk::HeartbeatAck(heartbeat_info(item, seen)?),
        "ABORT" => Chunk::Abort { reflected, causes: causes(item)? },
        "ERROR" => Chunk::Error(causes(item)?),
        "SHUTDOWN" => Chunk::Shutdown { cumulative_tsn: Tsn(item.count("cum_tsn")?) },
        "SHUTDOWN_ACK" => Chunk::ShutdownAck,
        "SHUTDOWN_COMPLETE" => Chunk::ShutdownComplete { reflected },
        "COOKIE_ECHO" => Chunk::CookieEcho(octets(item, "val", 4)?.unwrap_or(seen.cookie.clone())),
        "COOKIE_ACK" => Chunk::CookieAck,
        "ECNE" => Chunk::Ecne(Tsn(item.count("tsn")?)),
        "CWR" => Chunk::Cwr(Tsn(item.count("tsn")?)),
        "FORWARD_TSN" => Chunk::ForwardTsn(Box::new(forward_tsn(item)?)),
        "I_DATA" => Chunk::IData(Box::new(i_data(item)?)),
        "I_FORWARD_TSN" => Chunk::IForwardTsn(Box::new(i_forward_tsn(item)?)),
        "RECONFIG" => Chunk::Reconfig(item.items.iter().map(reconfig).collect::<Result<_, _>>()?),
        "CHUNK" => Chunk::Unknown {
            kind: item
                .get("type")
                .and_then(kind)
                .and_then(|kind| u8::try_from(kind).ok())
                .map_or_else(|| item.count("type"), Ok)?,
            flags: item.count_or("flgs", 0)?,
            value: octets(item, "val", 4)?.unwrap_or_default(),
        },
        other => return Err(unknown(other)),
    })
}

/// The names of chunks that can appear in outbound packets.
const CHUNK_NAMES: [&str; 20] = [
    "DATA",
    "INIT",
    "INIT_ACK",
    "SACK",
    "HEARTBEAT",
    "HEARTBEAT_ACK",
    "ABORT",
    "ERROR",
    "SHUTDOWN",
    "SHUTDOWN_ACK",
    "SHUTDOWN_COMPLETE",
    "COOKIE_ECHO",
    "COOKIE_ACK",
    "ECNE",
    "CWR",
    "FORWARD_TSN",
    "I_DATA",
    "I_FORWARD_TSN",
    "RECONFIG",
    "CHUNK",
];

/// Checks that the chunk's name is known.
pub(super) fn check_name(item: &Item) -> Result<(), String> {
    if CHUNK_NAMES.contains(&item.name.as_str()) { Ok(()) } else { Err(unknown(&item.name)) }
}

fn unknown(name: &str) -> String {
    format!("unknown chunk {name}; write CHUNK[type=N, val=[...]]")
}

/// Returns the octets given by `key`. Without it, generates octets so that the item has the length `len`,
/// including a header of `header` octets. `None` without `key` and `len`.
fn octets(item: &Item, key: &str, header: usize) -> Result<Option<Bytes>, String> {
    if item.get(key).is_none() {
        let length = length_of(item)?;
        return Ok(length.map(|length| (0..length.saturating_sub(header)).map(|at| at as u8).collect()));
    }
    let octet = |text: &str| integer(text).and_then(|value| u8::try_from(value).ok());
    let octets: Option<Bytes> = item.list(key).into_iter().map(octet).collect();
    octets
        .map(Some)
        .ok_or_else(|| format!("{key} of {} is not a list of octets; write [0x01, 0x02]", item.name))
}

/// Returns the value of `len`; `None` if it is missing.
fn length_of(item: &Item) -> Result<Option<usize>, String> {
    let length: Option<usize> = item.get("len").map(|_| item.count("len")).transpose()?;
    match length {
        Some(length) if length > MAX_OCTETS => {
            Err(format!("{} is {length} octets long; the maximum is {MAX_OCTETS}", item.name))
        }
        length => Ok(length),
    }
}

/// Generates `length` octets of user data from a TSN, so that they identify the fragment.
pub(super) fn user_data(tsn: u32, length: usize) -> Bytes {
    (0..length).map(|at| tsn.to_be_bytes()[at % 4] ^ (at / 4) as u8).collect()
}

/// Returns the user data of a DATA chunk: those of `val`, or generated octets so that the chunk has the length
/// `len`, including a header of `header` octets.
fn fragment(item: &Item, header: usize) -> Result<Bytes, String> {
    if item.get("val").is_some() {
        return Ok(octets(item, "val", header)?.unwrap_or_default());
    }
    let length = length_of(item)?.ok_or_else(|| {
        format!("{} has no len; write len=N, which includes {header} octets of header", item.name)
    })?;
    Ok(user_data(item.count("tsn")?, length.saturating_sub(header)))
}

fn data(item: &Item) -> Result<Data, String> {
    Ok(Data {
        flags: data_flags(item),
        tsn: Tsn(item.count("tsn")?),
        stream: item.count("sid")?,
        ssn: Ssn(item.count_or("ssn", 0)?),
        ppid: item.count_or("ppid", 0)?,
        payload: fragment(item, Data::HEADER_LENGTH)?,
        stamp: SendTimes::default(),
    })
}

fn data_flags(item: &Item) -> DataFlags {
    let letters = item.get("flgs").unwrap_or("0");
    let set = DATA_LETTERS.into_iter().filter(|(_, letter)| letters.contains(*letter));
    set.fold(DataFlags::default(), |flags, (flag, _)| flags | flag)
}

/// Parses an I-DATA chunk. The first fragment of a message has `ppid`, all others have `fsn`.
fn i_data(item: &Item) -> Result<IData, String> {
    let flags = data_flags(item);
    let begins = flags.contains(DataFlags::BEGIN);
    Ok(IData {
        flags,
        tsn: Tsn(item.count("tsn")?),
        stream: item.count("sid")?,
        mid: Mid(item.count("mid")?),
        fsn: Fsn(if begins { 0 } else { item.count("fsn")? }),
        ppid: if begins { item.count_or("ppid", 0)? } else { 0 },
        payload: fragment(item, IData::HEADER_LENGTH)?,
        stamp: SendTimes::default(),
    })
}

fn init(item: &Item) -> Result<Init, String> {
    Ok(Init {
        initiate_tag: item.count("tag")?,
        a_rwnd: item.count("a_rwnd")?,
        outbound_streams: item.count("os")?,
        inbound_streams: item.count("is")?,
        initial_tsn: Tsn(item.count("tsn")?),
        parameters: item.items.iter().map(parameter).collect::<Result<_, _>>()?,
    })
}

fn parameter(item: &Item) -> Result<Parameter, String> {
    let address = |item: &Item| {
        let text = item.get("addr").unwrap_or_default().trim_matches('"').to_owned();
        text.parse::<Ipv4Addr>().map_err(|_| format!("{text:?} is not an address; write addr=\"10.0.0.2\""))
    };
    Ok(match item.name.as_str() {
        "IPV4_ADDRESS" => Parameter::Ipv4Address(address(item)?),
        "IPV6_ADDRESS" => Parameter::Ipv6Address([0xfd; 16].into()),
        "STATE_COOKIE" => Parameter::StateCookie(octets(item, "val", 4)?.unwrap_or_default()),
        "COOKIE_PRESERVATIVE" => Parameter::CookiePreservative(item.count("incr")?),
        "HOSTNAME_ADDRESS" => {
            let name = item.get("addr").unwrap_or_default().trim_matches('"').to_owned() + "\0";
            Parameter::HostNameAddress(name.into())
        }
        "SUPPORTED_ADDRESS_TYPES" if item.get("types").is_none() => {
            Parameter::SupportedAddressTypes(vec![5, 6])
        }
        "SUPPORTED_ADDRESS_TYPES" => Parameter::SupportedAddressTypes(kinds(item)?),
        "ECN_CAPABLE" => Parameter::EcnCapable,
        "ZERO_CHECKSUM_ACCEPTABLE" => Parameter::ZeroChecksumAcceptable(item.count("edmid")?),
        "FORWARD_TSN_SUPPORTED" => Parameter::ForwardTsnSupported,
        "SUPPORTED_EXTENSIONS" => Parameter::SupportedExtensions(kinds(item)?),
        "PARAMETER" => Parameter::Unknown {
            kind: item.count("type")?,
            value: octets(item, if item.get("val").is_some() { "val" } else { "value" }, 4)?
                .unwrap_or_default(),
        },
        other => {
            return Err(format!("unknown parameter {other}; write PARAMETER[type=N, value=[...]]"));
        }
    })
}

/// Returns the types in the list `types` of a parameter.
fn kinds<T: TryFrom<u64>>(item: &Item) -> Result<Vec<T>, String> {
    let list =
        item.get("types").ok_or_else(|| format!("{} has no types; write types=[64, 194]", item.name))?;
    let kinds: Option<Vec<T>> = item
        .list("types")
        .into_iter()
        .map(|text| kind(text).and_then(|kind| T::try_from(kind).ok()))
        .collect();
    kinds.ok_or_else(|| format!("{list} is not a list of types; write [64, I_FORWARD_TSN]"))
}

fn sack(item: &Item) -> Result<Sack, String> {
    let gap = |text: &str| {
        let (start, end) =
            text.split_once(':').ok_or_else(|| format!("{text:?} is not a gap ack block; write 2:3"))?;
        let edge = |text| integer(text).and_then(|edge| u16::try_from(edge).ok());
        let edges = edge(start)
            .zip(edge(end))
            .ok_or_else(|| format!("{text:?} is not a gap ack block; write 2:3"))?;
        Ok(GapAckBlock { start: edges.0, end: edges.1 })
    };
    let duplicate =
        |text: &str| integer(text).map(|tsn| Tsn(tsn as u32)).ok_or(format!("{text:?} is not a TSN"));
    Ok(Sack {
        cumulative_tsn: Tsn(item.count("cum_tsn")?),
        a_rwnd: item.count("a_rwnd")?,
        gaps: item.list("gaps").into_iter().map(gap).collect::<Result<_, String>>()?,
        duplicates: item.list("dups").into_iter().map(duplicate).collect::<Result<_, _>>()?,
    })
}

fn forward_tsn(item: &Item) -> Result<ForwardTsn, String> {
    let skipped = |text: &str| {
        let (stream, ssn) = text.trim_matches(['{', '}']).split_once(',')?;
        Some((integer(stream)? as u16, Ssn(integer(ssn)? as u16)))
    };
    let skipped: Option<_> = item.list("ids").into_iter().map(skipped).collect();
    Ok(ForwardTsn {
        new_cumulative_tsn: Tsn(item.count("cum_tsn")?),
        skipped: skipped.ok_or("ids of FORWARD_TSN are not a list of streams; write [{0,1},{1,3}]")?,
    })
}

fn i_forward_tsn(item: &Item) -> Result<IForwardTsn, String> {
    let skipped = |text: &str| {
        let mut parts = text.trim_matches(['{', '}']).split(',').map(str::trim);
        let (stream, kind, mid) = (parts.next()?, parts.next()?, parts.next()?);
        let unordered = [("O", false), ("U", true), ("0", false), ("1", true)]
            .into_iter()
            .find(|(letter, _)| *letter == kind)?
            .1;
        let (stream, mid) = (u16::try_from(integer(stream)?).ok()?, u32::try_from(integer(mid)?).ok()?);
        parts.next().is_none().then_some(SkippedMessages { stream, unordered, mid: Mid(mid) })
    };
    let skipped: Option<_> = item.list("ids").into_iter().map(skipped).collect();
    Ok(IForwardTsn {
        new_cumulative_tsn: Tsn(item.count("cum_tsn")?),
        skipped: skipped.ok_or(
            "ids of I_FORWARD_TSN are not a list of messages; write [{0,O,1},{1,U,3}]: stream, ordered or unordered, MID",
        )?,
    })
}

/// Parses a parameter of RE-CONFIG. RFC 6525 section 4.
fn reconfig(item: &Item) -> Result<Reconfig, String> {
    let serial = |key: &str| item.count(key).map(ReconfigSerial);
    let streams = || {
        let stream = |text: &str| integer(text).and_then(|stream| u16::try_from(stream).ok());
        let streams: Option<Vec<u16>> = item.list("sids").into_iter().map(stream).collect();
        streams.ok_or_else(|| format!("sids of {} is not a list of streams; write [0,1]", item.name))
    };
    Ok(match item.name.as_str() {
        "OUTGOING_SSN_RESET" => Reconfig::OutgoingReset {
            serial: serial("req_sn")?,
            response: serial("resp_sn")?,
            last_tsn: Tsn(item.count("last_tsn")?),
            streams: streams()?,
        },
        "INCOMING_SSN_RESET" => Reconfig::IncomingReset { serial: serial("req_sn")?, streams: streams()? },
        "SSN_TSN_RESET" => Reconfig::TsnReset { serial: serial("req_sn")? },
        "RECONFIG_RESPONSE" => Reconfig::Response {
            serial: serial("resp_sn")?,
            result: ReconfigResult(item.count("result")?),
            next_tsns: None,
        },
        "ADD_OUTGOING_STREAMS" => {
            Reconfig::AddOutgoing { serial: serial("req_sn")?, streams: item.count("streams")? }
        }
        "ADD_INCOMING_STREAMS" => {
            Reconfig::AddIncoming { serial: serial("req_sn")?, streams: item.count("streams")? }
        }
        "PARAMETER" => Reconfig::Unknown {
            kind: item.count("type")?,
            value: octets(item, "value", 4)?.unwrap_or_default(),
        },
        other => {
            return Err(format!(
                "{other} is not a request; use OUTGOING_SSN_RESET, INCOMING_SSN_RESET, SSN_TSN_RESET, \
             RECONFIG_RESPONSE, ADD_OUTGOING_STREAMS, ADD_INCOMING_STREAMS and PARAMETER"
            ));
        }
    })
}

fn show_reconfig(parameter: &Reconfig) -> Item {
    let sids = |streams: &[u16]| list(streams.iter().map(u16::to_string));
    match parameter {
        Reconfig::OutgoingReset { serial, response, last_tsn, streams } => Item::new("OUTGOING_SSN_RESET")
            .with("req_sn", &serial.0)
            .with("resp_sn", &response.0)
            .with("last_tsn", &last_tsn.0)
            .with("sids", &sids(streams)),
        Reconfig::IncomingReset { serial, streams } => {
            Item::new("INCOMING_SSN_RESET").with("req_sn", &serial.0).with("sids", &sids(streams))
        }
        Reconfig::TsnReset { serial } => Item::new("SSN_TSN_RESET").with("req_sn", &serial.0),
        Reconfig::Response { serial, result, .. } => {
            Item::new("RECONFIG_RESPONSE").with("resp_sn", &serial.0).with("result", &result.0)
        }
        Reconfig::AddOutgoing { serial, streams } => {
            Item::new("ADD_OUTGOING_STREAMS").with("req_sn", &serial.0).with("streams", streams)
        }
        Reconfig::AddIncoming { serial, streams } => {
            Item::new("ADD_INCOMING_STREAMS").with("req_sn", &serial.0).with("streams", streams)
        }
        Reconfig::Unknown { kind, .. } => Item::new("PARAMETER").with("type", kind),
    }
}

fn heartbeat_info(item: &Item, seen: &PeerValues) -> Result<Bytes, String> {
    let info = item.items.first().map(|info| octets(info, "val", 4)).transpose()?.flatten();
    Ok(info.unwrap_or(seen.heartbeat.clone()))
}

fn causes(item: &Item) -> Result<Vec<Cause>, String> {
    item.items.iter().map(cause).collect()
}

fn cause(item: &Item) -> Result<Cause, String> {
    let value = || octets(item, "val", 4).map(Option::unwrap_or_default);
    Ok(match item.name.as_str() {
        "INVALID_STREAM_IDENTIFIER" => Cause::InvalidStreamIdentifier(item.count("sid")?),
        "STALE_COOKIE_ERROR" => Cause::StaleCookie(item.count("staleness")?),
        "OUT_OF_RESOURCES" => Cause::OutOfResource,
        "UNRECOGNIZED_CHUNK_TYPE" => Cause::UnrecognizedChunk(value()?),
        "INVALID_MANDATORY_PARAMETER" => Cause::InvalidMandatoryParameter,
        "USER_INITIATED_ABORT" => Cause::UserInitiatedAbort(value()?),
        "PROTOCOL_VIOLATION" => Cause::ProtocolViolation(value()?),
        "CAUSE" => Cause::Other { code: item.count("code")?, value: value()? },
        other => {
            return Err(format!("unknown error cause {other}; write CAUSE[code=N, val=[...]]"));
        }
    })
}

/// Returns an outbound chunk in the syntax of scripts.
pub(super) fn to_item(chunk: &Chunk) -> Item {
    let flags = |reflected: bool| if reflected { "T" } else { "0" };
    match chunk {
        Chunk::Data(data) => show_data(data),
        Chunk::Init(init) => show_init("INIT", init),
        Chunk::InitAck(init) => show_init("INIT_ACK", init),
        Chunk::Sack(sack) => show_sack(sack),
        Chunk::Heartbeat(info) => show_heartbeat("HEARTBEAT", info),
        Chunk::HeartbeatAck(info) => show_heartbeat("HEARTBEAT_ACK", info),
        Chunk::Abort { reflected, causes } => {
            Item::new("ABORT").with("flgs", &flags(*reflected)).with_items(causes.iter().map(show_cause))
        }
        Chunk::Error(causes) => Item::new("ERROR").with("flgs", &0).with_items(causes.iter().map(show_cause)),
        Chunk::Shutdown { cumulative_tsn } => {
            Item::new("SHUTDOWN").with("flgs", &0).with("cum_tsn", &cumulative_tsn.0)
        }
        Chunk::ShutdownAck => Item::new("SHUTDOWN_ACK").with("flgs", &0),
        Chunk::ShutdownComplete { reflected } => {
            Item::new("SHUTDOWN_COMPLETE").with("flgs", &flags(*reflected))
        }
        Chunk::CookieEcho(cookie) => opaque(Item::new("COOKIE_ECHO").with("flgs", &0), cookie),
        Chunk::CookieAck => Item::new("COOKIE_ACK").with("flgs", &0),
        Chunk::Ecne(tsn) => Item::new("ECNE").with("flgs", &0).with("tsn", &tsn.0),
        Chunk::Cwr(tsn) => Item::new("CWR").with("flgs", &0).with("tsn", &tsn.0),
        Chunk::ForwardTsn(forward) => {
            let ids = forward.skipped.iter().map(|(stream, ssn)| format!("{{{stream},{}}}", ssn.0));
            Item::new("FORWARD_TSN").with("cum_tsn", &forward.new_cumulative_tsn.0).with("ids", &list(ids))
        }
        Chunk::Reconfig(parameters) => {
            Item::new("RECONFIG").with("flgs", &0).with_items(parameters.iter().map(show_reconfig))
        }
        Chunk::IData(data) => show_i_data(data),
        Chunk::IForwardTsn(forward) => {
            let id = |skipped: &SkippedMessages| {
                let kind = if skipped.unordered { "U" } else { "O" };
                format!("{{{},{kind},{}}}", skipped.stream, skipped.mid.0)
            };
            Item::new("I_FORWARD_TSN")
                .with("cum_tsn", &forward.new_cumulative_tsn.0)
                .with("ids", &list(forward.skipped.iter().map(id)))
        }
        other => Item::new("CHUNK").with("type", &other.kind()).with("len", &other.length()),
    }
}

fn list(parts: impl Iterator<Item = String>) -> String {
    format!("[{}]", parts.collect::<Vec<_>>().join(","))
}

/// Adds the total length and the octets of a value to an item.
fn opaque(item: Item, value: &[u8]) -> Item {
    item.with("len", &(4 + value.len()))
        .with("val", &list(value.iter().map(|octet| format!("0x{octet:02x}"))))
}

/// Returns a chunk or a parameter as an item with type, length and octets.
fn raw(name: &str, whole: &[u8]) -> Item {
    let [first, second, high, low, value @ ..] = whole else { return Item::new(name) };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    let item = match name {
        "CHUNK" => Item::new(name).with("type", first).with("flgs", second),
        _ => Item::new(name).with("type", &u16::from_be_bytes([*first, *second])),
    };
    let value = &value[..value.len().min(length.saturating_sub(4))];
    item.with("len", &length).with("val", &list(value.iter().map(|octet| format!("0x{octet:02x}"))))
}

fn show_data(data: &Data) -> Item {
    Item::new("DATA")
        .with("flgs", &show_data_flags(data.flags))
        .with("len", &(Data::HEADER_LENGTH + data.payload.len()))
        .with("tsn", &data.tsn.0)
        .with("sid", &data.stream)
        .with("ssn", &data.ssn.0)
        .with("ppid", &data.ppid)
}

fn show_data_flags(flags: DataFlags) -> String {
    let set = DATA_LETTERS.iter().filter(|(flag, _)| flags.contains(*flag));
    let letters: String = set.map(|(_, letter)| letter).collect();
    if letters.is_empty() { "0".to_owned() } else { letters }
}

fn show_i_data(data: &IData) -> Item {
    let item = Item::new("I_DATA")
        .with("flgs", &show_data_flags(data.flags))
        .with("len", &(IData::HEADER_LENGTH + data.payload.len()))
        .with("tsn", &data.tsn.0)
        .with("sid", &data.stream)
        .with("mid", &data.mid.0);
    if data.flags.contains(DataFlags::BEGIN) {
        item.with("ppid", &data.ppid)
    } else {
        item.with("fsn", &data.fsn.0)
    }
}

fn show_init(name: &str, init: &Init) -> Item {
    Item::new(name)
        .with("flgs", &0)
        .with("tag", &init.initiate_tag)
        .with("a_rwnd", &init.a_rwnd)
        .with("os", &init.outbound_streams)
        .with("is", &init.inbound_streams)
        .with("tsn", &init.initial_tsn.0)
        .with_items(init.parameters.iter().map(show_parameter))
}

fn show_parameter(parameter: &Parameter) -> Item {
    match parameter {
        Parameter::Ipv4Address(address) => Item::new("IPV4_ADDRESS").with("addr", &format!("\"{address}\"")),
        Parameter::StateCookie(cookie) => opaque(Item::new("STATE_COOKIE"), cookie),
        Parameter::Unrecognized(whole) => opaque(Item::new("UNRECOGNIZED_PARAMETER"), whole)
            .with("params", &format!("[{}]", raw("PARAMETER", whole))),
        Parameter::SupportedAddressTypes(kinds) => {
            Item::new("SUPPORTED_ADDRESS_TYPES").with("types", &list(kinds.iter().map(u16::to_string)))
        }
        Parameter::CookiePreservative(millis) => Item::new("COOKIE_PRESERVATIVE").with("incr", &millis),
        Parameter::EcnCapable => Item::new("ECN_CAPABLE"),
        Parameter::ZeroChecksumAcceptable(method) => {
            Item::new("ZERO_CHECKSUM_ACCEPTABLE").with("edmid", method)
        }
        Parameter::ForwardTsnSupported => Item::new("FORWARD_TSN_SUPPORTED"),
        Parameter::SupportedExtensions(kinds) => {
            Item::new("SUPPORTED_EXTENSIONS").with("types", &list(kinds.iter().map(u8::to_string)))
        }
        other => Item::new("PARAMETER").with("len", &other.length()),
    }
}

fn show_sack(sack: &Sack) -> Item {
    Item::new("SACK")
        .with("flgs", &0)
        .with("cum_tsn", &sack.cumulative_tsn.0)
        .with("a_rwnd", &sack.a_rwnd)
        .with("gaps", &list(sack.gaps.iter().map(|gap| format!("{}:{}", gap.start, gap.end))))
        .with("dups", &list(sack.duplicates.iter().map(|tsn| tsn.0.to_string())))
}

fn show_heartbeat(name: &str, info: &[u8]) -> Item {
    Item::new(name).with("flgs", &0).with_items([opaque(Item::new("HEARTBEAT_INFORMATION"), info)])
}

fn show_cause(cause: &Cause) -> Item {
    match cause {
        Cause::InvalidStreamIdentifier(stream) => Item::new("INVALID_STREAM_IDENTIFIER").with("sid", &stream),
        Cause::MissingMandatoryParameter(kind) => {
            Item::new("MISSING_MANDATORY_PARAMETER").with("types", &format!("[{kind}]"))
        }
        Cause::StaleCookie(micros) => Item::new("STALE_COOKIE_ERROR").with("staleness", &micros),
        Cause::OutOfResource => Item::new("OUT_OF_RESOURCES"),
        Cause::UnresolvableAddress(value) => {
            opaque(Item::new("UNRESOLVABLE_ADDRESS"), value).with("param", &raw("PARAMETER", value))
        }
        Cause::UnrecognizedChunk(value) => {
            opaque(Item::new("UNRECOGNIZED_CHUNK_TYPE"), value).with("chk", &raw("CHUNK", value))
        }
        Cause::InvalidMandatoryParameter => Item::new("INVALID_MANDATORY_PARAMETER"),
        Cause::UnrecognizedParameters(value) => opaque(Item::new("UNRECOGNIZED_PARAMETERS"), value)
            .with("params", &format!("[{}]", raw("PARAMETER", value))),
        Cause::NoUserData(tsn) => Item::new("NO_USER_DATA").with("tsn", &tsn.0),
        Cause::CookieWhileShuttingDown => Item::new("COOKIE_RECEIVED_WHILE_SHUTTING_DOWN"),
        Cause::NewAddresses(value) => opaque(Item::new("RESTART_WITH_NEW_ADDRESSES"), value),
        Cause::UserInitiatedAbort(value) => opaque(Item::new("USER_INITIATED_ABORT"), value),
        Cause::ProtocolViolation(value) => {
            opaque(Item::new("PROTOCOL_VIOLATION"), value).with("info", &"...")
        }
        other => Item::new("CAUSE").with("len", &other.length()),
    }
}
