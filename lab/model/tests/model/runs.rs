//! Whole runs in the model world.

use hol_base::{Duration, Rng, Seed, Time};
use hol_measure::{Outcome, Record, TransferTimes};
use hol_model::run;
use hol_network::{Drops, PacketInTransit, Tap, TapEvent, TapPoint};
use hol_scenario::{Run, RunEnd, Scenario};
use hol_workloads::{Filter, HostSpec};

/// Every transport that promises to deliver everything in order.
const RELIABLE: &[&str] = &[
    "tcp",
    "tcp:connections=4",
    "tcp:stack=linux-2.6.16",
    "tcp:stack=rfc",
    "sctp",
    "sctp:streams=8",
    "sctp:stack=rfc,streams=3",
    "sctp:associations=2,streams=3",
    "quic",
    "quic:streams=8",
    "quic:stack=rfc,streams=3,connections=2",
];

fn scenario(transport: &str, network: &str, workload: &str, messages: u64) -> Scenario {
    Scenario {
        network: toml::from_str(network).unwrap(),
        hosts: Default::default(),
        transport: transport.parse().unwrap(),
        workload: toml::from_str(workload).unwrap(),
        messages,
        background: Vec::new(),
        onward: Vec::new(),
        programs: Vec::new(),
        root: hol_scenario::Root::Host,
    }
}

#[track_caller]
fn run_of(transport: &str, network: &str, workload: &str, messages: u64) -> Run {
    run(&scenario(transport, network, workload, messages), Seed(7), None).unwrap()
}

fn drops(run: &Run) -> Drops {
    run.drops.expect("the model knows them")
}

fn mean_ms(records: &[Record]) -> f64 {
    let total: f64 = records.iter().map(|record| record.latency().unwrap().as_millis_f64()).sum();
    total / records.len() as f64
}

/// Checks that no message is lost, repeated, or out of order within a stream, and that the parts of each
/// delay add up.
fn assert_reliable(run: &Run, messages: u64, context: &str) {
    assert_eq!(run.run_end.clone(), RunEnd::Finished, "{context}");
    assert_eq!(run.records.len() as u64, messages, "{context}");
    let streams = run.records.iter().map(|record| record.stream).max().unwrap();
    let (mut requests, mut replies) =
        (vec![Time::ZERO; 1 + usize::from(streams)], vec![Time::ZERO; 1 + usize::from(streams)]);
    for record in &run.records {
        assert_eq!(record.outcome, Outcome::Completed, "{context}: {record:?}");
        assert!(record.request.is_some(), "{context}: {record:?}");
        for leg in record.request.iter().chain(&record.reply) {
            let TransferTimes { written, first_sent, last_sent, arrived, delivered } = *leg;
            let life = [record.scheduled, written, first_sent, last_sent, arrived, delivered];
            assert!(life.is_sorted(), "{context}: {record:?}");
        }
        assert_eq!(record.breakdown().unwrap().total(), record.latency().unwrap(), "{context}: {record:?}");
        let stream = usize::from(record.stream);
        for (last, leg) in [(&mut requests, record.request), (&mut replies, record.reply)] {
            let Some(leg) = leg else { continue };
            assert!(leg.delivered >= last[stream], "{context}: overtaken {record:?}");
            last[stream] = leg.delivered;
        }
    }
}

/// Claim ikr53-14: without loss the response time is the round-trip time.
#[test]
fn without_loss_the_mean_is_the_round_trip_time() {
    for &transport in RELIABLE {
        for (workload, messages) in
            [("kind = 'simco'", 300), ("kind = 'echo'", 300), ("kind = 'pingpong'", 100)]
        {
            let run = run_of(transport, "", workload, messages);
            assert_reliable(&run, messages, &format!("{transport}, {workload}"));
            let mean = mean_ms(&run.records);
            assert!((20.0..20.15).contains(&mean), "{transport}, {workload}: {mean} ms");
            assert!(run.closed.is_some(), "{transport}, {workload}: did not close");
            assert_eq!(drops(&run), Drops::default());
        }
    }
}

#[test]
fn oneway_message_takes_half_a_round_trip() {
    for &transport in RELIABLE {
        let run = run_of(transport, "", "kind = 'oneway'\narrivals = 'poisson'\nsize = '64B'", 300);
        assert_reliable(&run, 300, transport);
        let mean = mean_ms(&run.records);
        assert!((10.0..10.1).contains(&mean), "{transport}: {mean} ms");
    }
}

#[test]
fn the_same_seed_gives_the_same_digest_with_and_without_a_tap() {
    for &transport in RELIABLE {
        let scenario =
            scenario(transport, "loss = '3%'\njitter = '1ms'", "kind = 'simco'\narrivals = 'poisson'", 400);
        let first = run(&scenario, Seed(1), None).unwrap().digest();
        let again = run(&scenario, Seed(1), None).unwrap().digest();
        let watched = run(&scenario, Seed(1), Some(&mut Counts::default())).unwrap().digest();
        let other = run(&scenario, Seed(2), None).unwrap().digest();
        assert_eq!((first, first), (again, watched), "{transport}");
        assert_ne!(first, other, "{transport}");
    }
}

#[test]
fn simco_rules_are_changed_over_every_transport_without_refusals() {
    for &transport in RELIABLE {
        let workload = "kind = 'simco'\nmix = { enable = 1, lifetime = 1, delete = 1 }";
        let [run, again] = [(); 2].map(|()| run_of(transport, "loss = '2%'", workload, 900));
        assert_reliable(&run, 900, transport);
        assert_eq!(run.digest(), again.digest(), "{transport}");
        // PER, and PLC with and without a lifetime. RFC 4540 sections 5.3.3 and 5.3.5.
        let of_size = |size| run.records.iter().filter(|record| record.size == size).count();
        let (enabled, changed) = (of_size(56), of_size(24));
        assert!(enabled + changed == 900 && (270..400).contains(&enabled), "{transport}: {enabled}");
    }
}

#[test]
fn request_refused_by_a_middlebox_fails_and_the_run_continues() {
    // Rules whose lifetime should be extended end while the middlebox is unreachable.
    let network = "events = [{ at = '3s', down = true }, { at = '20s', down = false }]";
    let workload = "kind = 'simco'\nmix = { enable = 1, lifetime = 1 }\nlate_limit = '1h'";
    let run = run_of("tcp", network, workload, 600);
    let refused = run.records.iter().filter(|record| record.outcome == Outcome::Refused);
    assert!(refused.clone().count() > 50, "{}", refused.count());
    assert!(refused.clone().all(|record| record.latency().is_none() && record.reply.is_some()));
    assert_eq!((run.run_end.clone(), run.records.len()), (RunEnd::Finished, 600));
}

/// Draws some optional settings of a link.
fn optional_settings(mut rng: Rng) -> String {
    let correlation = format!("jitter_correlation = '{}%'", rng.below(101));
    let police = format!(
        "police = {{ rate = '{}kbit', burst = '{}B' }}",
        400 + rng.below(5000),
        1500 + rng.below(20_000)
    );
    let all = [correlation, police, "channel = 'air'".to_owned()];
    all.into_iter().filter(|_| rng.chance(0.4)).collect::<Vec<_>>().join("\n")
}

/// Property: under any mix of impairments no stream loses, repeats or reorders a message.
///
/// `HOL_SEEDS` is the number of mixes; the message of a failure contains its seed.
#[test]
fn no_stream_loses_duplicates_or_reorders_a_message() {
    let seeds = std::env::var("HOL_SEEDS").map_or(100, |text| text.parse().expect("HOL_SEEDS is a number"));
    for seed in 0..seeds {
        let mut rng = Seed(seed).derive("mix").rng();
        let mut percent = |max: u64| rng.below(max * 10) as f64 / 10.0;
        let network = format!(
            "delay = '{}ms'\njitter = '{}us'\nloss = '{}%'\nduplicate = '{}%'\nreorder = '{}%'\nreorder_by = '7ms'\n\
             corrupt = '{}%'\nqueue = '{}p'\nrate = '{}kbit'\n\
             down = {{ loss = {{ good_to_bad = '{}%', bad_to_good = '70%' }} }}",
            1 + percent(30) as u64,
            1 + (percent(1) * 1000.0) as u64,
            percent(8),
            percent(5),
            0.1 + percent(10),
            percent(3),
            8 + percent(100) as u64,
            500 + 100 * percent(200) as u64,
            percent(4),
        );
        let network = format!("{network}\n{}", optional_settings(Seed(seed).derive("beside").rng()));
        let size = 8 + rng.below(3000);
        let workload =
            format!("kind = 'echo'\nrate = '{}/s'\nsize = '{size}B'\nlate_limit = '1h'", 1 + rng.below(60));
        let transport = RELIABLE[rng.below(RELIABLE.len() as u64) as usize];
        let mut asked = scenario(transport, &network, &workload, 60);
        let service = Duration::from_millis(rng.below(4) * rng.below(20));
        asked.hosts.insert("server".to_owned(), HostSpec { service, ..HostSpec::default() });
        let run = run(&asked, Seed(seed), None).unwrap();
        assert_reliable(&run, 60, &format!("seed {seed}: {transport}\n{network}\n{workload}"));
    }
}

#[test]
fn unordered_messages_arrive_exactly_once() {
    let run = run_of("sctp:unordered", "loss = '5%'\nduplicate = '5%'", "kind = 'echo'", 2000);
    assert_eq!(run.run_end.clone(), RunEnd::Finished);
    assert!(run.records.iter().all(|record| record.outcome == Outcome::Completed));
    let waits = run.records.iter().map(|record| record.breakdown().unwrap().head_of_line);
    assert_eq!(waits.max(), Some(Duration::ZERO));
}

/// RFC 3758: undelivered messages were abandoned, and the run ends normally.
#[test]
fn partially_reliable_messages_arrive_or_are_abandoned() {
    let run = run_of("sctp:lifetime=30ms,streams=4", "loss = '10%'", "kind = 'echo'", 1000);
    assert_eq!(run.run_end.clone(), RunEnd::Finished);
    let abandoned = run.records.iter().filter(|record| record.outcome == Outcome::Abandoned).count();
    let completed = run.records.iter().filter(|record| record.outcome == Outcome::Completed).count();
    assert_eq!(abandoned + completed, 1000);
    assert!((20..400).contains(&abandoned), "{abandoned}");
}

#[test]
fn protocol_that_the_model_lacks_is_refused_by_name() {
    let scenario = scenario("mptcp", "delay = \"10ms\"", "kind = \"echo\"", 10);
    let error = run(&scenario, Seed(7), None).unwrap_err().to_string();
    assert!(error.contains("does not support mptcp; use the kernel world"), "{error}");
}

#[test]
fn a_backup_path_is_refused_if_all_paths_are_used() {
    let paths = "paths = [{}, { backup = true }]";
    let run = |transport| run(&scenario(transport, paths, "kind = 'echo'", 10), Seed(7), None);
    assert!(run("sctp").is_ok() && run("tcp").is_ok());
    let error = run("sctp:cmt=true").unwrap_err().to_string();
    assert!(error.contains("remove `backup`, or remove `cmt`"), "{error}");
}

#[test]
fn packet_filter_is_refused_and_the_kernel_world_suggested() {
    let host = HostSpec { filter: Filter::Nftables, ..HostSpec::default() };
    let hosts = [("server".to_owned(), host)].into();
    let scenario = Scenario { hosts, ..scenario("tcp", "", "kind = 'simco'", 10) };
    let error = run(&scenario, Seed(7), None).unwrap_err().to_string();
    assert!(error.contains("no packet filter; use the kernel world"), "{error}");
}

#[test]
fn lost_datagrams_are_not_resent_and_the_run_ends_after_a_silence() {
    let run = run_of("udp", "loss = '10%'\ndelay = '10ms'", "kind = 'oneway'\nrate = '100/s'", 1000);
    assert_eq!(run.run_end.clone(), RunEnd::Finished);
    let lost = run.records.iter().filter(|record| record.outcome == Outcome::Abandoned).count();
    assert_eq!(lost as u64, drops(&run).loss);
    assert!((60..140).contains(&lost), "{lost}");
}

/// RFC 3261 section 17.1.2.2: the first retransmission follows after T1.
#[test]
fn sip_retransmits_after_half_a_second() {
    let run =
        run_of("udp:sip=request", "loss = '10%'\ndelay = '10ms'", "kind = 'oneway'\nrate = '100/s'", 1000);
    assert_eq!(run.run_end.clone(), RunEnd::Finished);
    assert!(run.records.iter().all(|record| record.outcome == Outcome::Completed));
    let late =
        run.records.iter().filter(|record| record.latency() > Some(Duration::from_millis(500))).count();
    assert!((60..140).contains(&late), "{late}");
}

#[test]
fn greedy_senders_and_fragmented_messages_are_refused_over_datagrams() {
    for (workload, cure) in
        [("kind = 'bulk'", "use oneway with a `rate`"), ("kind = 'oneway'\nsize = '1473B'", "lower `size`")]
    {
        let error =
            run(&scenario("udp", "delay = '10ms'", workload, 10), Seed(7), None).unwrap_err().to_string();
        assert!(error.contains(cure), "{error}");
    }
}

/// Claim ikr53-26: the generator aborts the run when it falls a second behind.
#[test]
fn load_above_the_link_rate_falls_behind_schedule() {
    for transport in ["tcp", "sctp"] {
        let run = run_of(
            transport,
            "rate = '400kbit'",
            "kind = 'oneway'\nrate = '1000/s'\nsize = '1000B'\nlate_limit = '1s'",
            100_000,
        );
        let RunEnd::BehindSchedule { scheduled, at, .. } = run.run_end else {
            panic!("{transport}: {:?}", run.run_end)
        };
        assert_eq!(at.since(scheduled), Duration::from_secs(1), "{transport}");
        assert_eq!((run.records.len(), run.closed), (100_000, None), "{transport}");
    }
}

#[test]
fn a_link_that_stays_down_ends_the_run_with_a_reason() {
    for transport in ["tcp", "sctp"] {
        let run = run_of(transport, "events = [{ at = '1s', down = true }]", "kind = 'echo'", 200);
        let ended =
            matches!(run.run_end, RunEnd::Failed { .. } | RunEnd::Stalled { .. } | RunEnd::OutOfTime { .. });
        assert!(ended, "{transport}: {:?}", run.run_end);
        let failed = run.records.iter().filter(|record| record.outcome == Outcome::Unfinished).count();
        assert!((90..120).contains(&failed), "{transport}: {failed}");
    }
}

/// Packet 3 of the client opens SIMCO's session; nothing else is sent before the reply.
#[test]
fn abandoned_session_setup_is_repeated_until_the_association_fails() {
    let drop = |last: u32| {
        let packets: Vec<u32> = (3..=last).collect();
        run_of("sctp:retransmissions=0", &format!("loss = {{ drop = {packets:?} }}"), "kind = \"simco\"", 10)
    };
    assert_eq!(drop(6).run_end, RunEnd::Finished);
    let run = drop(500);
    assert!(matches!(run.run_end.clone(), RunEnd::Failed { .. }), "{:?}", run.run_end);
}

#[test]
fn ping_pong_over_an_unreliable_transport_is_refused() {
    let scenario = scenario("sctp:lifetime=1s", "", "kind = \"pingpong\"", 10);
    let refusal = run(&scenario, Seed(1), None).unwrap_err().to_string();
    assert!(refusal.contains("another workload such as echo"), "{refusal}");
}

#[test]
fn a_server_that_cannot_be_reached_ends_the_run_with_a_reason() {
    for transport in ["tcp", "sctp"] {
        let run = run_of(transport, "loss = '100%'", "kind = 'simco'", 5);
        assert!(!matches!(run.run_end.clone(), RunEnd::Finished), "{transport}");
        assert_eq!((run.connect_time, run.records.len()), (None, 5), "{transport}");
    }
}

/// RFC 9260 section 8.2: when the primary path fails, the association uses the other.
#[test]
fn an_association_survives_the_loss_of_a_path() {
    let network = "paths = [{}, { delay = '30ms' }]\nevents = [{ at = '2s', path = 1, down = true }]";
    // The server does not know that its SACKs go over the dead path, as in Linux, until its own data has timed out there.
    let run = run_of("sctp:streams=4", network, "kind = 'echo'\nlate_limit = '1h'", 3000);
    assert_reliable(&run, 3000, "failover");
    let before = run.records[50].latency().unwrap();
    let after = run.records[2999].latency().unwrap();
    assert!(before < Duration::from_millis(21), "{before}");
    assert!((Duration::from_millis(60)..Duration::from_millis(75)).contains(&after), "{after}");
}

#[test]
fn association_with_one_address_per_end_uses_one_path() {
    let network = "paths = [{}, { loss = '100%' }]";
    for (transport, is_single) in [("sctp", false), ("sctp:single_homed", true)] {
        let run = run_of(transport, network, "kind = 'echo'", 1000);
        assert_reliable(&run, 1000, transport);
        assert_eq!(drops(&run).loss == 0, is_single, "{transport}: {:?}", drops(&run));
    }
}

#[test]
fn packets_are_routed_over_several_hops() {
    let network = "nodes = ['client', 'r1', 'r2', 'server']\ndelay = '2ms'
        links = [{ from = 'client', to = 'r1' }, { from = 'r1', to = 'r2', delay = '6ms' }]
        lans = [{ nodes = ['r2', 'server'] }]";
    for transport in ["tcp", "sctp"] {
        let run = run_of(transport, network, "kind = 'echo'", 100);
        assert_reliable(&run, 100, transport);
        let mean = mean_ms(&run.records);
        assert!((20.0..20.2).contains(&mean), "{transport}: {mean}");
    }
}

/// All transports meet the same losses: the k-th packet of a direction gets the k-th draw.
#[test]
fn packet_listed_in_drop_is_lost() {
    for transport in ["tcp", "sctp"] {
        let run = run_of(transport, "up = { loss = { drop = [20] } }", "kind = 'oneway'", 200);
        assert_reliable(&run, 200, transport);
        assert_eq!(drops(&run).loss, 1);
        let late =
            run.records.iter().filter(|record| record.latency() > Some(Duration::from_millis(11))).count();
        assert!((1..10).contains(&late), "{transport}: {late} messages were late");
    }
}

#[test]
fn tap_reports_every_packet_at_both_ends() {
    let scenario = scenario("sctp", "loss = '5%'\nqueue = '1p'", "kind = 'echo'\nrate = '5000/s'", 2000);
    let mut counts = Counts::default();
    let run = run(&scenario, Seed(3), Some(&mut counts)).unwrap();
    assert_eq!(scenario.interfaces().unwrap(), ["client:1", "server:1"]);
    // A run does not count what is dropped while the association closes.
    let dropped = counts.dropped.iter().filter(|at| **at <= run.ended).count() as u64;
    assert_eq!((counts.sent, dropped), (run.packets, drops(&run).loss + drops(&run).queue));
    let under_way = counts.sent - counts.received - counts.dropped.len() as u64;
    // The offered load exceeds the link rate, so the run ends early, with messages in flight.
    assert!(under_way <= 2, "{under_way} packets were neither received nor dropped");
    assert!(drops(&run).loss > 0);
}

#[derive(Default)]
struct Counts {
    sent: u64,
    received: u64,
    /// When packets were dropped.
    dropped: Vec<Time>,
}

impl Tap for Counts {
    fn packet(&mut self, now: Time, _: TapPoint<'_>, _: &PacketInTransit, event: TapEvent) {
        match event {
            TapEvent::Sent => self.sent += 1,
            TapEvent::Dequeued => (),
            TapEvent::Received => self.received += 1,
            _ => self.dropped.push(now),
        }
    }
}

#[test]
fn overload_without_a_late_limit_completes() {
    for transport in ["tcp", "sctp"] {
        let run =
            run_of(transport, "rate = '400kbit'", "kind = 'oneway'\nrate = '1000/s'\nsize = '1000B'", 10_000);
        assert_reliable(&run, 10_000, transport);
        assert!(run.ended.as_secs_f64() > 200.0, "{transport}: {}", run.ended);
    }
}

#[test]
fn contradictory_scenarios_are_refused_with_a_remedy() {
    let refusal = |network, workload, messages| {
        run(&scenario("tcp", network, workload, messages), Seed(0), None).unwrap_err().to_string()
    };
    assert!(refusal("", "kind = 'echo'", 0).contains("`messages`"));
    assert!(refusal("jitter = '1s'", "kind = 'echo'", 1).contains("[network]"));
    assert!(refusal("", "kind = 'echo'\nsize = '1B'", 1).contains("[workload]"));
}
