//! The configurations of stack files, with enough streams for the tests.

use crate::Config;

/// Returns the configuration of the current RFCs.
pub(crate) fn rfc() -> Config {
    Config { streams: 10, ..Config::rfc9260() }
}

/// Returns the configuration of Linux 6.12.
pub(crate) fn linux() -> Config {
    Config { streams: 10, ..Config::linux_6_12() }.with_network_mtu(1500)
}

/// Returns the configuration of Linux 2.6.16, as far as its behaviour is known.
pub(crate) fn linux_2_6_16() -> Config {
    Config { streams: 10, ..Config::linux_2_6_16() }
}

#[test]
fn stack_sets_every_key_and_no_unknown_one() {
    let whole = toml::to_string(&rfc()).expect("the settings can be written as TOML");
    assert_eq!(toml::from_str::<Config>(&whole).as_ref(), Ok(&rfc()));
    assert!(toml::from_str::<Config>(&format!("unknown = 1\n{whole}")).is_err());
    assert!(toml::from_str::<Config>(&whole.replacen("rto_min", "# ", 1)).is_err());
}

#[test]
fn unusable_setting_is_refused_by_key() {
    type Breaks = fn(&mut Config);
    let broken: [(&str, Breaks); 18] = [
        ("streams", |c| c.streams = 0),
        ("max_inbound_streams", |c| c.max_inbound_streams = 0),
        ("mtu", |c| c.mtu.0 = 511),
        ("receive_buffer", |c| c.receive_buffer.0 = 1499),
        ("send_buffer", |c| c.send_buffer.0 = 0),
        ("rto_max", |c| c.rto_max = hol_base::Duration::from_micros(999)),
        ("rto_min", |c| c.rto_min = c.rto_max + hol_base::Duration::from_nanos(1)),
        ("rto_initial", |c| c.rto_initial = hol_base::Duration::ZERO),
        ("rto_initial", |c| c.rto_initial = c.rto_max + hol_base::Duration::from_nanos(1)),
        ("sack_frequency", |c| c.sack_frequency = 0),
        ("max_tsn_gap", |c| c.max_tsn_gap = 0),
        ("max_gap_blocks", |c| c.max_gap_blocks = 0),
        ("missing_reports", |c| c.missing_reports = 0),
        ("initial_window", |c| c.initial_window.0 = 0),
        ("addip", |c| c.addip = true),
        ("stream_values", |c| c.stream_values = "1".parse().unwrap()),
        ("stream_values", |c| {
            c.scheduler = crate::Scheduler::Wfq;
            c.stream_values = "1/0".parse().unwrap();
        }),
        ("hb_interval", |c| c.hb_interval = hol_base::Duration::ZERO),
    ];
    for (key, breaks) in broken {
        for mut config in [rfc(), linux(), linux_2_6_16()] {
            assert_eq!(config.check(), Ok(()));
            breaks(&mut config);
            assert_eq!(config.check().map_err(|error| error.key), Err(key));
        }
    }
    let mut min = rfc();
    (min.mtu.0, min.receive_buffer.0, min.send_buffer.0) = (512, 1500, 1);
    (min.rto_min, min.rto_initial) = (min.rto_max, min.rto_max);
    assert_eq!(min.check(), Ok(()));
}

#[test]
fn mtu_of_0_means_that_of_the_network() {
    // `net/sctp/transport.c` sctp_transport_pmtu.
    let mtu = |own: u64, network: u64| {
        let mut config = rfc();
        config.mtu.0 = own;
        config.with_network_mtu(network).mtu.0
    };
    assert_eq!([mtu(0, 9000), mtu(1500, 9000), mtu(1500, 584), mtu(0, 584)], [9000, 1500, 584, 584]);
}
