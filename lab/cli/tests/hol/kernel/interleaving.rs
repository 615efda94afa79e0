//! Interleaved messages and the schedulers of streams (RFC 8260), in the model and in Linux.

use std::collections::BTreeMap;

use super::points::points;

/// Returns mean and median in ms, of the model and of Linux, by scheduler, with and without I-DATA.
fn both(schedulers: &[&str], messages: u32, exchanges: &str) -> BTreeMap<(String, bool), [[f64; 2]; 2]> {
    let spec = |scheduler: &str, interleaving: bool| {
        format!(
            "sctp:streams={},interleaving={interleaving},scheduler={scheduler}",
            exchanges.split(',').count()
        )
    };
    let all =
        schedulers.iter().flat_map(|scheduler| [false, true].map(|interleaving| (*scheduler, interleaving)));
    let specs: Vec<_> = all
        .map(|(scheduler, interleaving)| (scheduler, interleaving, spec(scheduler, interleaving)))
        .collect();
    let transports: Vec<&String> = specs.iter().map(|(.., spec)| spec).collect();
    let experiment = format!(
        "transports = {transports:?}
        messages = {messages}
        repetitions = 1
        network = {{ delay = '10ms', rate = '500kbit', loss = '0%', discipline = {{ codel = {{ ecn = true }} }} }}
        workload = {{ kind = 'replay', exchanges = [{exchanges}] }}"
    );
    let worlds = ["model", "kernel:uml"].map(|world| points(&experiment, world));
    let told = |(scheduler, interleaving, spec): (&str, bool, String)| {
        let told = worlds.each_ref().map(|points| {
            assert_eq!(points[&spec]["completed"], messages.to_string(), "{spec}");
            ["mean_ms", "p50_ms"].map(|column| points[&spec][column].parse::<f64>().unwrap())
        });
        println!("{spec}: mean and median in the model and in Linux {told:?}");
        ((scheduler.to_owned(), interleaving), told)
    };
    specs.into_iter().map(told).collect()
}

#[track_caller]
fn assert_alike(all: &BTreeMap<(String, bool), [[f64; 2]; 2]>) {
    for (case, [model, linux]) in all {
        for (model, linux) in model.iter().zip(linux) {
            assert!(
                (model / linux - 1.0).abs() < 0.02,
                "{case:?}: {model} ms in the model, {linux} in Linux"
            );
        }
    }
}

/// RFC 8260 section 2: without I-DATA no scheduler helps; with I-DATA all of them help except the first.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn small_messages_wait_for_a_large_one_as_in_linux() {
    let small = (1..8).map(|number| format!("'{}ms 100B'", 200 * number)).collect::<Vec<_>>();
    let schedulers = ["fcfs", "rr", "prio,stream_values=1/0", "fc", "wfq,stream_values=1/4"];
    let all = both(&schedulers, 400, &format!("'0ms 60kB', {}", small.join(", ")));
    assert_alike(&all);
    for ((scheduler, interleaving), worlds) in all {
        for [mean, _] in worlds {
            let waits = !interleaving || scheduler == "fcfs";
            assert_eq!(mean > 400.0, waits, "{scheduler}, interleaving={interleaving}: {mean} ms");
            assert_eq!(mean < 220.0, !waits, "{scheduler}, interleaving={interleaving}: {mean} ms");
        }
    }
}

/// RFC 8260 section 3: three large messages at the same time, sent in descending order of size.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn streams_share_a_path_as_in_linux() {
    let schedulers = ["fcfs", "rr", "prio,stream_values=2/1/0", "fc", "wfq,stream_values=1/2/4/1"];
    let all = both(&schedulers, 200, "'0ms 30kB', '1ms 20kB', '2ms 10kB', '1500ms 100B'");
    assert_alike(&all);
    // The schedulers differ: shortest first has the lowest mean, round robin the highest.
    let mean = |scheduler: &str| all[&(scheduler.to_owned(), true)].map(|[mean, _]| mean);
    let [min, max] = [mean("prio,stream_values=2/1/0"), mean("rr")];
    assert!(min[0] < 0.8 * max[0] && min[1] < 0.8 * max[1], "{min:?} {max:?}");
}
