//! Every effect of the network in User-Mode Linux, compared with its closed form or with the model.

use std::collections::BTreeMap;

use hol_base::{Duration, Seed};
use hol_kernel::Kernel;
use hol_measure::Record;
use hol_model::Model;
use hol_network::TapEvent;
use hol_scenario::{PacketEvent, PacketObserver, Run, Scenario, World, WorldReport};

use super::engine::{qemu, user_mode};

/// Maximum processor time of the guest for each link.
const FLOOR: Duration = Duration::from_micros(100);

/// Returns a scenario with this many datagrams of 100 octets, a millisecond apart, from client to server.
fn datagrams(network: &str, messages: u64) -> Scenario {
    let workload = toml::from_str("kind = 'oneway'\nrate = '1000/s'\nsize = '100B'").unwrap();
    Scenario::with_single_flow(toml::from_str(network).unwrap(), "udp".parse().unwrap(), workload, messages)
}

fn send(world: &Kernel, network: &str, messages: u64) -> Run {
    world.run(&datagrams(network, messages), Seed(1)).unwrap()
}

fn world_report(run: &Run) -> &WorldReport {
    run.world_report.as_deref().expect("a kernel tells of itself")
}

/// Returns the numbers of the datagrams that did not arrive.
fn lost(run: &Run) -> Vec<u64> {
    run.records.iter().filter(|record| record.request.is_none()).map(|record| record.id).collect()
}

/// Returns the number and the delay of each datagram that arrived.
fn delays(run: &Run) -> Vec<(u64, Duration)> {
    let delay = |record: &Record| Some((record.id, record.request?.delivered.since(record.request?.written)));
    run.records.iter().filter_map(delay).collect()
}

/// Returns whether `value` is within four standard deviations of a share of `n`.
fn is_share(value: f64, share: f64, n: f64) -> bool {
    (value - share).abs() < 4.0 * (share * (1.0 - share) / n).sqrt()
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn delays_and_losses_add_up_along_the_path() {
    let world = user_mode();
    let run = send(
        &world,
        "nodes = ['client', 'router', 'server']\ndelay = '100ms'\nloss = '1%'\nrate = '1Gbit'
         links = [{ from = 'client', to = 'router' }, { from = 'router', to = 'server' }]",
        5000,
    );
    let both = Duration::from_millis(200);
    let delays = delays(&run);
    assert!(delays.iter().all(|(_, delay)| (both..both + FLOOR * 2).contains(delay)));
    let share = lost(&run).len() as f64 / 5000.0;
    assert!(is_share(share, 1.0 - 0.99 * 0.99, 5000.0), "{share}");
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn stations_of_a_lan_share_one_transmitter() {
    let world = user_mode();
    let run = send(
        &world,
        "nodes = ['client', 'a', 'b', 'server']\ndelay = '5ms'\nlinks = [{ from = 'b', to = 'server' }]
         lans = [{ nodes = ['client', 'a'] }, { nodes = ['a', 'b'], delay = '20ms' }]",
        50,
    );
    let all = Duration::from_millis(30);
    assert_eq!(delays(&run).len(), 50);
    assert!(delays(&run).iter().all(|(_, delay)| (all..all + FLOOR * 4).contains(delay)), "{run:?}");
    assert!(
        world_report(&run)
            .link_counters
            .iter()
            .all(|line| line.sent == if line.name.ends_with("down") { 0 } else { 50 })
    );
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn association_with_one_address_per_end_uses_one_path() {
    let world = user_mode();
    for (transport, is_single) in [("sctp", false), ("sctp:single_homed", true)] {
        // The run is long enough for a HEARTBEAT to the other address. RFC 9260 section 8.3.
        let workload = toml::from_str("kind = 'oneway'\nrate = '1/s'").unwrap();
        let transport = transport.parse().unwrap();
        let scenario = Scenario { transport, workload, ..datagrams("paths = [{}, {}]", 60) };
        let run = world.run(&scenario, Seed(1)).unwrap();
        assert_eq!(delays(&run).len(), 60);
        let other: u64 = world_report(&run).link_counters.iter().skip(2).map(|line| line.sent).sum();
        assert_eq!(other == 0, is_single, "{:?}", world_report(&run).link_counters);
    }
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn packets_are_lost_by_number() {
    let world = user_mode();
    assert_eq!(lost(&send(&world, "loss = { drop = [3, 7, 50] }", 60)), [2, 6, 49]);
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn queue_holds_its_limit_of_packets_or_octets() {
    let world = user_mode();
    // A burst of 40 IP packets of 1100 octets, shorter than the 9 ms that the first of them takes.
    let held = |queue| {
        let mut burst = datagrams(&format!("rate = '1Mbit'\nqueue = '{queue}'"), 40);
        burst.workload = toml::from_str("kind = 'oneway'\nrate = '20000/s'\nsize = '1072B'").unwrap();
        let run = world.run(&burst, Seed(1)).unwrap();
        let held: Vec<u64> = delays(&run).iter().map(|(id, _)| *id).collect();
        assert!(held.iter().copied().eq(0..held.len() as u64), "{held:?}");
        held.len()
    };
    assert_eq!(held("12p"), 12);
    assert_eq!(held("9900B"), 9);
    assert_eq!(held("9899B"), 8);
}

/// The load exceeds the link rate by a twentieth: a share s is dropped, so the average queue has to be where p = s / (2
/// − s), because gaps between drops are uniformly distributed. Floyd and Jacobson 1993, section 7. A packet has 1100
/// octets.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn early_dropping_queue_settles_at_the_excess_load() {
    let world = user_mode();
    let red = "discipline = { red = { min = '11000B', max = '33000B', weight = 0.015625 } }";
    let mut flood = datagrams(&format!("rate = '1Mbit'\n{red}"), 6000);
    flood.workload = toml::from_str("kind = 'oneway'\nrate = '118/s'\nsize = '1072B'").unwrap();
    let run = world.run(&flood, Seed(1)).unwrap();
    let model = hol_model::run(&flood, Seed(1), None).unwrap();
    let settled = |records: &[Record]| {
        let times =
            records[2000..].iter().filter_map(|r| Some(r.request?.delivered.since(r.request?.written)));
        let times: Vec<f64> = times.map(|time| time.as_millis_f64()).collect();
        (times.len() as f64 / 4000.0, times.iter().sum::<f64>() / times.len() as f64)
    };
    let (packet, offered) = (1114.0 * 8.0 / 1000.0, 1000.0 / 118.0);
    let share = 1.0 - offered / packet;
    let waiting = (11_000.0 + 22_000.0 * share / (2.0 - share) / 0.1) / 1100.0;
    for (arrived, mean) in [settled(&run.records), settled(&model.records)] {
        assert!((arrived - (1.0 - share)).abs() < 0.005, "{arrived} arrive");
        // In addition to waiting packets, a packet finds one that is half transmitted, and then is transmitted itself.
        let due = 10.0 + packet * (waiting + 1.5);
        assert!((mean / due - 1.0).abs() < 0.05, "{mean} ms, {due} were due");
    }
}

/// The burst passes completely, and of later packets the excess is dropped: one token per octet, as in the model.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn policer_drops_packets_without_tokens() {
    let world = user_mode();
    // IP packets of 128 octets arrive every ms, with tokens for three quarters of each. A burst of a further eighth
    // keeps every decision at least 167 µs away from its limit.
    for events in ["", "events = [{ at = '1s', down = true }, { at = '1100ms', down = false }]"] {
        let network = format!("police = {{ rate = '768kbit', burst = '16016B' }}\n{events}");
        let scenario = datagrams(&network, 3000);
        let model = hol_model::run(&scenario, Seed(1), None).unwrap();
        let run = world.run(&scenario, Seed(1)).unwrap();
        let (ours, theirs) = (lost(&model), lost(&run));
        assert_eq!(
            world_report(&run).link_counters[0].dropped,
            theirs.len() as u64,
            "the line tells of them"
        );
        if events.is_empty() {
            assert_eq!(3000 - ours.len(), (16_016 * 8 + 768 * 2999) / 1024);
            assert_eq!(ours, theirs, "the same packets");
        } else {
            // Of the packets in transit when the link goes down, the worlds may treat two differently.
            assert!(ours.len().abs_diff(theirs.len()) <= 2, "{} and {}", ours.len(), theirs.len());
        }
    }
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn loss_bursts_have_the_configured_rate_and_mean_length() {
    let world = user_mode();
    let lost = lost(&send(&world, "loss = { good_to_bad = '5%', bad_to_good = '25%' }", 5000));
    let bursts = 1 + lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    let (share, length) = (lost.len() as f64 / 5000.0, lost.len() as f64 / bursts as f64);
    // Losses occur about four at a time, so there are fewer independent ones.
    assert!(is_share(share, 1.0 / 6.0, 5000.0 / 7.0), "{share}");
    assert!((length - 4.0).abs() < 1.0, "{length}");
}

/// Number of times that each payload arrived at the server.
#[derive(Default)]
struct ReceivedPayloads(BTreeMap<Vec<u8>, u64>);

impl PacketObserver for ReceivedPayloads {
    fn observe(&mut self, event: &PacketEvent<'_>) {
        if event.event == TapEvent::Received && event.point.interface == 1 {
            *self.0.entry(event.packet.octets()[28..].to_vec()).or_default() += 1;
        }
    }
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn configured_share_of_packets_is_duplicated() {
    let world = user_mode();
    let mut times = ReceivedPayloads::default();
    let scenario = datagrams("duplicate = '10%'\nup = { loss = '5%' }", 3000);
    world.trace(&scenario, Seed(1), &mut times).unwrap();
    let ReceivedPayloads(times) = times;
    assert!(times.values().all(|times| *times <= 2), "a copy is not copied");
    let (arrived, twice) = (times.len() as f64, times.values().filter(|times| **times == 2).count() as f64);
    assert!(is_share(twice / arrived, 0.1, arrived), "{twice} of {arrived}");
    assert!(is_share(arrived / 3000.0, 0.95, 3000.0), "{arrived}");
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn link_events_happen_at_their_time() {
    let world = user_mode();
    let run = send(
        &world,
        "delay = '10ms'
         events = [{ at = '200ms', down = true }, { at = '300ms', down = false }, { at = '400ms', delay = '30ms' },
                   { at = '500ms', loss = '100%' }, { at = '600ms', loss = '0%' }, { at = '700ms', rate = '1Mbit' },
                   { at = '800ms', delay = '5ms' }]",
        1000,
    );
    // Packets sent in the 10 ms before the link goes down are still in transit.
    let gone: Vec<u64> = (190..300).chain(500..600).collect();
    let lost = lost(&run);
    assert!(lost.len().abs_diff(gone.len()) <= 2 && lost.iter().filter(|id| !gone.contains(id)).count() <= 2);
    let delays: BTreeMap<u64, Duration> = delays(&run).into_iter().collect();
    // (100 + 28 + 14) octets take 11 µs at 100 Mbit/s and 1136 µs at 1 Mbit/s.
    for (id, millis, serialization) in [(350, 10, 11), (450, 30, 11), (690, 30, 11)] {
        let due = Duration::from_millis(millis) + Duration::from_micros(serialization);
        assert!((due..due + FLOOR).contains(&delays[&id]), "{id}: {}", delays[&id]);
    }
    // More packets arrive than leave, so the queueing delay grows by 136 µs with each packet.
    assert!(delays[&750].abs_diff(Duration::from_micros(30_000 + 50 * 136)) < Duration::from_millis(2));
    assert!(delays[&990] > Duration::from_micros(5_000 + 270 * 136), "{}", delays[&990]);
}

/// Waiting packets leave at the current rate. The kernel transmits the rest of a packet at the new rate, the model at
/// the old one, so the difference is at most a transmission at the slower rate.
#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch)"]
fn queued_packets_get_a_new_rate_as_in_the_model() {
    let world = qemu();
    let in_both = |queue: &str| {
        let network = format!(
            "delay = '10ms'\nqueue = '{queue}'\nrate = '4Mbit'
             events = [{{ at = '100ms', rate = '800kbit' }}, {{ at = '400ms', rate = '400kbit' }}, {{ at = '600ms', rate = '4Mbit' }}]"
        );
        let scenario = datagrams(&network, 1000);
        [&world as &dyn World, &Model].map(|world| world.run(&scenario, Seed(1)).unwrap())
    };
    for queue in ["1000p", "1MB"] {
        let [kernel, model] = in_both(queue);
        let kernel: BTreeMap<u64, Duration> = delays(&kernel).into_iter().collect();
        let apart = delays(&model).into_iter().map(|(id, model)| (model.abs_diff(kernel[&id]), id));
        let max = apart.max().unwrap();
        // (100 + 28 + 14) octets at 400 kbit/s.
        assert!(max.0 < Duration::from_micros(2840) + FLOOR * 2, "{queue}: {} at {}", max.0, max.1);
    }
    for queue in ["40p", "5120B"] {
        let [kernel, model] = in_both(queue).map(|run| lost(&run).len());
        assert!(model > 150 && kernel.abs_diff(model) <= 3, "{queue}: {kernel} for {model}");
    }
}
