//! The socket options that setsockopt() and getsockopt() support.

use hol_transport::Reconfiguration;

use crate::call::Call;
use crate::sysctl::Setting;
use crate::tokens::{integer, number};

/// The effect of a setsockopt() call in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SocketOption {
    /// The call has no effect, because the endpoints always behave as the option requests.
    Nothing,
    /// The call sets transport options.
    Settings(Vec<Setting>),
    /// The call sets whether close() resets the connection (`SO_LINGER`).
    Linger(bool),
    /// The call resets or adds SCTP streams.
    Reconfiguration(Reconfiguration),
}

/// Checks that the player supports the socket option that `call` sets.
pub(crate) fn check(call: &Call) -> Result<(), String> {
    match call.name.as_str() {
        "setsockopt" => parse(call).map(drop),
        "getsockopt" => match call.argument(2)? {
            "SO_ERROR" => Ok(()),
            option => variable(option).map(drop).ok_or_else(|| {
                format!("getsockopt() with {option} is not supported; use SO_ERROR or TCP_MAXSEG")
            }),
        },
        _ => Ok(()),
    }
}

/// Returns the name of the endpoint's variable that getsockopt() reads for this option.
pub(crate) fn variable(option: &str) -> Option<&'static str> {
    match option {
        "TCP_MAXSEG" => Some("tcpi_snd_mss"),
        _ => None,
    }
}

/// Parses `setsockopt(3, LEVEL, OPTION, VALUE, LENGTH)`.
pub(crate) fn parse(call: &Call) -> Result<SocketOption, String> {
    let (option, value) = (call.argument(2)?, call.argument(3)?);
    // Only these options may be expected to fail.
    if call.result.error().is_some() && !matches!(option, "SCTP_RESET_STREAMS" | "SCTP_ADD_STREAMS") {
        return Err(format!(
            "setsockopt({option}) is expected to fail, which is supported only for SCTP_RESET_STREAMS and SCTP_ADD_STREAMS"
        ));
    }
    let whole = || integer(value).ok_or_else(|| format!("{option} is {value}; write [1]"));
    let milliseconds = |names: &[(&'static str, &'static str)]| -> Result<SocketOption, String> {
        let mut settings = Vec::new();
        for (name, option) in names {
            // 0 leaves the value unchanged.
            match member(value, name)? {
                "..." => return Err(format!("{name} is \"...\"; write a number")),
                text => match number::<u64>(name, text)? {
                    0 => {}
                    millis => settings.push(sctp(option, format!("{millis}ms"))),
                },
            }
        }
        Ok(SocketOption::Settings(settings))
    };
    Ok(match option {
        "SO_REUSEADDR" | "SO_REUSEPORT" | "SO_MARK" | "IP_FREEBIND" | "SCTP_FRAGMENT_INTERLEAVE" => {
            SocketOption::Nothing
        }
        "SO_LINGER" => SocketOption::Linger(value.replace(' ', "") == "{onoff=1,linger=0}"),
        "TCP_NODELAY" => {
            SocketOption::Settings(vec![tcp("nagle", if whole()? == 0 { "on" } else { "off" }.to_owned())])
        }
        // Linux doubles the value, for the overhead of each packet, and disables autotuning. net/core/sock.c sk_setsockopt.
        "SO_SNDBUF" => {
            let octets = format!("{}B", whole()?.clamp(2304, 212_992) * 2);
            SocketOption::Settings(vec![tcp("send_buffer", octets), tcp("send_buffer_max", "0B".to_owned())])
        }
        "SO_RCVBUF" => {
            let octets = format!("{}B", whole()?.clamp(1152, 212_992) * 2);
            SocketOption::Settings(vec![
                tcp("receive_buffer", octets),
                tcp("receive_buffer_max", "0B".to_owned()),
            ])
        }
        "TCP_CONGESTION" => {
            SocketOption::Settings(vec![tcp("congestion", value.trim_matches(['"', '[', ']']).to_owned())])
        }
        "TCP_MAXSEG" => SocketOption::Settings(vec![tcp("mss", whole()?.to_string())]),
        "TCP_SYNCNT" => SocketOption::Settings(vec![tcp("syn_retries", whole()?.to_string())]),
        "TCP_USER_TIMEOUT" => SocketOption::Settings(vec![tcp("user_timeout", format!("{}ms", whole()?))]),
        "SCTP_NODELAY" => SocketOption::Settings(vec![sctp("nagle", (whole()? == 0).to_string())]),
        "SCTP_EVENTS" => parse_events(value)?,
        "SCTP_INTERLEAVING_SUPPORTED" => {
            let wanted = member(value, "assoc_value")? != "0";
            SocketOption::Settings(vec![sctp("interleaving", wanted.to_string())])
        }
        "SCTP_RTOINFO" => milliseconds(&[
            ("srto_max", "rto_max"),
            ("srto_min", "rto_min"),
            ("srto_initial", "rto_initial"),
        ])?,
        "SCTP_INITMSG" => init_message(value)?,
        "SCTP_PEER_ADDR_PARAMS" => peer_parameters(value)?,
        "SCTP_RESET_STREAMS" => SocketOption::Reconfiguration(parse_reset_streams(value)?),
        "SCTP_ADD_STREAMS" => SocketOption::Reconfiguration(parse_add_streams(value)?),
        other => {
            return Err(format!(
                "setsockopt() with {other} is not supported; write a setting such as \"--nagle=off\" above the script"
            ));
        }
    })
}

fn tcp(option: &'static str, value: String) -> Setting {
    Setting { protocol: "tcp", option, value }
}

fn sctp(option: &'static str, value: String) -> Setting {
    Setting { protocol: "sctp", option, value }
}

/// Returns the value of a member of a structure, at any depth of nesting.
pub(crate) fn member<'t>(text: &'t str, name: &str) -> Result<&'t str, String> {
    let is_whole = |at: usize| !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let key = format!("{name}=");
    let at = text.match_indices(&key).map(|(at, _)| at).find(|at| is_whole(*at));
    let from = at
        .map(|at| &text[at + key.len()..])
        .ok_or_else(|| format!("{text} has no {name}; write {name}=..."))?;
    let end = if from.starts_with('[') { ']' } else { ',' };
    Ok(from.split([end, '}']).next().unwrap_or_default().trim_matches(['[', ' ']))
}

/// Parses a subscription to SCTP events. Only events that cause no notifications are supported, because a read
/// would return notifications between messages.
fn parse_events(value: &str) -> Result<SocketOption, String> {
    for part in value.trim_matches(['{', '}']).split(',') {
        let (name, set) = part.split_once('=').ok_or_else(|| format!("{part} has no value; write name=0"))?;
        if name.trim() != "sctp_data_io_event" && set.trim() != "0" {
            return Err(format!(
                "{} of SCTP_EVENTS is not supported; notifications are not read",
                name.trim()
            ));
        }
    }
    Ok(SocketOption::Nothing)
}

/// Parses `struct sctp_initmsg`. A value of 0 leaves the setting unchanged. RFC 6458 section 8.1.3.
fn init_message(value: &str) -> Result<SocketOption, String> {
    let count = |name: &str| member(value, name).and_then(|text| number::<u64>(name, text));
    let names = [
        ("sinit_num_ostreams", "streams"),
        ("sinit_max_instreams", "max_inbound_streams"),
        ("sinit_max_attempts", "max_init_retransmits"),
    ];
    let mut settings = Vec::new();
    for (name, option) in names {
        match count(name)? {
            0 => {}
            value => settings.push(sctp(option, value.to_string())),
        }
    }
    match count("sinit_max_init_timeo")? {
        0 => Ok(SocketOption::Settings(settings)),
        _ => Err("sinit_max_init_timeo is not supported; write 0".to_owned()),
    }
}

/// Parses `struct sctp_paddrparams`. A setting stays unchanged if its value is 0 or its flag is missing. RFC 6458
/// section 8.1.12.
fn peer_parameters(value: &str) -> Result<SocketOption, String> {
    let count = |name: &str| match member(value, name) {
        Ok("...") | Err(_) => Ok(0),
        Ok(text) => number::<u64>(name, text),
    };
    let flags: Vec<&str> = member(value, "spp_flags")?.split('|').map(str::trim).collect();
    let mut settings = Vec::new();
    for flag in flags {
        match flag {
            "SPP_HB_DISABLE" => settings.push(sctp("heartbeat", "false".to_owned())),
            "SPP_HB_ENABLE" => settings.push(sctp("heartbeat", "true".to_owned())),
            "SPP_PMTUD_DISABLE" | "SPP_PMTUD_ENABLE" | "SPP_SACKDELAY_ENABLE" | "0" => {}
            other => {
                return Err(format!("spp_flags: unknown flag {other}; use SPP_HB_ENABLE or SPP_HB_DISABLE"));
            }
        }
    }
    let names = [
        ("spp_hbinterval", "hb_interval", "ms"),
        ("spp_pathmaxrxt", "path_max_retrans", ""),
        ("spp_pathmtu", "mtu", "B"),
    ];
    for (name, option, unit) in names {
        match count(name)? {
            0 => {}
            value => settings.push(sctp(option, format!("{value}{unit}"))),
        }
    }
    Ok(SocketOption::Settings(settings))
}

/// Parses the value of `SCTP_RESET_STREAMS`, such as `{srs_flags=SCTP_STREAM_RESET_OUTGOING,
/// srs_stream_list=[0,1]}`. RFC 6525 section 6.3.2.
fn parse_reset_streams(value: &str) -> Result<Reconfiguration, String> {
    let list = member(value, "srs_stream_list")?.split(',').map(str::trim).filter(|text| !text.is_empty());
    let streams = list.map(|text| number("a stream", text)).collect::<Result<_, String>>()?;
    match member(value, "srs_flags")? {
        "SCTP_STREAM_RESET_OUTGOING" => Ok(Reconfiguration::ResetOutgoing(streams)),
        "SCTP_STREAM_RESET_INCOMING" => Ok(Reconfiguration::ResetIncoming(streams)),
        other => Err(format!(
            "{other} is not supported; use SCTP_STREAM_RESET_OUTGOING or SCTP_STREAM_RESET_INCOMING"
        )),
    }
}

/// Parses the value of `SCTP_ADD_STREAMS`, such as `{sas_instrms=0, sas_outstrms=2}`. RFC 6525 section 6.3.4.
fn parse_add_streams(value: &str) -> Result<Reconfiguration, String> {
    let count = |name: &str| number(name, member(value, name)?);
    Ok(match count("sas_outstrms")? {
        0 => Reconfiguration::AddIncoming(count("sas_instrms")?),
        more => Reconfiguration::AddOutgoing(more),
    })
}
