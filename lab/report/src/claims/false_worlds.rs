//! A synthetic world for each finding of each study, in which the finding is false. A check that does not
//! fail there could never refute anything.

use std::collections::BTreeMap;

use hol_base::Duration;
use hol_lab::{Metric, Point, Study};
use hol_measure::{Distribution, Playback, Summary};

use super::{Check, Claim, ClaimKind, StudyClaims, Verdict, View, judge};
use crate::data::{Cell, Dataset, Flows};
use crate::figures::{StackView, StudyFigures};
use crate::testing::summary;

/// Repetitions of each point.
const REPETITIONS: usize = 6;

/// The measurements at a point of a world.
struct Sample {
    /// The response time of every transaction, in ms.
    ms: f64,
    kbps: f64,
    fairness: f64,
    connect_ms: f64,
    objects_ms: f64,
    packets_lost: f64,
    retransmissions: f64,
    noticed_ms: f64,
    /// The fraction of playable frames, in percent.
    playable: f64,
    /// The increase of the value from one repetition to the next, as a fraction.
    spread: f64,
    stopped: bool,
}

/// A modification of the default world, in which every transaction takes one round trip and the link is full.
type World = fn(&Cell, &mut Sample);

/// Worlds in which a finding is false, each with the identifier of the finding.
const FALSE_WORLDS: &[(&str, World)] = &[
    ("ikr53-1", sctp_is_slower),
    ("ikr53-1", unchanged),
    ("ikr53-2", sctp_is_slower),
    ("ikr53-2", |cell, here| here.ms = if has_streams(cell) { 25.0 } else { 20.0 }),
    ("ikr53-4", |cell, here| {
        if cell.conditions.workload.starts_with("echo") {
            here.ms = 25.0;
        }
    }),
    ("ikr53-6", |cell, here| {
        if cell.transport.ends_with("+Nagle") {
            here.ms = 25.0;
        }
    }),
    ("ikr53-16", |cell, here| here.ms += if cell.streams == 1024 { 0.0 } else { 10.0 }),
    ("ikr53-17", sctp_is_slower),
    ("ikr53-17", unchanged),
    ("ikr53-17", |cell, here| {
        // The difference occurs at one point only.
        let there = cell.transport == "SCTP-4" && cell.conditions.loss == 10.0 && cell.experiment == "exp2";
        here.ms += if is_sctp(cell) { 0.0 } else { 5.0 } + if there { 10.0 } else { 0.0 };
    }),
    ("ikr53-18", sctp_is_slower),
    ("ikr53-18", unchanged),
    ("ikr53-19", unchanged),
    ("ikr53-20", sctp_is_slower),
    ("ikr53-20", |cell, here| here.ms += if is_sctp(cell) { 0.0 } else { 5.0 }),
    ("ikr53-20", |cell, here| {
        // The crossover is at 500/s.
        let slower = is_sctp(cell) == (cell.conditions.rate < 500.0);
        here.ms += if slower { 5.0 } else { 0.0 };
    }),
    ("ikr53-27", |cell, here| here.stopped = cell.transport == "SCTP-2" && cell.conditions.rate > 5000.0),
    ("ikr53-34", streams_slow_down),
    ("ekl-1", sctp_has_half),
    ("ekl-3", sctp_has_half),
    ("ekl-3", |_, here| here.kbps = 350.0),
    ("ekl-4", |cell, here| here.kbps *= if is_sctp(cell) { 1.0 } else { 0.9 }),
    ("ekl-4", unchanged),
    ("ekl-5", sctp_has_half),
    ("ekl-5", unchanged),
    ("ekl-6", unchanged),
    ("ekl-6", |cell, here| here.kbps = if is_sctp(cell) { 285.0 } else { 380.0 }),
    ("ekl-7", unchanged),
    ("ekl-7", |cell, here| here.kbps = if is_sctp(cell) { 368.0 } else { 380.0 }),
    ("ekl-8", |cell, here| here.kbps *= if interval(cell) == "10ms" { 0.5 } else { 1.0 }),
    ("ekl-8", |cell, here| here.kbps *= if interval(cell) == "20ms" { 0.5 } else { 1.0 }),
    ("ekl-8", unchanged),
    ("ekl-10", |cell, here| {
        here.spread = if cell.conditions.axis_value("background.count") == Some("0") { 0.1 } else { 0.01 }
    }),
    ("ekl-11", |cell, here| here.kbps *= if beside_sack(cell) { 1.0 } else { 0.5 }),
    ("ekl-11", unchanged),
    ("ekl-12", |cell, here| here.kbps *= if is_sctp(cell) { 0.5 } else { 1.0 }),
    ("ekl-14", unchanged),
    ("ekl-14", |_, here| here.connect_ms = 20_000.0),
    ("ekl-16", |cell, here| here.kbps *= if cell.transport == "TCP+8kB" { 0.5 } else { 1.0 }),
    ("ekl-18", |cell, here| here.kbps *= if cell.transport == "SCTP-unordered" { 1.1 } else { 1.0 }),
    ("nay-1c", unchanged),
    ("nay-1c", |cell, here| here.kbps *= if doubles(cell) { 2.0 } else { 1.0 }),
    ("nay-2a", unchanged),
    ("nay-3a", unchanged),
    ("nay-4", unchanged),
    ("nay-4", |cell, here| here.kbps *= if has_streams(cell) { 0.9 } else { 1.0 }),
    ("nay-5", unchanged),
    ("nay-5", |cell, here| here.kbps *= if has_streams(cell) { 0.9 } else { 1.0 }),
    ("nay-6", unchanged),
    ("nay-6", |cell, here| here.ms *= if has_streams(cell) { 0.5 } else { 1.0 }),
    ("nay-7", unchanged),
    ("nay-7", |cell, here| here.fairness = if cell.transport == "SCTP-2" { 0.5 } else { 0.9 }),
    ("pfu-1", unchanged),
    ("pfu-1", |cell, here| here.kbps *= if is_sctp(cell) { 0.1 } else { 1.0 }),
    ("pfu-2", |cell, here| here.kbps *= if cell.transport == "SCTP without CRC" { 1.5 } else { 1.0 }),
    ("pfu-3", sctp_has_half),
    ("pfu-4", unchanged),
    ("pfu-4", |cell, here| here.ms *= if is_sctp(cell) { 3.0 } else { 1.0 }),
    ("pfu-6", |cell, here| here.kbps *= if is_sctp(cell) { 2.0 } else { 1.0 }),
    ("pfu-6", unchanged),
    ("pfu-6b", unchanged),
    ("pfu-7", unchanged),
    ("pfu-8", sctp_has_half),
    ("pfu-8", unchanged),
    ("pfu-9", unchanged),
    ("pfu-9", |cell, here| here.ms *= if is_sctp(cell) { 10.0 } else { 1.0 }),
    ("pfu-10", |cell, here| here.ms *= if is_sctp(cell) { 1.5 } else { 1.0 }),
    ("pfu-11", unchanged),
    ("pfu-11", |cell, here| {
        here.kbps += cell.conditions.delay_ms;
        here.kbps *= if is_sctp(cell) { 0.8 } else { 1.0 };
    }),
    ("pfu-12", |cell, here| here.ms *= if is_sctp(cell) { 1.05 } else { 1.0 }),
    ("pfu-13", unchanged),
    ("pfu-14", unchanged),
    ("pfu-14", |cell, here| here.ms *= if is_sctp(cell) { 2.0 } else { 1.0 }),
    ("pfu-15", unchanged),
    ("pfu-15", |cell, here| here.kbps *= if is_sctp(cell) { 0.92 } else { 1.0 }),
    ("pfu-15b", |cell, here| here.kbps *= if cell.conditions.loss > 0.0 { 0.5 } else { 1.0 }),
    ("pfu-15b", |cell, here| here.ms *= if cell.conditions.loss > 0.0 { 1.2 } else { 1.0 }),
    ("pfu-16", unchanged),
    ("pfu-16", sctp_has_half),
    ("pfu-17b", unchanged),
    ("pfu-17c", unchanged),
    ("pfu-17c", |cell, here| here.ms *= if swept(cell, "background.count") > 0.0 { 1.3 } else { 1.0 }),
    ("pfu-18", unchanged),
    ("pfu-18", |cell, here| here.kbps *= if cell.transport == "SCTP PMR 1" { 0.5 } else { 1.0 }),
    ("pfu-19", unchanged),
    ("pfu-19", |cell, here| here.ms -= if cell.transport == "SCTP-1" { 0.05 } else { 0.0 }),
    ("pfu-19", |cell, here| {
        // More streams help, but a connection for each file is faster still.
        here.ms += 5.0 + if cell.transport == "SCTP-1" { 5.0 } else { 0.0 };
        here.ms -= if cell.transport == "TCP" { 5.0 } else { 0.0 };
    }),
    ("pfu-20", |cell, here| here.ms *= if is_sctp(cell) { 0.98 } else { 1.0 }),
    ("pfu-20", |cell, here| here.ms *= if is_sctp(cell) { 1.5 } else { 1.0 }),
    ("pfu-21", unchanged),
    ("pfu-21", |cell, here| here.playable -= if is_sctp(cell) { 50.0 } else { 0.0 }),
    ("pfu-22", |cell, here| here.kbps *= if is_sctp(cell) { 2.0 } else { 1.0 }),
    ("pfu-23", |cell, here| here.kbps += cell.conditions.loss),
    ("pfu-25", |cell, here| here.kbps *= if has_streams(cell) { 0.9 } else { 1.0 }),
    ("pfu-25", |cell, here| here.ms *= if has_streams(cell) { 1.1 } else { 1.0 }),
    ("sas-1", sctp_is_slower),
    ("sas-1", unchanged),
    ("sas-1", |cell, here| {
        tcp_is_slower(cell, here);
        loss_speeds_up(cell, here);
    }),
    ("sas-1b", unchanged),
    ("sas-1b", |cell, here| here.ms += if has_streams(cell) { 5.0 } else { 0.0 }),
    ("sas-1c", unchanged),
    ("sas-1c", |cell, here| here.objects_ms += if has_streams(cell) { 5.0 } else { 0.0 }),
    ("sas-2", sctp_is_slower),
    ("sas-2", |cell, here| {
        tcp_is_slower(cell, here);
        here.ms += swept(cell, "network.rate");
    }),
    ("sas-3", sctp_is_slower),
    ("sas-3", |cell, here| {
        tcp_is_slower(cell, here);
        here.ms = here.ms + 5000.0 - 10.0 * cell.conditions.delay_ms;
    }),
    ("sas-4", sctp_is_slower),
    ("sas-4", |cell, here| {
        tcp_is_slower(cell, here);
        here.ms -= swept(cell, "workload.objects");
    }),
    ("sas-13", unchanged),
    ("sas-13", |cell, here| here.ms -= if cell.transport == "4×TCP" { 5.0 } else { 0.0 }),
    ("sas-15", unchanged),
    ("sas-15", sctp_is_slower),
    ("sas-16", unchanged),
    ("pion218", unchanged),
    ("pion354", unchanged),
    ("libdatachannel409", unchanged),
    ("node446", unchanged),
    ("iperf1815", unchanged),
    ("iperf1815-after", unchanged),
    ("open5gs895", unchanged),
    ("quiche1400", unchanged),
    ("quiche1400-quic", unchanged),
    ("quiche231", unchanged),
    ("quiche231-bbr", unchanged),
    ("tailscale20893", unchanged),
    ("s2n1320", unchanged),
    ("mptcp278", unchanged),
    ("mptcp278-sum", unchanged),
    ("kubernetes66312", unchanged),
    ("kubernetes66312-few", unchanged),
];

fn unchanged(_: &Cell, _: &mut Sample) {}

fn is_sctp(cell: &Cell) -> bool {
    cell.transport.starts_with("SCTP")
}

fn has_streams(cell: &Cell) -> bool {
    is_sctp(cell) && cell.streams > 1
}

/// Returns whether the point has the second stream of Nayak's paper, in any interpretation: several streams, or two
/// connections.
fn doubles(cell: &Cell) -> bool {
    has_streams(cell) || cell.transport.starts_with('2')
}

fn interval(cell: &Cell) -> &str {
    cell.conditions.axis_value("workload.interval").unwrap_or_default()
}

fn beside_sack(cell: &Cell) -> bool {
    cell.conditions.axis_value("background.transport") == Some("tcp")
}

fn sctp_is_slower(cell: &Cell, here: &mut Sample) {
    here.ms += if is_sctp(cell) { 5.0 } else { 0.0 };
}

fn tcp_is_slower(cell: &Cell, here: &mut Sample) {
    here.ms += if is_sctp(cell) { 0.0 } else { 5.0 };
}

/// Returns the number at the beginning of a swept key's value.
fn swept(cell: &Cell, key: &str) -> f64 {
    let text = cell.conditions.axis_value(key).unwrap_or_default();
    text.trim_end_matches(char::is_alphabetic).parse().unwrap_or(0.0)
}

fn sctp_has_half(cell: &Cell, here: &mut Sample) {
    here.kbps *= if is_sctp(cell) { 0.5 } else { 1.0 };
}

fn streams_slow_down(cell: &Cell, here: &mut Sample) {
    here.ms += f64::from(cell.streams) / 1024.0;
}

fn loss_speeds_up(cell: &Cell, here: &mut Sample) {
    here.ms += 10.0 - cell.conditions.loss;
}

/// The repetitions of a point and their distribution, cached by response time and spread, because creating them takes long.
type RepetitionCache = BTreeMap<[u64; 2], (Vec<Summary>, Distribution)>;

fn repeat(ms: f64, spread: f64) -> (Vec<Summary>, Distribution) {
    let runs: Vec<Summary> =
        (0..REPETITIONS).map(|index| summary(&[ms * (1.0 + spread * index as f64)])).collect();
    let mut latency = Distribution::default();
    runs.iter().for_each(|run| latency.merge(&run.latency));
    (runs, latency)
}

/// Returns a planned point with the measurements of a world.
fn measure_in(planned: &Cell, world: World, cache: &mut RepetitionCache) -> Cell {
    let mut cell = planned.clone();
    let mut here = Sample {
        ms: cell.conditions.rtt_ms() + 0.1,
        kbps: 400.0,
        fairness: 0.9,
        connect_ms: 100.0,
        objects_ms: 50.0,
        packets_lost: 1.0,
        retransmissions: 0.0,
        noticed_ms: 10_000.0,
        playable: 100.0,
        spread: 1e-5,
        stopped: false,
    };
    world(&cell, &mut here);
    let every = |value: f64| {
        (0..REPETITIONS).map(|index| Some(value * (1.0 + here.spread * index as f64))).collect::<Vec<_>>()
    };
    let key = [here.ms, here.spread].map(f64::to_bits);
    (cell.runs, cell.latency) = cache.entry(key).or_insert_with(|| repeat(here.ms, here.spread)).clone();
    let playable = (100.0 * here.playable) as u64;
    let playback = Playback { frames: 10_000, playable, glitches: 0, lasts: Duration::from_secs(1) };
    cell.runs.iter_mut().for_each(|run| run.playback = Some(playback));
    cell.stop_reason = here.stopped.then(|| "behind schedule".to_owned());
    cell.flows = Some(Flows { point: String::new(), ceiling_kbps: Some(400.0), background_kbps: None });
    cell.values = vec![
        (Metric::Throughput, every(here.kbps)),
        (Metric::Fairness, every(here.fairness)),
        (Metric::ConnectTime, every(here.connect_ms)),
        (Metric::ObjectTime, every(here.objects_ms)),
        (Metric::PacketsLost, every(here.packets_lost)),
        (Metric::Retransmissions, every(here.retransmissions)),
        (Metric::Noticed, every(here.noticed_ms)),
    ];
    cell
}

/// Returns the points of the experiments that a claim uses.
fn dataset(planned: &[Cell], claim: &Claim, world: World, cache: &mut RepetitionCache) -> Dataset {
    let experiments: Vec<&String> =
        claim.checks.iter().filter_map(Check::scope).flat_map(|scope| &scope.at.experiments).collect();
    let wanted = planned.iter().filter(|cell| experiments.contains(&&cell.experiment));
    Dataset { cells: wanted.map(|cell| measure_in(cell, world, cache)).collect(), ..Dataset::default() }
}

/// Calls `test` for each finding, with the stacks of its study and the points planned on the first of them.
fn each_finding(mut test: impl FnMut(&Claim, &[StackView], &[Cell])) {
    for (name, _) in Study::all() {
        let study = Study::load(name, false).unwrap_or_else(|e| panic!("{e}"));
        let (Some(claims), Some(figures)) = (study.file("claims.toml"), study.file("figures.toml")) else {
            continue;
        };
        let StudyFigures { views, .. } = toml::from_str(figures).unwrap_or_else(|e| panic!("{name}: {e}"));
        let claims: StudyClaims = toml::from_str(claims).unwrap_or_else(|e| panic!("{name}: {e}"));
        let points = study.experiments.iter().flat_map(|(_, experiment)| &experiment.points);
        let of_others = |point: &Point| views[1..].iter().any(|view| point.label.ends_with(&view.suffix));
        let planned: Vec<Cell> = points.filter(|point| !of_others(point)).map(Cell::from).collect();
        let findings = claims.claims.iter().filter(|claim| claim.kind == ClaimKind::Finding);
        findings.for_each(|claim| test(claim, &views, &planned));
    }
}

/// Returns whether none of the claim's checks can be decided in this world.
fn is_not_here(claim: &Claim) -> bool {
    claim.checks.iter().all(|check| matches!(check, Check::NotHere(_)))
}

#[test]
fn each_finding_fails_in_its_false_world() {
    let (mut seen, mut cache) = (0, RepetitionCache::default());
    each_finding(|claim, views, planned| {
        let worlds = FALSE_WORLDS.iter().filter(|(id, _)| *id == claim.id).map(|(_, world)| *world);
        for (index, world) in worlds.enumerate() {
            seen += 1;
            let data = dataset(planned, claim, world, &mut cache);
            let view = View { data: &data, stack: &views[0] };
            let findings: Vec<_> = claim.checks.iter().map(|check| check.evaluate(&view)).collect();
            let refuted = findings.iter().any(|finding| finding.holds == Some(false));
            assert!(refuted, "{}, world {index}: {findings:#?}", claim.id);
        }
    });
    assert_eq!(seen, FALSE_WORLDS.len(), "every false world belongs to a claim");
}

#[test]
fn each_finding_has_a_false_world() {
    each_finding(|claim, views, _| {
        let has_one = FALSE_WORLDS.iter().any(|(id, _)| *id == claim.id);
        assert!(has_one != is_not_here(claim), "{} needs a world in which it is false", claim.id);
        if is_not_here(claim) {
            let only = StudyClaims { claims: vec![claim.clone()], ..StudyClaims::default() };
            let judged = judge(&only, views, &[], &Dataset::default());
            assert_eq!(judged[0].verdict, Verdict::NotDecidable, "{}", claim.id);
        }
    });
}
