//! `hol bench`: measures the speed of this program over whole runs.

use std::hint::black_box;

use clap::Args;
use hol_lab::{Experiment, Point, Source, Stopwatch};
use hol_measure::Summarizer;
use hol_model::run_with_observer;
use serde::Serialize;

use crate::failure::Failure;
use crate::point_row::json;
use crate::terminal::{group_digits, print, table};

const BENCH_EXPERIMENT: &str = "
    transports = ['sctp:streams=8', 'quic:streams=8', 'tcp']
    messages = 80000
    repetitions = 1
    [network]
    loss = '1%'
";

/// Measure the speed of hol itself: 80,000 SIMCO transactions at 1 % loss on one core.
///
/// The measured time includes both endpoints, the network and the record of each transaction.
/// `scripts/bench-against-ns2` also measures ns-2, if it is installed.
#[derive(Debug, Args)]
pub struct Bench {
    /// Number of measurements of each benchmark
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    times: u32,
    /// Print a JSON object for each benchmark, one per line
    #[arg(long)]
    json: bool,
}

/// The speed of hol with one transport.
#[derive(Debug, Serialize)]
struct Speed {
    transport: String,
    transactions: u64,
    times: u32,
    min_us_per_transaction: f64,
    median_us_per_transaction: f64,
    packets_per_second: f64,
    /// Peak resident memory of the process so far; null if the system does not report it.
    peak_memory_mb: Option<f64>,
}

impl Bench {
    /// Measures the speed with each transport and prints it.
    pub fn run(&self) -> Result<(), Failure> {
        let experiment = Experiment::parse("bench", &Source::new("bench", BENCH_EXPERIMENT))?;
        let speeds = experiment.points.iter().map(|point| self.measure(point));
        let speeds: Vec<Speed> = speeds.collect::<Result<_, _>>()?;
        if self.json {
            speeds.iter().for_each(|speed| print(&json(speed)));
        } else {
            print(&page(&speeds));
        }
        Ok(())
    }

    fn measure(&self, point: &Point) -> Result<Speed, Failure> {
        let mut seconds = Vec::new();
        let mut packets = 0;
        for _ in 0..self.times {
            let watch = Stopwatch::start();
            let (scenario, seed, mut summarizer) =
                (point.scenario(0), point.seed_of(0), Summarizer::default());
            let summary =
                run_with_observer(&scenario, seed, None, &mut summarizer).map_err(Failure::failed)?;
            black_box(summarizer.finish());
            seconds.push(watch.seconds());
            packets = summary.packets;
        }
        seconds.sort_by(f64::total_cmp);
        let per_transaction = |seconds: f64| seconds * 1e6 / point.messages as f64;
        let (min, median) = (seconds[0], seconds[seconds.len() / 2]);
        Ok(Speed {
            transport: point.label.clone(),
            transactions: point.messages,
            times: self.times,
            min_us_per_transaction: per_transaction(min),
            median_us_per_transaction: per_transaction(median),
            packets_per_second: packets as f64 / min,
            peak_memory_mb: peak_memory_mb(),
        })
    }
}

fn page(speeds: &[Speed]) -> String {
    let heads = ["transport", "min µs", "median µs", "packets/s", "memory"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(speeds.iter().map(|speed| {
        vec![
            speed.transport.clone(),
            format!("{:.2}", speed.min_us_per_transaction),
            format!("{:.2}", speed.median_us_per_transaction),
            group_digits(speed.packets_per_second as u64),
            speed.peak_memory_mb.map_or("-".to_owned(), |mb| format!("{mb:.0} MB")),
        ]
    }));
    let first = &speeds[0];
    let what = "a transaction includes request and reply at both endpoints, the network and the record";
    format!(
        "{}\n{} transactions, measured {} times; {what}\n",
        table(&rows),
        group_digits(first.transactions),
        first.times
    )
}

/// Returns the peak resident memory of the process in MB (`VmHWM`, proc(5)).
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0 / 1e6)
}
