//! Samples of senders on two hosts, both on this machine; each host receives the other's state only over the control channel.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use hol_base::{Duration, Seed};
use hol_live::{Live, Secret, Server, Service};
use hol_measure::Record;
use hol_network::NetworkSpec;
use hol_scenario::{Background, Observer, Sample, SampleValue, Scenario, Side, World};

/// An observer that samples every ms.
#[derive(Default)]
struct Looking(Vec<Sample>);

impl Observer for Looking {
    fn record(&mut self, _: usize, _: &Record) {}

    fn interval(&self) -> Option<Duration> {
        Some(Duration::from_millis(1))
    }

    fn sample(&mut self, sample: &Sample) {
        self.0.push(*sample);
    }
}

/// Returns a scenario with echoes, and a flow in the other direction.
fn scenario() -> Scenario {
    let workload = |text: &str| toml::from_str(text).unwrap();
    let echo = workload("kind = 'echo'\nrate = '1000/s'");
    let mut scenario = Scenario::with_single_flow(NetworkSpec::default(), "tcp".parse().unwrap(), echo, 200);
    scenario.background = vec![Background {
        transport: "tcp".parse().unwrap(),
        workload: workload("kind = 'oneway'\nrate = '1000/s'\nfrom = 'server'\nto = 'client'"),
        messages: None,
        count: 1,
        spread: Duration::ZERO,
    }];
    scenario
}

#[test]
fn samples_of_both_hosts_are_on_one_clock() {
    let secret = || Secret::new(super::SECRET).unwrap();
    secret().set_for_process();
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Server::listen(anywhere, secret(), Service::Ends(None)).unwrap();
    let place = server.address().unwrap().to_string();
    let mut looking = Looking::default();
    let summary = thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(false, &|_| ()));
        let summary = Live::with_peer(&place).unwrap().follow(&scenario(), Seed(1), &mut looking);
        server.stop().unwrap();
        serving.join().unwrap().unwrap();
        summary.unwrap()
    });
    let of = |flow: u32, side: Side| {
        let is_one = |sample: &&Sample| matches!(sample.value, SampleValue::Sender(one) if (one.flow, one.side) == (flow, side));
        looking.0.iter().filter(is_one).count()
    };
    // The client of the flow in the other direction is on the serving host, and its server has nothing to send.
    assert!(of(0, Side::Client) > 0 && of(0, Side::Server) > 0 && of(1, Side::Client) > 0);
    assert_eq!(of(1, Side::Server), 0);
    assert!(looking.0.is_sorted_by_key(|sample| sample.at));
    let last = looking.0.last().unwrap().at;
    assert!(last <= summary.ended + Duration::from_secs(1), "{last:?}");
}
