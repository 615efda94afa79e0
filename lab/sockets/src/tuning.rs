//! The transport options that the kernel supports, and how they are set.
//!
//! The default stack describes Linux, so an option with the default stack's value stands for the kernel's own value.
//! Any other value needs a socket option or a sysctl, or is rejected.

use hol_base::Duration;
use hol_quic::Tls;
use hol_sctp::Scheduler;
use hol_stack::{
    DEFAULT_STACK, MetricsCache, Protocol, ProtocolKind, SocketStyle, TransportSpec, linux_version,
    stack_of_linux,
};
use hol_tcp::{LossDetection, Nagle};
use hol_transport::Reliability;
use hol_workloads::WorkloadSpec;
use toml::Value;

use crate::error::Unsupported;
use crate::udp::Udp;

/// A setting of a network namespace, or of a kernel module (which all namespaces share).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    /// Name of the setting below `/proc/sys`, such as `net/ipv4/tcp_sack`, or for a module below `/sys`,
    /// such as `module/sctp/parameters/no_checksums`.
    pub name: &'static str,
    /// Value of the setting.
    pub value: String,
}

/// The default of SCTP's option `send_buffer`, in octets: that of `net.core.wmem_default`.
pub(crate) const SCTP_SEND_BUFFER: u64 = 212_992;
/// The default of SCTP's option `receive_buffer`, in octets: half of that of `net.core.rmem_default`.
pub(crate) const SCTP_RECEIVE_BUFFER: u64 = 106_496;
/// The settings of TCP's buffers, each with the options for its default and its maximum. Linux derives the initial
/// values from the host's memory; here they are those of a host with plenty of memory.
const BUFFER_SYSCTLS: [(&str, [&str; 2]); 2] = [
    ("net/ipv4/tcp_rmem", ["receive_buffer", "receive_buffer_max"]),
    ("net/ipv4/tcp_wmem", ["send_buffer", "send_buffer_max"]),
];
/// The minimum in the settings of TCP's buffers, in octets: a page.
const MIN_BUFFER: &str = "4096";
/// The first version of Linux in which RACK alone detects losses, whatever `net.ipv4.tcp_recovery` is.
const ONLY_RACK_VERSION: [u32; 2] = [7, 3];
/// The first version of Linux with accurate ECN, `include/net/tcp_ecn.h`.
const ACCURATE_ECN_VERSION: [u32; 2] = [7, 0];
/// The longest delay of a SACK. RFC 9260 section 6.2.
const LONGEST_SACK_DELAY: Duration = Duration::from_millis(500);

/// The maximum in Linux of the idle time before keepalive probes, and of the interval between them: MAX_TCP_KEEPIDLE
/// and MAX_TCP_KEEPINTVL, include/net/tcp.h.
const LONGEST_KEEPALIVE: Duration = Duration::from_secs(32_767);

/// The maximum number of keepalive probes in Linux: MAX_TCP_KEEPCNT, include/net/tcp.h.
const MAX_PROBES: u32 = 127;

/// How an option is passed to the kernel.
#[derive(Clone, Copy)]
enum SettingMethod {
    /// The option is a socket option.
    Socket,
    /// The option is a socket option in whole milliseconds.
    Milliseconds,
    /// The option is a socket option in whole seconds, at most [`LONGEST_KEEPALIVE`].
    Seconds,
    /// The option is a setting of the network namespace, which is always set.
    Sysctl(&'static str, fn(&Value) -> Option<String>),
    /// The option is a setting of the network namespace that kernels before this version lack; so it is set only if the
    /// value is not the default.
    NewSysctl(&'static str, [u32; 2], fn(&Value) -> Option<String>),
    /// The option cannot be set, for this reason.
    Fixed(&'static str),
}

use SettingMethod::{Fixed, Milliseconds, NewSysctl, Seconds, Socket, Sysctl as Setting};

const BUILT_IN: &str = "this behaviour is built into Linux; remove the option or use the model world";
const ROUTE_REASON: &str =
    "Linux uses a property of the route, which hol does not set; remove the option or use the model world";
const SIP_REASON: &str = "sockets do not implement SIP; remove the option or use the model world";
const AUTOTUNING_REASON: &str =
    "Linux adapts this size automatically and includes its own overhead; remove the option";

const MPTCP_REASON: &str =
    "MPTCP's sockets do not have this option (net/mptcp/sockopt.c mptcp_setsockopt_sol_tcp); remove it";

/// Options of TCP that cannot be set for MPTCP, because MPTCP's sockets reject them.
const MPTCP_OPTIONS: &[(&str, SettingMethod)] =
    &[("mss", Fixed(MPTCP_REASON)), ("user_timeout", Fixed(MPTCP_REASON))];

/// How each option of TCP is passed to the kernel; MPTCP passes its options likewise, except [`MPTCP_OPTIONS`].
#[rustfmt::skip]
const TCP_OPTIONS: &[(&str, SettingMethod)] = &[
    ("mss", Socket),
    ("sack", Setting("net/ipv4/tcp_sack", flag)),
    ("dsack", Setting("net/ipv4/tcp_dsack", flag)),
    ("timestamps", Setting("net/ipv4/tcp_timestamps", flag)),
    ("timestamp_clock", Fixed(BUILT_IN)),
    ("window_scale", Fixed(AUTOTUNING_REASON)),
    ("send_buffer", Fixed(AUTOTUNING_REASON)),
    ("send_buffer_max", Fixed(AUTOTUNING_REASON)),
    ("packet_head", Fixed(BUILT_IN)),
    ("receive_buffer", Fixed(AUTOTUNING_REASON)),
    ("receive_buffer_max", Fixed(AUTOTUNING_REASON)),
    ("receive_buffer_cushion", Fixed(BUILT_IN)),
    ("receive_buffer_for_early", Fixed(BUILT_IN)),
    ("receive_buffer_low_rtt", NewSysctl("net/ipv4/tcp_rcvbuf_low_rtt", [6, 19], microseconds)),
    ("receive_rtt_if_read", Fixed(BUILT_IN)),
    ("nagle", Socket),
    ("segmentation_offload", Fixed(BUILT_IN)),
    ("delayed_ack_min", Fixed(BUILT_IN)),
    ("delayed_ack_max", Fixed(BUILT_IN)),
    ("quickack_segments", Fixed(BUILT_IN)),
    ("interactive_after", Fixed(BUILT_IN)),
    ("acknowledge_on_read", Fixed(BUILT_IN)),
    ("answer_unsent_ack", Fixed(BUILT_IN)),
    ("answer_old_ack", Fixed(BUILT_IN)),
    ("sack_compression", Setting("net/ipv4/tcp_comp_sack_nr", text)),
    ("sack_compression_percent", NewSysctl("net/ipv4/tcp_comp_sack_rtt_percent", [6, 19], text)),
    ("sack_compression_max", Setting("net/ipv4/tcp_comp_sack_delay_ns", nanoseconds)),
    ("sack_compression_slack", Setting("net/ipv4/tcp_comp_sack_slack_ns", nanoseconds)),
    ("sack_compression_reads_clock", Fixed(BUILT_IN)),
    ("wakeup", Fixed(BUILT_IN)),
    ("congestion", Setting("net/ipv4/tcp_congestion_control", text)),
    // By default Linux accepts ECN but does not request it.
    ("ecn", Setting("net/ipv4/tcp_ecn", |value| choice(value, ["2", "1"]))),
    // The settings named here exist since Linux 7.0; `sysctls` adds the value of `tcp_ecn`.
    ("accurate_ecn", NewSysctl("net/ipv4/tcp_ecn_option_beacon", ACCURATE_ECN_VERSION, |_| Some("3".to_owned()))),
    ("accurate_ecn_if_offered", NewSysctl("net/ipv4/tcp_ecn_option_beacon", ACCURATE_ECN_VERSION, |_| Some("3".to_owned()))),
    ("accurate_ecn_option", NewSysctl("net/ipv4/tcp_ecn_option", ACCURATE_ECN_VERSION, |value| choice(value, ["0", "2"]))),
    ("ecn_if_offered", Fixed(BUILT_IN)),
    ("ecn_after_plain_syn", Fixed(BUILT_IN)),
    ("congestion_unit", Fixed(BUILT_IN)),
    ("initial_window", Fixed(ROUTE_REASON)),
    ("one_segment_per_ack", Fixed(BUILT_IN)),
    ("byte_counting", Fixed(BUILT_IN)),
    ("grows_when_full", Fixed(BUILT_IN)),
    ("hystart", Fixed("this parameter of the module tcp_cubic applies to all network namespaces; remove the option")),
    ("cwnd_validation", Fixed(BUILT_IN)),
    ("slow_start_after_idle", Setting("net/ipv4/tcp_slow_start_after_idle", flag)),
    ("recovery", Setting("net/ipv4/tcp_recovery", recovery)),
    ("dupthresh", Setting("net/ipv4/tcp_reordering", text)),
    ("limited_transmit", Fixed(BUILT_IN)),
    ("prr", Fixed(BUILT_IN)),
    ("rate_halving", Fixed(BUILT_IN)),
    ("cwnd_moderation", Fixed(BUILT_IN)),
    ("tlp", Setting("net/ipv4/tcp_early_retrans", |value| choice(value, ["0", "3"]))),
    ("tlp_ack_allowance", Fixed(BUILT_IN)),
    ("timer_slack", Fixed(BUILT_IN)),
    ("frto", Setting("net/ipv4/tcp_frto", |value| choice(value, ["0", "2"]))),
    ("undo", Fixed(BUILT_IN)),
    ("collapse_on_retransmit", Setting("net/ipv4/tcp_retrans_collapse", flag)),
    ("collapse_limit", Fixed(BUILT_IN)),
    ("rtt_estimator", Fixed(BUILT_IN)),
    ("rto_initial", Fixed(BUILT_IN)),
    ("rto_min", NewSysctl("net/ipv4/tcp_rto_min_us", [6, 11], microseconds)),
    ("rto_max", Fixed(BUILT_IN)),
    // One setting bounds both, so `check_use` requires them to be equal.
    ("rto_variance_floor", NewSysctl("net/ipv4/tcp_rto_min_us", [6, 11], microseconds)),
    ("clock_granularity", Fixed(BUILT_IN)),
    ("timer_wheel", Fixed(BUILT_IN)),
    ("max_retries", Setting("net/ipv4/tcp_retries2", text)),
    ("syn_retries", Setting("net/ipv4/tcp_syn_retries", text)),
    ("syn_linear_timeouts", NewSysctl("net/ipv4/tcp_syn_linear_timeouts", [6, 5], text)),
    ("time_wait", Fixed(BUILT_IN)),
    ("address_loss_aborts", Socket),
    ("max_retries_base", Fixed(BUILT_IN)),
    ("user_timeout", Milliseconds),
    ("keepalive", Seconds),
    ("keepalive_interval", Seconds),
    ("keepalive_probes", Socket),
];

/// How each option of SCTP is passed to the kernel.
#[rustfmt::skip]
const SCTP_OPTIONS: &[(&str, SettingMethod)] = &[
    ("streams", Socket),
    ("max_inbound_streams", Socket),
    ("mtu", Fixed("Linux uses the MTU of the interface; set `mtu` in [network] instead")),
    ("receive_buffer", Socket),
    ("send_buffer", Socket),
    ("send_buffer_overhead", Fixed(BUILT_IN)),
    ("send_buffer_blocks", Fixed(BUILT_IN)),
    ("send_buffer_small_block", Fixed(BUILT_IN)),
    ("rto_initial", Milliseconds),
    ("rto_min", Milliseconds),
    ("rto_max", Milliseconds),
    ("rttvar_min", Fixed(BUILT_IN)),
    ("clock_tick", Fixed(BUILT_IN)),
    ("timer_wheel", Fixed(BUILT_IN)),
    ("wakeup", Fixed(BUILT_IN)),
    ("sack_delay", Milliseconds),
    ("sack_frequency", Socket),
    ("sack_when_gap_closes", Fixed(BUILT_IN)),
    ("sack_as_last_chunk_asks", Fixed(BUILT_IN)),
    ("bundle_sack_with_data", Fixed(BUILT_IN)),
    ("max_gap_blocks", Fixed(BUILT_IN)),
    ("nagle", Socket),
    ("segmentation_offload", Fixed(BUILT_IN)),
    ("nagle_delays_retransmissions", Fixed(BUILT_IN)),
    ("cmt", Fixed("Linux's SCTP sends new data over one path at a time; remove the option or use the model world")),
    ("ecn", Fixed("Linux sets ECT whatever net.sctp.ecn_enable is, but does not react to marks; remove the option")),
    ("ecn_answered_to_random_tsn", Fixed(BUILT_IN)),
    ("missing_reports", Fixed(BUILT_IN)),
    ("fast_retransmit_again", Fixed(BUILT_IN)),
    ("retransmissions_miss_at_once", Fixed(BUILT_IN)),
    ("fast_retransmit_in_recovery", Fixed(BUILT_IN)),
    ("rack", Fixed("Linux's SCTP detects losses by miss indications; remove the option or use the model world")),
    ("fast_retransmit_restarts_t3", Fixed(BUILT_IN)),
    ("max_burst", Socket),
    ("initial_window", Fixed(BUILT_IN)),
    ("initial_window_packets", Fixed(BUILT_IN)),
    ("slow_start_limit", Fixed(BUILT_IN)),
    ("growth_needs_cumulative_tsn", Fixed(BUILT_IN)),
    ("fast_recovery_holds_window", Fixed(BUILT_IN)),
    ("fast_retransmit_window", Fixed(BUILT_IN)),
    ("last_chunk_exceeds_window", Fixed(BUILT_IN)),
    ("max_burst_lowers_window", Fixed(BUILT_IN)),
    ("immediate_sack_below", Fixed(BUILT_IN)),
    ("idle_decay", Fixed(BUILT_IN)),
    ("partial_reliability", Socket),
    // SCTP_INTERLEAVING_SUPPORTED requests it, and the namespace has to allow it; since 4.16.
    ("interleaving", NewSysctl("net/sctp/intl_enable", [4, 15], flag)),
    ("reconfig", Fixed("workloads request no re-configuration; remove the option or use the model world")),
    ("zero_checksum", Fixed("Linux does not implement RFC 9653, and no layer below detects errors as DTLS does; remove the option")),
    ("scheduler", Socket),
    ("stream_values", Socket),
    ("fair_counts_last_fragment", Fixed(BUILT_IN)),
    ("bundled_handshake_aborts", Fixed(BUILT_IN)),
    ("cookie_state", Fixed(BUILT_IN)),
    ("forward_tsn_always_counts", Fixed(BUILT_IN)),
    ("fragments_leave_room", Fixed(BUILT_IN)),
    ("init_ack_reduces_streams", Fixed(BUILT_IN)),
    ("max_tsn_gap", Fixed(BUILT_IN)),
    ("names_address_types", Fixed(BUILT_IN)),
    ("sack_checks_limits_first", Fixed(BUILT_IN)),
    ("second_fsn_is_zero", Fixed(BUILT_IN)),
    ("send_buffer_bounds_messages", Fixed(BUILT_IN)),
    ("auth", Socket),
    ("auth_hash", Fixed(BUILT_IN)),
    ("addip", Socket),
    ("asconf_apart", Fixed(BUILT_IN)),
    ("asconf_keeps_lookup_address", Fixed(BUILT_IN)),
    ("deleted_flight_moves", Fixed(BUILT_IN)),
    ("heartbeat", Socket),
    ("heartbeat_holds_rtt", Fixed(BUILT_IN)),
    ("heartbeat_fails_association", Fixed(BUILT_IN)),
    ("lost_data_delay_heartbeats", Fixed(BUILT_IN)),
    ("hb_interval", Milliseconds),
    ("path_max_retrans", Socket),
    ("replies_avoid_failed_path", Fixed(BUILT_IN)),
    ("pf_threshold", Socket),
    ("pf_until_heartbeat_ack", Fixed(BUILT_IN)),
    ("association_max_retrans", Socket),
    ("max_init_retransmits", Socket),
    ("cookie_echo_tries_all_paths", Fixed(BUILT_IN)),
    ("cookie_ack_to_source", Fixed(BUILT_IN)),
    ("valid_cookie_life", Milliseconds),
];

/// The options that cannot be set for transports in userspace, because they concern lower layers.
const USERSPACE_OPTIONS: &[(&str, SettingMethod)] = &[
    ("wakeup", Fixed("the kernel decides when a program wakes up; remove the option or use the model world")),
    (
        "zero_checksum",
        Fixed(
            "RFC 9653 requires DTLS below SCTP, but the layer below is UDP; remove the option or use the model world",
        ),
    ),
];

const UDP_OPTIONS: &[(&str, SettingMethod)] = &[
    ("sip", Fixed(SIP_REASON)),
    ("t1", Fixed(SIP_REASON)),
    ("t2", Fixed(SIP_REASON)),
    ("response", Fixed(SIP_REASON)),
];

fn text(value: &Value) -> Option<String> {
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

fn choice(value: &Value, [no, yes]: [&str; 2]) -> Option<String> {
    value.as_bool().map(|on| if on { yes } else { no }.to_owned())
}

fn flag(value: &Value) -> Option<String> {
    choice(value, ["0", "1"])
}

fn recovery(value: &Value) -> Option<String> {
    match value.as_str() {
        Some("rack") => Some("1".to_owned()),
        Some("sack") => Some("0".to_owned()),
        _ => None,
    }
}

fn duration(value: &Value) -> Option<Duration> {
    value.as_str()?.parse().ok()
}

const fn is_whole_ms(time: Duration) -> bool {
    is_whole(time, 1_000_000)
}

const fn is_whole(time: Duration, nanos: u64) -> bool {
    time.as_nanos().is_multiple_of(nanos)
}

fn microseconds(value: &Value) -> Option<String> {
    let nanos = duration(value)?.as_nanos();
    nanos.is_multiple_of(1000).then(|| (nanos / 1000).to_string())
}

fn nanoseconds(value: &Value) -> Option<String> {
    Some(duration(value)?.as_nanos().to_string())
}

/// Returns the kernel settings, including defaults, that a transport needs in the namespaces of both ends before
/// [`run`](crate::run). Returns an error for an option that Linux `kernel` (a release) does not support. A kernel that
/// lacks one of the settings is too old for the option.
pub fn sysctls(transport: &TransportSpec, kernel: &str) -> Result<Vec<Sysctl>, Unsupported> {
    let is_of_a_kernel =
        !matches!(transport.kind(), ProtocolKind::Udp | ProtocolKind::Unix) && !transport.is_userspace();
    let own = stack_of_linux(kernel).name;
    if transport.stack() != DEFAULT_STACK && transport.stack() != own && is_of_a_kernel {
        let option = format!("stack={}", transport.stack());
        return Err(Unsupported { option, why: "the kernel uses its own stack; remove the option" });
    }
    let stack_only = stack_only(transport);
    let own = if is_of_a_kernel { with_stack(transport, own) } else { stack_only.clone() };
    let mut settings = host_sysctls(transport, &own);
    for (key, value) in transport.option_values() {
        let method = method(transport, key);
        let is_usual = stack_only.option_values().get(key) == Some(value);
        let value = if is_usual { &own.option_values()[key] } else { value };
        if let Some(setting) = setting(key, value, method, is_usual, kernel)?
            && !settings.contains(&setting)
        {
            settings.push(setting);
        }
    }
    settings.extend(accurate_ecn(transport));
    check_use(transport, kernel)?;
    Ok(settings)
}

/// Returns the settings of [`sysctls`] that differ from those of the protocol without options.
pub fn requested_sysctls(transport: &TransportSpec, kernel: &str) -> Result<Vec<Sysctl>, Unsupported> {
    let stack_only =
        transport.kind().name().parse().expect("a protocol without options is a valid transport");
    let stack_only = sysctls(&stack_only, kernel)?;
    Ok(sysctls(transport, kernel)?.into_iter().filter(|setting| !stack_only.contains(setting)).collect())
}

/// Returns the setting `tcp_ecn` for accurate ECN; `None` without accurate ECN. The value 3 requests it, 4 accepts it
/// but requests classic ECN, 5 only accepts it.
fn accurate_ecn(transport: &TransportSpec) -> Option<Sysctl> {
    let (Protocol::Tcp { config, .. } | Protocol::Mptcp { config, .. }) = transport.protocol() else {
        return None;
    };
    let value = match (config.accurate_ecn, config.accurate_ecn_if_offered, config.ecn) {
        (true, ..) => "3",
        (false, true, true) => "4",
        (false, true, false) => "5",
        (false, false, _) => return None,
    };
    Some(Sysctl { name: "net/ipv4/tcp_ecn", value: value.to_owned() })
}

/// Returns an error if options contradict each other.
fn check_use(transport: &TransportSpec, kernel: &str) -> Result<(), Unsupported> {
    let refuse = |key: &str, why| Err(unsupported(key, &transport.option_values()[key], why));
    if transport.is_userspace() && transport.has_no_checksums() {
        let option = "no_checksums".to_owned();
        return Err(Unsupported { option, why: "the option applies only to Linux's SCTP; remove it" });
    }
    match transport.protocol() {
        Protocol::Tcp { config, .. } | Protocol::Mptcp { config, .. } => {
            if config.rto_min != config.rto_variance_floor {
                return refuse(
                    "rto_min",
                    "in Linux rto_min is also the minimum of the RTO's variance term; set rto_variance_floor to the same value",
                );
            }
            if config.recovery != LossDetection::Rack && linux_version(kernel) >= ONLY_RACK_VERSION {
                return refuse(
                    "recovery",
                    "this version of Linux has only RACK; remove the option or use --world kernel:6.12",
                );
            }
            if config.keepalive_probes == 0 || config.keepalive_probes > MAX_PROBES {
                return refuse(
                    "keepalive_probes",
                    "Linux supports only 1 to 127 probes (MAX_TCP_KEEPCNT); use a number in this range",
                );
            }
            if config.nagle == Nagle::Classic {
                return refuse(
                    "nagle",
                    "Linux implements only Minshall's variant; use nagle=minshall or nagle=off",
                );
            }
        }
        Protocol::Sctp { config, reliability, .. } if !transport.is_userspace() => {
            if config.streams > config.max_inbound_streams {
                return refuse(
                    "streams",
                    "the other end accepts only max_inbound_streams streams; raise max_inbound_streams, too",
                );
            }
            if config.scheduler == Scheduler::RrPacket {
                return refuse(
                    "scheduler",
                    "Linux does not have this scheduler; use fcfs, rr, prio, fc or wfq",
                );
            }
            if config.sack_delay > LONGEST_SACK_DELAY {
                return refuse("sack_delay", "the maximum is 500ms (RFC 9260 section 6.2); lower sack_delay");
            }
            if let Reliability::Lifetime(time) = reliability
                && (time.is_zero() || !is_whole_ms(*time))
            {
                let option = format!("lifetime={time}");
                return Err(Unsupported {
                    option,
                    why: "Linux supports only whole milliseconds; round the value, at least \
                    1ms",
                });
            }
        }
        Protocol::Quic { config, .. } if config.handshake_flight < Tls::MIN_FLIGHT => {
            return refuse(
                "handshake_flight",
                "a flight with a certificate has at least 600 octets; raise handshake_flight",
            );
        }
        _ => {}
    }
    Ok(())
}

/// Returns an error for a workload that cannot run over this transport with Linux's sockets.
pub fn check_workload(transport: &TransportSpec, workload: &WorkloadSpec) -> Result<(), Unsupported> {
    let is_one_to_one = matches!(transport.protocol(), Protocol::Sctp { socket: SocketStyle::OneToOne, .. });
    if is_one_to_one && workload.kind.workload().is_early() {
        let why = "one-to-one sockets of Linux can send only when the association is up; use socket=one-to-many, or omit the option";
        return Err(Unsupported { option: "early".to_owned(), why });
    }
    if let Protocol::Sctp { socket: SocketStyle::OneToMany, config, .. } = transport.protocol()
        && config.addip
    {
        let why = "only a one-to-one socket can change the addresses of its association; omit the option";
        return Err(Unsupported { option: "socket=one-to-many".to_owned(), why });
    }
    match workload.longest_message() {
        Some(size) if transport.kind() == ProtocolKind::Udp && size > Udp::MAX_MESSAGE => {
            let option = format!("size={size}");
            Err(Unsupported {
                option,
                why: "a UDP datagram has at most 65507 octets of payload; lower the size",
            })
        }
        Some(size) if is_longer_than_buffer(transport, size) => {
            let option = format!("size={size}");
            Err(Unsupported {
                option,
                why: "Linux rejects a message that is longer than send_buffer; raise send_buffer, or lower the size \
                of messages",
            })
        }
        _ => Ok(()),
    }
}

/// Returns whether a message is longer than the send buffer of a kernel SCTP socket; false for other transports.
fn is_longer_than_buffer(transport: &TransportSpec, size: u64) -> bool {
    let Protocol::Sctp { socket, config, .. } = transport.protocol() else { return false };
    *socket != SocketStyle::Own && size > config.send_buffer.0
}

/// Returns the settings of a host that do not belong to one endpoint, such as the sizes of TCP's buffers. `own` is the
/// transport with the kernel's own stack.
fn host_sysctls(transport: &TransportSpec, own: &TransportSpec) -> Vec<Sysctl> {
    let set = |name, value: &str| Sysctl { name, value: value.to_owned() };
    let mut settings = Vec::new();
    if matches!(transport.kind(), ProtocolKind::Tcp | ProtocolKind::Mptcp) {
        let octets = |key| own.option_values()[key].as_str().unwrap_or_default().trim_end_matches('B');
        let sizes = |[default, max]: [_; 2]| format!("{MIN_BUFFER} {} {}", octets(default), octets(max));
        settings.extend(BUFFER_SYSCTLS.map(|(name, keys)| set(name, &sizes(keys))));
        let cache = transport.metrics_cache();
        settings
            .push(set("net/ipv4/tcp_no_metrics_save", if cache == MetricsCache::Off { "1" } else { "0" }));
        // Since Linux 5.6; it has no effect without a cache.
        match cache {
            MetricsCache::Off => {}
            MetricsCache::On => settings.push(set("net/ipv4/tcp_no_ssthresh_metrics_save", "1")),
            MetricsCache::Ssthresh => settings.push(set("net/ipv4/tcp_no_ssthresh_metrics_save", "0")),
        }
    }
    if transport.kind() == ProtocolKind::Mptcp {
        settings.push(set("net/mptcp/enabled", "1"));
    }
    if transport.kind() == ProtocolKind::Sctp && !transport.is_userspace() {
        let none = transport.has_no_checksums();
        settings.push(set("module/sctp/parameters/no_checksums", if none { "Y" } else { "N" }));
    }
    settings
}

/// Returns the setting of the network namespace that an option needs; `None` if it needs none. Returns an error if the
/// kernel does not support the option. `is_usual` says whether `value` is the default.
fn setting(
    key: &str,
    value: &Value,
    method: SettingMethod,
    is_usual: bool,
    kernel: &str,
) -> Result<Option<Sysctl>, Unsupported> {
    let unsupported = |why| Err(unsupported(key, value, why));
    match method {
        Setting(name, spell) => match spell(value) {
            Some(value) => Ok(Some(Sysctl { name, value })),
            None => unsupported(BUILT_IN),
        },
        _ if is_usual => Ok(None),
        NewSysctl(_, since, _) if linux_version(kernel) < since => unsupported(
            "this kernel does not have the setting yet; use --world kernel:7.3 or the model world",
        ),
        NewSysctl(name, _, spell) => match spell(value) {
            Some(value) => Ok(Some(Sysctl { name, value })),
            None => unsupported("Linux supports only whole microseconds; round the value"),
        },
        Milliseconds => match duration(value) {
            Some(time) if is_whole_ms(time) => Ok(None),
            _ => unsupported("Linux supports only whole milliseconds; round the value"),
        },
        Seconds => match duration(value) {
            Some(time) if is_whole(time, 1_000_000_000) && time <= LONGEST_KEEPALIVE => Ok(None),
            _ => unsupported("Linux supports only whole seconds, at most 32767; round the value"),
        },
        Socket => Ok(None),
        Fixed(why) => unsupported(why),
    }
}

fn unsupported(key: &str, value: &Value, why: &'static str) -> Unsupported {
    Unsupported { option: format!("{key}={}", text(value).unwrap_or_default()), why }
}

fn method(transport: &TransportSpec, key: &str) -> SettingMethod {
    let own: &[_] = if transport.kind() == ProtocolKind::Mptcp { MPTCP_OPTIONS } else { &[] };
    let (table, otherwise): (&[_], _) = match transport.kind() {
        _ if transport.is_userspace() => (USERSPACE_OPTIONS, Socket),
        // A new option that is missing in a table is not passed to the kernel.
        ProtocolKind::Tcp | ProtocolKind::Mptcp => (TCP_OPTIONS, Fixed(BUILT_IN)),
        ProtocolKind::Sctp => (SCTP_OPTIONS, Fixed(BUILT_IN)),
        ProtocolKind::Udp => (UDP_OPTIONS, Fixed(BUILT_IN)),
        ProtocolKind::Quic | ProtocolKind::Unix => (&[], Fixed(BUILT_IN)),
    };
    own.iter().chain(table).find(|(known, _)| *known == key).map_or(otherwise, |(_, method)| *method)
}

/// Returns the transport with only its option `stack`.
fn stack_only(transport: &TransportSpec) -> TransportSpec {
    with_stack(transport, transport.stack())
}

/// Returns the transport with only the option `stack`, set to `stack`.
fn with_stack(transport: &TransportSpec, stack: &str) -> TransportSpec {
    let stack_only = format!("{}:stack={stack}", transport.kind().name()).parse();
    stack_only.expect("a protocol without options is a valid transport")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<Vec<Sysctl>, Unsupported> {
        sysctls(&text.parse().unwrap(), "6.12.117")
    }

    fn value(text: &str, name: &str) -> Option<String> {
        let found = settings(text).unwrap().into_iter().find(|setting| setting.name == name);
        found.map(|setting| setting.value)
    }

    /// These workloads are refused before a guest starts.
    #[test]
    fn workloads_that_sockets_cannot_run_are_refused() {
        let refused = |transport: &str, workload: &str| {
            let workload = toml::from_str(workload).unwrap();
            check_workload(&transport.parse().unwrap(), &workload).err().map(|problem| problem.option)
        };
        let early = "kind = 'page'\nearly = true";
        assert_eq!(refused("sctp", early).as_deref(), Some("early"));
        assert_eq!(refused("sctp:socket=one-to-many", early), None);
        assert_eq!(
            refused("sctp:socket=one-to-many,auth=true,addip=true", "kind = 'page'").as_deref(),
            Some("socket=one-to-many")
        );
        let long = "kind = 'oneway'\nsize = '300kB'";
        assert_eq!(refused("sctp", long).as_deref(), Some("size=300000"));
        assert_eq!(refused("sctp:send_buffer=400kB", long), None);
        assert_eq!(refused("udp", long).as_deref(), Some("size=300000"));
    }

    #[test]
    fn the_option_tables_list_exactly_the_options_of_the_stacks() {
        for (kind, table) in [
            (ProtocolKind::Tcp, TCP_OPTIONS),
            (ProtocolKind::Mptcp, TCP_OPTIONS),
            (ProtocolKind::Sctp, SCTP_OPTIONS),
            (ProtocolKind::Udp, UDP_OPTIONS),
        ] {
            let mut known: Vec<&str> = table.iter().map(|(key, _)| *key).collect();
            known.sort_unstable();
            let stack_only: TransportSpec = kind.name().parse().unwrap();
            let behaviours: Vec<&str> = stack_only.option_values().keys().map(String::as_str).collect();
            let mut sorted = behaviours.clone();
            sorted.sort_unstable();
            assert_eq!(known, sorted, "{}", kind.name());
        }
    }

    #[test]
    fn sysctls_include_the_defaults() {
        for (name, expected) in [
            ("net/ipv4/tcp_no_metrics_save", "1"),
            ("net/ipv4/tcp_sack", "1"),
            ("net/ipv4/tcp_recovery", "1"),
            ("net/ipv4/tcp_early_retrans", "3"),
            ("net/ipv4/tcp_frto", "2"),
            ("net/ipv4/tcp_retries2", "15"),
            ("net/ipv4/tcp_congestion_control", "cubic"),
        ] {
            assert_eq!(value("tcp", name).as_deref(), Some(expected), "{name}");
        }
        assert_eq!(value("tcp", "net/ipv4/tcp_rto_min_us"), None);
        assert_eq!(value("mptcp", "net/mptcp/enabled").as_deref(), Some("1"));
        let checksums = "module/sctp/parameters/no_checksums";
        assert_eq!(["sctp", "sctp:no_checksums"].map(|text| value(text, checksums).unwrap()), ["N", "Y"]);
    }

    /// A random scenario had `receive_buffer_low_rtt`, and its runs failed in Linux 6.12, which does not have
    /// this setting.
    #[test]
    fn an_option_of_a_newer_kernel_is_refused_before_the_run() {
        for text in ["tcp:receive_buffer_low_rtt=1ms", "tcp:sack_compression_percent=20"] {
            let problem = sysctls(&text.parse().unwrap(), "6.12.117").unwrap_err();
            assert!(problem.to_string().contains("does not have the setting yet"), "{problem}");
            assert!(sysctls(&text.parse().unwrap(), "7.3.4").is_ok(), "{text}");
        }
        assert!(sysctls(&"tcp".parse().unwrap(), "4.19.1").is_ok());
    }

    #[test]
    fn accurate_ecn_requires_linux_7() {
        let of = |text: &str, kernel| sysctls(&text.parse().unwrap(), kernel);
        for text in ["tcp:accecn", "tcp:accurate_ecn_if_offered=true", "tcp:accurate_ecn_option=false"] {
            assert!(of(text, "6.12.95").is_err(), "{text}");
            assert!(of(text, "7.3.4").is_ok(), "{text}");
        }
        let asks = Sysctl { name: "net/ipv4/tcp_ecn", value: "3".to_owned() };
        assert_eq!(of("tcp:accecn", "7.3.4").unwrap().last(), Some(&asks));
    }

    #[test]
    fn a_kernel_keeps_the_defaults_of_its_own_stack() {
        let value = |text: &str, kernel, name| {
            let all = sysctls(&text.parse().unwrap(), kernel).unwrap();
            all.into_iter().find(|setting| setting.name == name).map(|setting| setting.value)
        };
        for (kernel, rmem, slack) in
            [("6.12.117", "4096 131072 6291456", "100000"), ("7.3.4", "4096 131072 33554432", "10000")]
        {
            assert_eq!(value("tcp", kernel, "net/ipv4/tcp_rmem").as_deref(), Some(rmem));
            assert_eq!(value("tcp", kernel, "net/ipv4/tcp_comp_sack_slack_ns").as_deref(), Some(slack));
            assert_eq!(value("tcp", kernel, "net/ipv4/tcp_comp_sack_rtt_percent"), None);
        }
        let seven = "tcp:stack=linux-7.3";
        assert_eq!(sysctls(&seven.parse().unwrap(), "7.3.4"), sysctls(&"tcp".parse().unwrap(), "7.3.4"));
        let share = "tcp:stack=linux-7.3,sack_compression_percent=10";
        assert_eq!(value(share, "7.3.4", "net/ipv4/tcp_comp_sack_rtt_percent").as_deref(), Some("10"));
        let refused = |text: &str, kernel| sysctls(&text.parse().unwrap(), kernel).unwrap_err().option;
        assert_eq!(refused(seven, "6.12.117"), "stack=linux-7.3");
        assert_eq!(refused("tcp:stack=rfc", "7.3.4"), "stack=rfc");
        assert_eq!(refused("tcp:recovery=sack", "7.3.4"), "recovery=sack");
    }

    #[test]
    fn options_become_settings() {
        assert_eq!(value("tcp:tlp=false", "net/ipv4/tcp_early_retrans").as_deref(), Some("0"));
        assert_eq!(value("tcp:recovery=sack", "net/ipv4/tcp_recovery").as_deref(), Some("0"));
        let spec = "tcp:rto_min=1s,rto_variance_floor=1s";
        assert_eq!(value(spec, "net/ipv4/tcp_rto_min_us").as_deref(), Some("1000000"));
        let twice = settings(spec).unwrap().iter().filter(|s| s.name.ends_with("rto_min_us")).count();
        assert_eq!(twice, 1);
        for (cache, forget, forget_ssthresh) in
            [("off", "1", None), ("on", "0", Some("1")), ("ssthresh", "0", Some("0"))]
        {
            let spec = format!("tcp:metrics_cache={cache}");
            assert_eq!(value(&spec, "net/ipv4/tcp_no_metrics_save").as_deref(), Some(forget), "{cache}");
            let name = "net/ipv4/tcp_no_ssthresh_metrics_save";
            assert_eq!(value(&spec, name).as_deref(), forget_ssthresh, "{cache}");
        }
    }

    #[test]
    fn unsupported_settings_are_refused_by_name() {
        for (text, option) in [
            ("tcp:hystart=false", "hystart=false"),
            ("udp:sip=invite", "sip=invite"),
            ("tcp:initial_window=3", "initial_window=3"),
            ("tcp:recovery=newreno", "recovery=newreno"),
            ("sctp:missing_reports=4", "missing_reports=4"),
            ("sctp:rto_min=1500us", "rto_min=1500us"),
            ("sctp:scheduler=rr_packet", "scheduler=rr_packet"),
            ("mptcp:mss=1000", "mss=1000"),
            ("mptcp:user_timeout=5s", "user_timeout=5s"),
            ("quic:wakeup=1ms", "wakeup=1ms"),
            ("sctp:socket=own,zero_checksum=true", "zero_checksum=true"),
            ("quic:handshake_flight=500B", "handshake_flight=500B"),
        ] {
            assert_eq!(settings(text).unwrap_err().option, option, "{text}");
        }
        assert_eq!(value("sctp:interleaving", "net/sctp/intl_enable").as_deref(), Some("1"));
        assert_eq!(value("sctp", "net/sctp/intl_enable"), None);
        let by_sockets =
            settings("sctp:rto_min=200ms,sack_delay=0s,streams=8,scheduler=wfq,stream_values=1/3");
        assert_eq!(by_sockets, settings("sctp"));
        for text in ["quic:streams=8,initial_rtt=100ms,handshake_flight=4kB", "quic:stack=rfc,cc=cubic"] {
            assert_eq!(settings(text), Ok(Vec::new()), "{text}");
        }
    }
}
