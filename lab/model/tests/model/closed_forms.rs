//! Compares the model with closed forms.

use hol_base::Seed;
use hol_measure::{Summarizer, Summary, TransferBuilder};
use hol_model::run_with_observer;
use hol_scenario::{Observer, Scenario};

fn scenario(transport: &str, network: &str, workload: &str, messages: u64) -> Scenario {
    Scenario::with_single_flow(
        toml::from_str(network).unwrap(),
        transport.parse().unwrap(),
        toml::from_str(workload).unwrap(),
        messages,
    )
}

fn summary(scenario: &Scenario) -> Summary {
    let mut summarizer = Summarizer::default();
    run_with_observer(scenario, Seed(1), None, &mut summarizer).unwrap();
    summarizer.finish()
}

/// With one message in flight only a timer detects a loss: of a request at the client, of a reply at the
/// server. It doubles each time: RTT + 2 p / (1 - 2 p) RTO. RFC 6298 section 5.5, RFC 9260 section 6.3.3.
#[test]
fn ping_pong_with_loss_takes_the_time_of_its_timeouts() {
    const RTT_MS: f64 = 20.0;
    for (transport, rto_ms) in [
        ("tcp:stack=rfc", 1000.0),
        ("sctp:stack=rfc", 1000.0),
        ("sctp:stack=rfc,rto_min=200ms,rto_initial=200ms", 200.0),
        // Linux adds its minimum RTO to the round trip; RFC 6298 takes the greater of both.
        ("tcp:stack=linux-2.6.16", 220.0),
    ] {
        for p in [0.01, 0.03] {
            let network = format!("delay = '10ms'\nrate = '10Gbit'\nloss = '{}%'", 100.0 * p);
            // About 1,000 timeouts, so the standard error is 3 %.
            let messages = (500.0 / p) as u64;
            let asked = scenario(transport, &network, "kind = 'pingpong'", messages);
            let expected = RTT_MS + 2.0 * p / (1.0 - 2.0 * p) * rto_ms;
            let is = summary(&asked).latency.mean_ms().expect("it is measured");
            assert!((is / expected - 1.0).abs() < 0.05, "{transport}, {p}: {is} for {expected} ms");
        }
    }
}

/// Measures the time of a transfer.
#[derive(Default)]
struct Timed(TransferBuilder);

impl Observer for Timed {
    fn record(&mut self, _: usize, record: &hol_measure::Record) {
        self.0.add(record);
    }
}

/// Reno's rate is proportional to the inverse root of the loss. Mathis, Semke, Mahdavi, Ott: The macroscopic
/// behavior of the TCP congestion avoidance algorithm, CCR 27(3), 1997.
#[test]
fn the_rate_of_reno_falls_with_the_root_of_the_loss() {
    let rate = |loss: &str| {
        let network = format!("delay = '50ms'\nrate = '1Gbit'\nqueue = '10000p'\nloss = '{loss}'");
        // Loss in one direction only; a later acknowledgment replaces a lost one.
        let network = format!("{network}\ndown = {{ loss = '0%' }}");
        let asked = scenario("tcp:stack=rfc", &network, "kind = 'bulk'\nsize = '1448B'", 30_000);
        let mut timed = Timed::default();
        run_with_observer(&asked, Seed(2), None, &mut timed).unwrap();
        30_000.0 / timed.0.transfer().expect("it is delivered").span().as_secs_f64()
    };
    let rates = ["0.1%", "0.3%", "1%"].map(rate);
    let exponent = |from: usize, to: usize, losses: f64| (rates[to] / rates[from]).ln() / losses.ln();
    for exponent in [exponent(0, 1, 3.0), exponent(1, 2, 10.0 / 3.0), exponent(0, 2, 10.0)] {
        assert!((exponent + 0.5).abs() < 0.15, "{exponent}: {rates:?}");
    }
}

/// BBR sends at the rate of the bottleneck at any loss below a fifth; CUBIC reduces its window at losses.
/// Cardwell et al.: BBR, ACM Queue 14(5), 2016, figure 8.
#[test]
fn bbr_keeps_the_rate_of_the_bottleneck() {
    let share = |transport: &str, loss: &str| {
        let network = format!("delay = '20ms'\nrate = '20Mbit'\nqueue = '2000p'\nup = {{ loss = '{loss}' }}");
        let asked = scenario(transport, &network, "kind = 'bulk'\nsize = '1448B'", 20_000);
        let mut timed = Timed::default();
        run_with_observer(&asked, Seed(1), None, &mut timed).unwrap();
        let span = timed.0.transfer().expect("it is delivered").span().as_secs_f64();
        20_000.0 * 1448.0 * 8.0 / span / 20e6
    };
    for loss in ["0%", "1%", "5%"] {
        let share = share("tcp:cc=bbr", loss);
        assert!((0.85..1.0).contains(&share), "{loss}: {share} of the rate");
    }
    let share = share("tcp", "1%");
    assert!(share < 0.5, "{share}");
}
