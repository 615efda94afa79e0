//! A client that moves, in the model world. The round trip is 100 ms, and nothing else takes time.

use hol_base::{Duration, Seed};
use hol_measure::RecordKind;
use hol_model::run;
use hol_scenario::{Run, Scenario};

/// Runs a transfer of a one-packet file; the client leaves the first cell after `leaves` ms and attaches to
/// the second after `attach` ms.
fn file(transport: &str, leaves: u64, attach: u64, reopen: bool) -> Run {
    let overlap = leaves as f64 / 100.0;
    let network = format!(
        "delay = '50ms'\nrate = '1000Gbit'\npaths = [{{}}, {{}}]\n\
         handover = {{ speed = 10, overlap = {overlap}, at = '0s', attach = '{attach}ms' }}"
    );
    let workload = format!("kind = 'page'\ndocument = '0B'\nobjects = 1\nsize = '500B'\nreopen = {reopen}");
    let scenario = Scenario::with_single_flow(
        toml::from_str(&network).unwrap(),
        transport.parse().unwrap(),
        toml::from_str(&workload).unwrap(),
        1,
    );
    run(&scenario, Seed(1), None).unwrap()
}

const TCP: &str = "tcp:stack=rfc,address_loss_aborts=true";
const SCTP: &str = "sctp:stack=rfc,auth=true,addip=true";

#[track_caller]
fn takes(run: &Run, ms: u64) {
    let page = run.records.iter().find(|record| record.kind == RecordKind::Page).unwrap();
    let took = page.latency().expect("the page is complete");
    let expected = Duration::from_millis(ms);
    assert!((expected..expected + Duration::from_micros(1)).contains(&took), "{took}");
}

/// Two round trips over TCP, three over SCTP.
#[test]
fn file_that_arrives_before_the_client_leaves_is_not_delayed() {
    takes(&file(TCP, 900, 500, false), 200);
    takes(&file(SCTP, 900, 500, false), 300);
}

/// A handshake and a request, from the time of the new address, whatever had been received before.
#[test]
fn tcp_connection_is_reopened_as_soon_as_there_is_an_address() {
    for leaves in [20, 120, 170] {
        takes(&file(TCP, leaves, 1000, true), 1000 + 200);
        takes(&file(TCP, leaves, 0, true), leaves + 200);
    }
}

/// RFC 5061 sections 5.1 and 5.3: an ASCONF and its answer, while the peer verifies the new address; a round
/// trip later the lost request or response has arrived.
#[test]
fn an_sctp_association_continues_two_round_trips_after_it_gets_an_address() {
    for leaves in [220, 280] {
        takes(&file(SCTP, leaves, 1000, false), 1000 + 200);
    }
}

#[test]
fn browser_without_reopen_ends_with_an_error() {
    let run_end = format!("{:?}", file(TCP, 120, 1000, false).run_end);
    assert!(run_end.contains("the local address is gone"), "{run_end}");
}
