//! Pages in the model world.

use hol_base::{Duration, Seed};
use hol_measure::{Outcome, Record, RecordKind};
use hol_model::run;
use hol_scenario::{Run, RunEnd, Scenario};
use proptest::prelude::*;

fn pages(transport: &str, network: &str, keys: &str, messages: u64, seed: u64) -> Run {
    let scenario = Scenario::with_single_flow(
        toml::from_str(network).unwrap(),
        transport.parse().unwrap(),
        toml::from_str(&format!("kind = 'page'\n{keys}")).unwrap(),
        messages,
    );
    run(&scenario, Seed(seed), None).unwrap()
}

fn of(run: &Run, kind: RecordKind) -> impl Iterator<Item = &Record> {
    run.records.iter().filter(move |record| record.kind == kind)
}

/// A link on which only propagation takes time.
const LINE: &str = "delay = '50ms'\nrate = '1000Gbit'";

/// Returns whether a time is this number of round trips and ms, within a microsecond: a packet of 1500 octets
/// takes 12 ns.
fn are(took: Duration, round_trips: u64, ms: u64) -> bool {
    let expected = Duration::from_millis(100 * round_trips + ms);
    (expected..expected + Duration::from_micros(1)).contains(&took)
}

/// Handshakes: RFC 9293 section 3.5, RFC 9260 section 5.1. Windows: RFC 6928 (ten segments), RFC 9260 section 7.2.1.
#[test]
fn lossless_page_takes_only_its_round_trips() {
    const SMALL: &str = "document = '500B'\nobjects = 4\nsize = '500B'";
    for (transport, keys, round_trips) in [
        // A handshake, the document, the objects.
        ("tcp", "way = 'multiplexed'", 3),
        ("tcp", "way = 'pipelined'", 3),
        ("tcp", "way = 'keepalive'", 1 + 5),
        ("tcp", "way = 'close'", 5 * 2),
        // While the first connection carries one object, the second is opened for the next.
        ("tcp:connections=2", "way = 'keepalive'", 2 + 2 + 1),
        ("tcp:connections=5", "way = 'keepalive'", 2 + 2),
        ("tcp:connections=4", "way = 'close'", 2 + 2),
        ("tcp:connections=2", "way = 'close'", 2 + 2 + 2),
        // Two for the handshake; a request sent with the COOKIE ECHO saves one.
        ("sctp", "way = 'multiplexed'", 4),
        ("sctp", "way = 'multiplexed'\nearly = true", 3),
        ("tcp", "way = 'multiplexed'\nearly = true", 3),
        ("sctp:streams=4", "way = 'keepalive'", 4),
        ("sctp:streams=2", "way = 'keepalive'", 5),
        ("sctp:streams=4", "way = 'keepalive'\npair = true", 5),
        ("sctp:streams=2", "way = 'keepalive'\npair = true", 2 + 5),
        ("sctp:streams=8", "way = 'close'", 5 * 3),
        // The browser learns of each wave a round trip after the previous one.
        ("tcp", "way = 'multiplexed'\nwaves = 4", 2 + 4),
    ] {
        let options = if transport.contains(':') { "," } else { ":" };
        let run = pages(
            &format!("{transport}{options}nagle=off,wakeup=0s"),
            LINE,
            &format!("{SMALL}\n{keys}"),
            3,
            1,
        );
        let took: Vec<_> = of(&run, RecordKind::Page).filter_map(Record::latency).collect();
        assert!(
            took.len() == 3 && took.iter().all(|took| are(*took, round_trips, 0)),
            "{transport}, {keys}: {took:?}"
        );
        let first = of(&run, RecordKind::Head).find_map(Record::latency).expect("it came");
        let handshake = if transport.starts_with("sctp") && !keys.contains("early") { 2 } else { 1 };
        assert!(are(first, handshake + 1, 0), "{transport}, {keys}: {first}");
    }
}

#[test]
fn server_processes_files_in_parallel_but_replies_in_order_on_a_track() {
    const KEYS: &str = "document = '0B'\nobjects = 3\nsize = '500B'\nthink = '70ms'";
    for (way, thoughts) in [("multiplexed", 1), ("pipelined", 1), ("keepalive", 3)] {
        let run = pages("tcp:nagle=off,wakeup=0s", LINE, &format!("{KEYS}\nway = '{way}'"), 1, 1);
        let took = of(&run, RecordKind::Page).find_map(Record::latency).expect("it came");
        let round_trips = 1 + if way == "keepalive" { 3 } else { 1 };
        assert!(are(took, round_trips, thoughts * 70), "{way}: {took}");
    }
}

/// RFC 9113 section 5: multiplexed objects share the connection; pipelined ones arrive one after the other.
#[test]
fn multiplexed_objects_end_together_and_pipelined_ones_in_their_order() {
    const KEYS: &str = "document = '0B'\nobjects = 4\nsize = '200kB'\nrequest = '100B'";
    let ends = |way: &str| -> Vec<f64> {
        let run = pages(
            "tcp:send_buffer=40kB",
            "delay = '5ms'\nrate = '10Mbit'",
            &format!("{KEYS}\nway = '{way}'"),
            1,
            1,
        );
        of(&run, RecordKind::Object).filter_map(|object| Some(object.latency()?.as_millis_f64())).collect()
    };
    let (shared, in_order) = (ends("multiplexed"), ends("pipelined"));
    // The first object has filled the send buffer before the second is requested: it is three rounds of 53 ms
    // ahead.
    assert!(shared[0] / shared[3] > 0.7 && shared[3] - shared[1] < 10.0, "{shared:?}");
    assert!(in_order.windows(2).all(|pair| pair[1] - pair[0] > 150.0), "{in_order:?}");
    // Frames of 16 KiB have nine octets of header each, and the link is the same.
    assert!((shared[3] / in_order[3] - 1.0).abs() < 0.01, "{shared:?} {in_order:?}");
}

#[test]
fn a_page_whose_objects_are_larger_than_all_buffers_arrives() {
    for transport in ["tcp:send_buffer=20kB,receive_buffer=20kB", "sctp:send_buffer=40kB,streams=3"] {
        let run = pages(transport, "delay = '5ms'", "objects = 3\nsize = '1MB'", 1, 1);
        assert_eq!(run.run_end, RunEnd::Finished, "{transport}");
        assert!(of(&run, RecordKind::Object).all(|object| object.outcome == Outcome::Completed));
    }
}

/// RFC 6335 section 6: there are 16,384 dynamic ports.
#[test]
fn more_connections_than_ports_are_refused_with_a_remedy() {
    let check = |keys: &str, pages| {
        let workload = toml::from_str(&format!("kind = 'page'\n{keys}")).unwrap();
        let transport = "tcp:connections=6".parse().unwrap();
        Scenario::with_single_flow(toml::from_str("").unwrap(), transport, workload, pages)
            .check()
            .map_err(|e| e.to_string())
    };
    assert_eq!(check("way = 'multiplexed'", 2730), Ok(()));
    for (keys, pages) in [("way = 'multiplexed'", 2731), ("way = 'close'\nobjects = 99", 164)] {
        assert!(check(keys, pages).unwrap_err().contains("for pages, lower `messages`"), "{keys}");
    }
}

#[test]
fn transfer_in_progress_when_a_link_goes_down_is_unfinished() {
    let run = pages("tcp", "delay = '50ms'\nevents = [{ at = '240ms', down = true }]", "", 3, 1);
    let completed = |kind| of(&run, kind).filter(|record| record.outcome == Outcome::Completed).count();
    assert_eq!((completed(RecordKind::Page), completed(RecordKind::Head)), (0, 1));
    assert_eq!(of(&run, RecordKind::Page).count(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever the network does, each file arrives completely and once: the browser counts its octets.
    #[test]
    fn every_page_arrives_complete_with_every_connection_reuse(
        way in prop::sample::select(vec!["close", "keepalive", "pipelined", "multiplexed"]),
        transport in prop::sample::select(vec![
            "tcp", "tcp:connections=3", "sctp:streams=1", "sctp:streams=5", "sctp:associations=2,streams=4", "sctp:unordered",
        ]),
        network in prop::sample::select(vec!["loss = '4%'", "jitter = '9ms'\nduplicate = '5%'", "queue = '5p'"]),
        keys in prop::sample::select(vec!["", "pair = true", "waves = 3", "early = true", "document = '0B'", "think = '5ms'"]),
        seed in 0u64..1000,
    ) {
        let (network, pages_asked) = (format!("delay = '10ms'\nrate = '10Mbit'\n{network}"), 3);
        let keys = format!("way = '{way}'\nobjects = 9\nsize = {{ median = '8kB', sigma = 1.2 }}\n{keys}");
        let run = pages(transport, &network, &keys, pages_asked, seed);
        prop_assert_eq!(&run.run_end, &RunEnd::Finished);
        prop_assert!(run.records.iter().all(|record| record.outcome == Outcome::Completed));
        let files = 9 + u64::from(!keys.contains("0B"));
        prop_assert_eq!(of(&run, RecordKind::Object).count() as u64, pages_asked * files);
        prop_assert_eq!(of(&run, RecordKind::Head).count() as u64, pages_asked);
        for page in of(&run, RecordKind::Page) {
            let parts = || run.records.iter().filter(|record| record.parent == Some(page.id as u32));
            let end = |record: &Record| record.scheduled + record.latency().expect("it is completed");
            prop_assert_eq!(parts().map(end).max(), Some(end(page)));
            prop_assert_eq!(page.breakdown().map(|split| split.total()), page.latency());
            let sizes = parts().filter(|record| record.kind == RecordKind::Object).map(|record| record.size);
            prop_assert_eq!(sizes.sum::<u32>(), page.size);
        }
        prop_assert_eq!(run.digest(), self::pages(transport, &network, &keys, pages_asked, seed).digest());
    }
}

/// QUIC's handshake takes one round trip (RFC 9000 section 7); HTTP/3 uses a stream for each object (RFC 9114
/// section 4).
#[test]
fn a_page_over_quic_takes_a_round_trip_for_the_handshake() {
    const SMALL: &str = "document = '500B'\nobjects = 4\nsize = '500B'";
    for (transport, keys, round_trips) in [
        ("quic:streams=8", "way = 'pipelined'", 3),
        ("quic", "way = 'multiplexed'", 3),
        ("quic:streams=4", "way = 'keepalive'", 3),
        ("quic:per_message", "way = 'multiplexed'", 3),
        // RFC 9001 section 4.6: the request for the document is in the first flight.
        ("quic:per_message,zero_rtt", "way = 'multiplexed'", 2),
        ("quic:streams=8,zero_rtt", "way = 'pipelined'", 2),
        // The flight is more than three times what the client has sent. RFC 9000 section 8.1.
        ("quic:streams=8,handshake_flight=5000B", "way = 'pipelined'", 4),
    ] {
        let options = if transport.contains(':') { "," } else { ":" };
        let run = pages(&format!("{transport}{options}wakeup=0s"), LINE, &format!("{SMALL}\n{keys}"), 3, 1);
        let took: Vec<_> = of(&run, RecordKind::Page).filter_map(Record::latency).collect();
        assert!(
            took.len() == 3 && took.iter().all(|took| are(*took, round_trips, 0)),
            "{transport}, {keys}: {took:?}"
        );
    }
}

/// A loss in TCP delays every object, a loss in QUIC only its own object.
#[test]
fn objects_on_separate_streams_do_not_block_each_other() {
    let waits = |transport: &str, way: &str| {
        let keys = format!("way = '{way}'\ndocument = '10kB'\nobjects = 12\nsize = '10kB'");
        let run = pages(transport, "delay = '20ms'\nrate = '20Mbit'\nloss = '2%'", &keys, 100, 3);
        let splits = of(&run, RecordKind::Object).filter_map(Record::breakdown);
        splits.map(|split| split.head_of_line.as_millis_f64()).sum::<f64>()
    };
    let (tcp, quic) = (waits("tcp", "multiplexed"), waits("quic:streams=16", "pipelined"));
    assert!(quic * 3.0 < tcp, "head-of-line wait: {quic} ms over QUIC, {tcp} ms over TCP");
}
