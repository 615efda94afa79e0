//! Paths of today in both worlds, beside one another: delays that vary, paths that change, queues. In User-Mode Linux, for that is
//! quickest; without it these tests say so and pass, unless `HOL_REQUIRE_UML` is set.

use std::path::PathBuf;

use hol_base::{Duration, Seed};
use hol_kernel::{Image, Kernel};
use hol_measure::Record;
use hol_model::Model;
use hol_scenario::{Run, Scenario, World};

/// User-Mode Linux, if it is here.
fn kernel(test: &str) -> Option<Kernel> {
    let image = Image::find(Some("uml")).ok();
    let kernel = image.map(|image| Kernel::new(image, Some(PathBuf::from(env!("CARGO_BIN_EXE_hol")))));
    if kernel.is_none() {
        assert!(std::env::var_os("HOL_REQUIRE_UML").is_none(), "{test}: no `hol kernel build`");
        eprintln!("{test}: SKIPPED, for there is no kernel for User-Mode Linux (`hol kernel build`)");
    }
    kernel
}

fn scenario(transport: &str, network: &str, workload: &str, messages: u64) -> Scenario {
    let network = toml::from_str(network).unwrap();
    Scenario::alone(network, transport.parse().unwrap(), toml::from_str(workload).unwrap(), messages)
}

/// How long each message that arrived was under way since it was written, ascending.
fn ways(run: &Run) -> Vec<Duration> {
    let way = |record: &Record| Some(record.request?.delivered.since(record.request?.written));
    let mut ways: Vec<Duration> = run.records.iter().filter_map(way).collect();
    ways.sort();
    ways
}

/// netem draws from the table that the model draws from, and the chain of the kernel keeps the order as the model does. Kolmogorov and
/// Smirnov: two samples of n are further apart than 1.95 √(2/n) once in a thousand times.
#[test]
fn both_worlds_draw_their_delays_from_one_table() {
    let Some(kernel) = kernel("both_worlds_draw_their_delays_from_one_table") else { return };
    const N: u64 = 4000;
    for (words, mean, deviation) in [
        ("'uniform'", 0.0, 0.5774),
        ("'normal'", 0.0, 1.0),
        ("'pareto'", -0.033, 0.821),
        ("'paretonormal'", -0.0247, 0.8349),
        ("{ table = [-8192, -8192, 0, 24576] }", 0.25, 1.6394),
    ] {
        // So far apart that no packet waits for the one before.
        let network = format!("delay = '30ms'\njitter = '5ms'\njitter_distribution = {words}");
        let scenario = scenario("udp", &network, "kind = 'oneway'\nrate = '20/s'\nsize = '100B'", N);
        let [kernel, model] = [&kernel as &dyn World, &Model]
            .map(|world| ways(&world.run(&scenario, Seed(1)).unwrap()))
            // The time on the line, and what interfaces take.
            .map(|ways| ways.iter().map(|way| (way.as_millis_f64() - 30.0) / 5.0).collect::<Vec<f64>>());
        assert_eq!((kernel.len(), model.len()), (N as usize, N as usize));
        for (world, ways) in [("kernel", &kernel), ("model", &model)] {
            let found = ways.iter().sum::<f64>() / N as f64;
            let spread = (ways.iter().map(|way| (way - found).powi(2)).sum::<f64>() / N as f64).sqrt();
            println!("{words} {world}: mean {found:.3}, deviation {spread:.3}");
            // 0.1 ms of floor are 0.02.
            assert!(
                (found - mean).abs() < 4.0 * deviation / (N as f64).sqrt() + 0.02,
                "{words} {world}: {found}"
            );
            assert!((spread / deviation - 1.0).abs() < 0.06, "{words} {world}: {spread}");
        }
        let below = |ways: &[f64], value: f64| ways.partition_point(|way| *way < value) as f64 / N as f64;
        // Beside a step of the table both are alike but for the floor.
        let apart = |value: &f64| {
            let floor = 0.03;
            let (of_kernel, of_model) = (below(&kernel, *value), below(&model, *value));
            (below(&model, value - floor) - of_kernel).max(of_kernel - of_model)
        };
        let worst = model.iter().map(apart).fold(0.0, f64::max);
        assert!(worst < 1.95 * (2.0 / N as f64).sqrt(), "{words}: {worst}");
    }
}

/// Both keep the order of packets whose delays differ: what netem does by itself, to let them overtake, neither does.
#[test]
fn in_both_worlds_jitter_keeps_the_order() {
    let Some(kernel) = kernel("in_both_worlds_jitter_keeps_the_order") else { return };
    let network = "delay = '30ms'\njitter = '5ms'\njitter_distribution = 'normal'";
    let scenario = scenario("udp", network, "kind = 'oneway'\nrate = '2000/s'\nsize = '100B'", 4000);
    for world in [&kernel as &dyn World, &Model] {
        let run = world.run(&scenario, Seed(1)).unwrap();
        let mut arrivals: Vec<_> =
            run.records.iter().map(|record| (record.id, record.request.unwrap().delivered)).collect();
        arrivals.sort();
        assert!(arrivals.is_sorted_by_key(|(_, arrived)| *arrived), "{}", world.name());
    }
}
