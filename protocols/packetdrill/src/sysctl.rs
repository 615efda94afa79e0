//! Maps the sysctls of a script to options of a specification.
//!
//! A value that describes our endpoints' only behaviour is accepted and has no effect. A value that they do not
//! support is refused, because it would change the packets.

use crate::tokens::number;

/// A transport option with its value, such as `sack=false`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Name of the protocol: `tcp` or `sctp`.
    pub(crate) protocol: &'static str,
    pub(crate) option: &'static str,
    pub(crate) value: String,
}

/// How the value of a sysctl is converted to the value of a transport option.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// 0 means false, any other value true.
    Switch,
    /// 0 means true, any other value false.
    InverseSwitch,
    Number,
    Milliseconds,
    Microseconds,
    Nanoseconds,
    Name,
}

/// Sysctls that correspond to one transport option. Linux: net/ipv4/sysctl_net_ipv4.c, net/sctp/sysctl.c; FreeBSD:
/// sctp_sysctl.c.
const MAPPED_SYSCTLS: &[(&str, &str, Form)] = &[
    ("net.ipv4.tcp_sack", "sack", Form::Switch),
    ("net.ipv4.tcp_dsack", "dsack", Form::Switch),
    ("net.ipv4.tcp_timestamps", "timestamps", Form::Switch),
    ("net.ipv4.tcp_frto", "frto", Form::Switch),
    ("net.ipv4.tcp_reordering", "dupthresh", Form::Number),
    ("net.ipv4.tcp_congestion_control", "congestion", Form::Name),
    ("net.ipv4.tcp_slow_start_after_idle", "slow_start_after_idle", Form::Switch),
    ("net.ipv4.tcp_syn_retries", "syn_retries", Form::Number),
    ("net.ipv4.tcp_syn_linear_timeouts", "syn_linear_timeouts", Form::Number),
    ("net.ipv4.tcp_retries2", "max_retries", Form::Number),
    ("net.ipv4.tcp_retrans_collapse", "collapse_on_retransmit", Form::Switch),
    ("net.ipv4.tcp_comp_sack_nr", "sack_compression", Form::Number),
    ("net.ipv4.tcp_comp_sack_delay_ns", "sack_compression_max", Form::Nanoseconds),
    ("net.ipv4.tcp_comp_sack_slack_ns", "sack_compression_slack", Form::Nanoseconds),
    ("net.ipv4.tcp_comp_sack_rtt_percent", "sack_compression_percent", Form::Number),
    ("net.ipv4.tcp_rcvbuf_low_rtt", "receive_buffer_low_rtt", Form::Microseconds),
    ("net.inet.tcp.sack.enable", "sack", Form::Switch),
    ("net.sctp.auth_enable", "auth", Form::Switch),
    ("net.sctp.prsctp_enable", "partial_reliability", Form::Switch),
    ("net.sctp.reconf_enable", "reconfig", Form::Switch),
    ("net.sctp.ecn_enable", "ecn", Form::Switch),
    ("net.sctp.addip_enable", "addip", Form::Switch),
    ("net.sctp.rto_initial", "rto_initial", Form::Milliseconds),
    ("net.sctp.rto_min", "rto_min", Form::Milliseconds),
    ("net.sctp.rto_max", "rto_max", Form::Milliseconds),
    ("net.sctp.hb_interval", "hb_interval", Form::Milliseconds),
    ("net.sctp.sack_timeout", "sack_delay", Form::Milliseconds),
    ("net.sctp.valid_cookie_life", "valid_cookie_life", Form::Milliseconds),
    ("net.sctp.max_burst", "max_burst", Form::Number),
    ("net.sctp.association_max_retrans", "association_max_retrans", Form::Number),
    ("net.sctp.path_max_retrans", "path_max_retrans", Form::Number),
    ("net.sctp.max_init_retransmits", "max_init_retransmits", Form::Number),
    ("net.sctp.pf_retrans", "pf_threshold", Form::Number),
    ("net.inet.sctp.auth_enable", "auth", Form::Switch),
    ("net.inet.sctp.auth_disable", "auth", Form::InverseSwitch),
    ("net.inet.sctp.pr_enable", "partial_reliability", Form::Switch),
    ("net.inet.sctp.reconfig_enable", "reconfig", Form::Switch),
    ("net.inet.sctp.ecn_enable", "ecn", Form::Switch),
    ("net.inet.sctp.asconf_enable", "addip", Form::Switch),
    ("net.inet.sctp.rto_initial", "rto_initial", Form::Milliseconds),
    ("net.inet.sctp.rto_min", "rto_min", Form::Milliseconds),
    ("net.inet.sctp.rto_max", "rto_max", Form::Milliseconds),
];

/// Sysctls without a transport option, with the values that describe how the endpoints behave; an empty list
/// accepts any value.
const FIXED_SYSCTLS: &[(&str, &[&str])] = &[
    ("net.ipv4.tcp_fack", &["0"]),
    ("net.ipv4.tcp_tso_win_divisor", &["3"]),
    ("net.ipv4.tcp_ecn_fallback", &["1"]),
    // With `tcp_ecn_option` = 2 every segment has the option.
    ("net.ipv4.tcp_ecn_option_beacon", &[]),
    ("net.ipv4.tcp_pacing_ss_ratio", &["200"]),
    ("net.ipv4.tcp_pacing_ca_ratio", &["120"]),
    ("net.ipv4.tcp_notsent_lowat", &["4294967295"]),
    // A script that uses Fast Open also uses its other features, which are refused.
    ("net.ipv4.tcp_fastopen", &[]),
    ("net.ipv4.tcp_fastopen_key", &[]),
    ("net.ipv4.tcp_fastopen_blackhole_timeout_sec", &[]),
    ("net.ipv4.tcp_syncookies", &["0", "1"]),
    ("net.ipv4.tcp_synack_retries", &["5"]),
    ("net.ipv4.tcp_no_metrics_save", &[]),
    ("net.ipv4.tcp_mtu_probing", &["0"]),
    ("net.ipv4.tcp_window_scaling", &["1"]),
    ("net.ipv4.tcp_max_reordering", &["300"]),
    ("net.ipv4.tcp_invalid_ratelimit", &["500"]),
    // The size of TSO bursts has no effect: a script always describes several segments as one packet.
    ("net.ipv4.tcp_min_tso_segs", &[]),
    ("net.ipv4.tcp_autocorking", &["0"]),
    ("net.core.netdev_max_backlog", &[]),
    ("net.ipv4.ip_local_port_range", &[]),
    ("net.inet.tcp.blackhole", &["0"]),
    ("net.inet.tcp.insecure_rst", &["0"]),
    ("net.inet.tcp.insecure_syn", &["0"]),
    ("net.inet.tcp.hostcache.purgenow", &[]),
    ("net.inet.tcp.hostcache.purge", &[]),
    ("net.inet.tcp.hostcache.enable", &[]),
    ("net.sctp.intl_enable", &[]),
    ("net.sctp.cookie_preserve_enable", &["1"]),
    ("net.sctp.rto_alpha_exp_divisor", &["3"]),
    ("net.sctp.rto_beta_exp_divisor", &["2"]),
    ("net.inet.sctp.pktdrop_enable", &["0"]),
    ("net.inet.sctp.nrsack_enable", &["0"]),
    ("net.inet.sctp.nrsack_on_off", &["0"]),
    ("net.inet.sctp.nr_sack_on_off", &["0"]),
];

/// Returns the transport options for a sysctl `name` that is set to `value`.
pub(crate) fn parse(name: &str, value: &str) -> Result<Vec<Setting>, String> {
    let name = name.trim_start_matches("/proc/sys/").replace('/', ".");
    let value = value.trim().trim_matches(['"', '\'']).trim();
    let protocol = if name.contains(".sctp.") { "sctp" } else { "tcp" };
    let setting = |option, value| Setting { protocol, option, value };
    if let Some((_, option, form)) = MAPPED_SYSCTLS.iter().find(|(known, ..)| *known == name) {
        return Ok(vec![setting(option, form.write(&name, value)?)]);
    }
    if let Some((_, values)) = FIXED_SYSCTLS.iter().find(|(known, _)| *known == name) {
        let fits = values.is_empty() || values.contains(&value);
        return if fits { Ok(Vec::new()) } else { Err(fixed(&name, value, values)) };
    }
    let settings = match name.as_str() {
        "net.ipv4.tcp_ecn" | "net.inet.tcp.ecn.enable" => parse_ecn(value)?,
        "net.ipv4.tcp_ecn_option" => ecn_option(&name, value)?,
        "net.ipv4.tcp_early_retrans" => vec![("tlp", matches!(value, "3" | "4").to_string())],
        "net.ipv4.tcp_recovery" => vec![("recovery", if value == "0" { "sack" } else { "rack" }.to_owned())],
        "net.ipv4.tcp_moderate_rcvbuf" if value == "0" => vec![("receive_buffer_max", "0B".to_owned())],
        "net.ipv4.tcp_moderate_rcvbuf" => Vec::new(),
        "net.ipv4.tcp_rmem" => receive_buffer(value)?,
        "net.ipv4.tcp_wmem" => send_buffer(value)?,
        "net.inet.tcp.rfc1323" if value == "0" => {
            vec![("timestamps", "false".to_owned()), ("window_scale", "0".to_owned())]
        }
        "net.inet.tcp.rfc1323" => vec![("timestamps", "true".to_owned())],
        _ => {
            return Err(format!(
                "sysctl {name} is not supported; its value {value:?} could change the packets of the script"
            ));
        }
    };
    Ok(settings.into_iter().map(|(option, value)| setting(option, value)).collect())
}

fn fixed(name: &str, value: &str, values: &[&str]) -> String {
    format!("sysctl {name}={value} is not supported; the endpoints behave as with {}", values.join(" or "))
}

impl Form {
    fn write(self, name: &str, value: &str) -> Result<String, String> {
        let count = || number::<u64>(name, value);
        Ok(match self {
            Self::Switch => (count()? != 0).to_string(),
            Self::InverseSwitch => (count()? == 0).to_string(),
            Self::Number => count()?.to_string(),
            Self::Milliseconds => format!("{}ms", count()?),
            Self::Microseconds => format!("{}us", count()?),
            Self::Nanoseconds => format!("{}ns", count()?),
            Self::Name => value.to_owned(),
        })
    }
}

/// Parses the sysctl for ECN. Linux and FreeBSD: 0 never, 1 always, 2 if the peer requests it. Only Linux: 3
/// AccECN always, 4 AccECN if the peer requests it and classic ECN always, 5 AccECN if the peer requests it.
fn parse_ecn(value: &str) -> Result<Vec<(&'static str, String)>, String> {
    let (offers, agrees, counts, counts_if_offered) = match value {
        "0" => (false, false, false, false),
        "1" => (true, true, false, false),
        "2" => (false, true, false, false),
        "3" => (true, true, true, true),
        "4" => (true, true, false, true),
        "5" => (false, true, false, true),
        _ => return Err(format!("ECN sysctl: {value:?} is not one of 0 to 5")),
    };
    let options = [
        ("ecn", offers),
        ("ecn_if_offered", agrees),
        ("accurate_ecn", counts),
        ("accurate_ecn_if_offered", counts_if_offered),
    ];
    Ok(options.map(|(option, is_on)| (option, is_on.to_string())).into())
}

/// Parses `net.ipv4.tcp_ecn_option`: 0 never sends the AccECN option, 2 sends it. Refuses 1 (sends it only
/// sometimes) and 3 (sends it more persistently).
fn ecn_option(name: &str, value: &str) -> Result<Vec<(&'static str, String)>, String> {
    match value {
        "0" => Ok(vec![("accurate_ecn_option", false.to_string())]),
        "2" => Ok(vec![("accurate_ecn_option", true.to_string())]),
        _ => Err(fixed(name, value, &["0", "2"])),
    }
}

/// Parses the minimum, default and maximum size of a buffer, in octets.
fn parse_three_numbers(name: &str, value: &str) -> Result<[u64; 3], String> {
    let counts: Vec<u64> =
        value.split_whitespace().map(|count| number(name, count)).collect::<Result<_, _>>()?;
    counts.try_into().map_err(|_| format!("{name} is {value:?}; write three numbers"))
}

/// Parses the default and maximum size of the receive buffer, which determine the window scale. Linux:
/// net/ipv4/tcp_output.c tcp_select_initial_window.
fn receive_buffer(value: &str) -> Result<Vec<(&'static str, String)>, String> {
    let [_, default, max] = parse_three_numbers("net.ipv4.tcp_rmem", value)?;
    let scale = max.max(1).ilog2().saturating_sub(15).min(14);
    Ok(vec![
        ("receive_buffer", format!("{default}B")),
        ("receive_buffer_max", format!("{max}B")),
        ("window_scale", scale.to_string()),
    ])
}

fn send_buffer(value: &str) -> Result<Vec<(&'static str, String)>, String> {
    let [_, default, max] = parse_three_numbers("net.ipv4.tcp_wmem", value)?;
    Ok(vec![("send_buffer", format!("{default}B")), ("send_buffer_max", format!("{max}B"))])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(name: &str, value: &str) -> Vec<(&'static str, &'static str, String)> {
        let settings = parse(name, value).unwrap();
        settings.into_iter().map(|Setting { protocol, option, value }| (protocol, option, value)).collect()
    }

    #[test]
    fn sysctl_maps_to_its_option() {
        assert_eq!(options("net.ipv4.tcp_sack", "0"), [("tcp", "sack", "false".to_owned())]);
        assert_eq!(options("net/ipv4/tcp_retries2", "8"), [("tcp", "max_retries", "8".to_owned())]);
        assert_eq!(options("net.sctp.rto_min", "100"), [("sctp", "rto_min", "100ms".to_owned())]);
        assert_eq!(options("net.inet.sctp.auth_disable", "1"), [("sctp", "auth", "false".to_owned())]);
        let ecn = |value| options("net.ipv4.tcp_ecn", value).into_iter().map(|(_, _, on)| on == "true");
        assert!(ecn("2").eq([false, true, false, false]), "classic ECN if it is offered");
        assert!(ecn("3").eq([true, true, true, true]) && ecn("5").eq([false, true, false, true]));
        assert!(options("net.ipv4.tcp_fack", "0").is_empty());
    }

    #[test]
    fn largest_receive_buffer_sets_the_window_scale() {
        let scale = |max: &str| options("net.ipv4.tcp_rmem", &format!("4096 131072 {max}")).remove(2).2;
        assert_eq!(
            (scale("6291456"), scale("15728640"), scale("65535")),
            ("7".into(), "8".into(), "0".into())
        );
    }

    #[test]
    fn sysctls_without_an_equivalent_are_refused() {
        for (name, value, cure) in [
            ("net.ipv4.tcp_frob", "1", "is not supported"),
            ("net.ipv4.tcp_ecn", "6", "is not one of 0 to 5"),
            ("net.ipv4.tcp_ecn_option", "1", "0 or 2"),
            ("net.ipv4.tcp_mtu_probing", "1", "as with 0"),
            ("net.ipv4.tcp_rmem", "1 2", "write three numbers"),
            ("net.sctp.rto_min", "soon", "write a number"),
        ] {
            let problem = parse(name, value).unwrap_err();
            assert!(problem.contains(cure), "{name}: {problem}");
        }
    }
}
