//! Files in the model world.

use hol_base::{Duration, Seed};
use hol_measure::{Outcome, Record, RecordKind};
use hol_model::run;
use hol_scenario::{Run, RunEnd, Scenario};

fn files(transport: &str, network: &str, keys: &str, messages: u64) -> Run {
    let scenario = Scenario::with_single_flow(
        toml::from_str(network).unwrap(),
        transport.parse().unwrap(),
        toml::from_str(&format!("kind = 'files'\n{keys}")).unwrap(),
        messages,
    );
    run(&scenario, Seed(1), None).unwrap()
}

fn of(run: &Run, kind: RecordKind) -> impl Iterator<Item = &Record> {
    run.records.iter().filter(move |record| record.kind == kind)
}

fn batches(run: &Run) -> Vec<Duration> {
    of(run, RecordKind::Batch).filter_map(Record::latency).collect()
}

/// A link, and the transmission time of octets on it.
const LINE: &str = "delay = '10ms'\nrate = '10Mbit'";
const ROUND_TRIP: Duration = Duration::from_millis(20);
const OCTET: Duration = Duration::from_nanos(800);

/// Headers: Ethernet's 14, IPv4's 20 (RFC 791 section 3.1), and TCP's 20 with timestamps of 12 (RFC 9293 section 3.1, RFC 7323
/// appendix A), or SCTP's 12, a DATA chunk's 16 and, in a packet of its own, a SACK's 16 (RFC 9260 sections 3, 3.3.1 and 3.3.4).
const CASES: [(&str, u64, u64); 2] =
    [("tcp:nagle=off,wakeup=0s", 14 + 20 + 32, 0), ("sctp:nagle=off,wakeup=0s", 14 + 20 + 12 + 16, 16)];

/// One request at a time: each takes a round trip and its transmission times, to the nanosecond. The first
/// batch is ignored, because acknowledgments of the new connection precede it.
#[test]
fn lossless_batch_takes_a_round_trip_per_request_plus_transmission() {
    // A header has 64 octets. Create, write, store; open, read, close; remove.
    let both_ways = [64 + 64, 164 + 64, 64 + 64, 64 + 64, 64 + 164, 64 + 64, 64 + 64];
    for (transport, header, sack) in CASES {
        for (operations, requests) in [("['put']", 3), ("['put', 'get']", 6), ("['put', 'get', 'remove']", 7)]
        {
            let run = files(transport, LINE, &format!("files = 5\noperations = {operations}"), 4);
            let octets: u64 = both_ways[..requests].iter().map(|octets| octets + 2 * (header + sack)).sum();
            let expected = (ROUND_TRIP * requests as u64 + OCTET * octets) * 5;
            assert_eq!(batches(&run)[1..], [expected; 3], "{transport}, {operations}");
            assert_eq!(
                of(&run, RecordKind::Transaction).count(),
                4 * 5 * requests,
                "{transport}, {operations}"
            );
        }
    }
}

/// A block that fits into the window takes one round trip, too, and a header for each of its segments.
#[test]
fn a_block_of_many_segments_is_one_request() {
    const BLOCK: u64 = 64_512;
    const SEGMENT: u64 = 1500 - 20 - 32;
    let (transport, header, _) = CASES[0];
    let run = files(
        transport,
        LINE,
        &format!("files = 5\nsize = '{BLOCK}B'\nblock = '{BLOCK}B'\noperations = ['put']"),
        3,
    );
    let headers = header * (2 + (64 + BLOCK).div_ceil(SEGMENT) + 3);
    let expected = (ROUND_TRIP * 3 + OCTET * (BLOCK + 6 * 64 + headers)) * 5;
    assert_eq!(batches(&run)[1..], [expected; 2]);
}

/// RFC 9260 section 6.9: the received part of a message is delivered and makes room for the rest. The sender
/// stops when less than a chunk fits, until its data is acknowledged: once per message, by the receiver's
/// delayed SACK.
#[test]
fn block_larger_than_the_receive_buffer_costs_a_delayed_acknowledgment() {
    let block = |transport: &str| {
        let keys = "files = 1\nsize = '645120B'\nblock = '64512B'\noperations = ['put']";
        batches(&files(transport, "delay = '5ms'\nrate = '1Mbit'", keys, 2))[1]
    };
    let held = block("sctp:nagle=off,sack_delay=200ms,receive_buffer=106496B");
    let in_parts = block("sctp:nagle=off,sack_delay=200ms,receive_buffer=54784B");
    let each = (in_parts - held) / 10;
    assert!((Duration::from_millis(195)..=Duration::from_millis(225)).contains(&each), "{each}");
}

#[test]
fn a_batch_lasts_from_its_first_request_to_its_last_reply() {
    let run = files("sctp:streams=3", "delay = '5ms'\nloss = '5%'", "files = 4\nblock = '40B'", 9);
    assert_eq!(run.run_end, RunEnd::Finished);
    assert_eq!(run.records.len(), 9 * (1 + 4 * (5 + 5 + 1)));
    for batch in of(&run, RecordKind::Batch) {
        let own = || {
            let requests = of(&run, RecordKind::Transaction);
            requests.filter(|request| request.parent.map(u64::from) == Some(batch.id))
        };
        assert_eq!((own().count(), batch.size), (44, 400));
        let (first, last) = (own().next().expect("44"), own().last().expect("44"));
        assert_eq!((batch.scheduled, batch.reply), (first.scheduled, last.reply));
        assert_eq!(batch.breakdown().map(|split| split.total()), batch.latency());
    }
}

#[test]
fn files_larger_than_all_buffers_arrive() {
    for transport in ["tcp:send_buffer=20kB,receive_buffer=20kB", "sctp:send_buffer=40kB,streams=3"] {
        let run = files(transport, "delay = '5ms'\nloss = '0.1%'", "files = 2\nsize = '1MB'", 1);
        assert_eq!(run.run_end, RunEnd::Finished, "{transport}");
        assert_eq!(batches(&run).len(), 1, "{transport}");
    }
}

#[test]
fn batches_that_never_began_have_one_record_each_and_no_requests() {
    let network = "delay = '10ms'\nevents = [{ at = '500ms', down = true }]";
    let run = files("tcp", network, "files = 3\noperations = ['put']", 10_000);
    assert!(matches!(run.run_end, RunEnd::Failed { .. }), "{}", run.run_end);
    // In 480 ms 24 requests get replies, nine per batch.
    let outcomes: Vec<Outcome> = of(&run, RecordKind::Batch).map(|batch| batch.outcome).collect();
    assert_eq!(
        (outcomes.len(), outcomes.iter().filter(|it| **it == Outcome::Completed).count()),
        (10_000, 2)
    );
    assert_eq!(of(&run, RecordKind::Transaction).count(), 2 * 9 + 6);
}
