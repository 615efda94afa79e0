//! The origin of the results, with everything that is needed to repeat them.

use hol_lab::fidelity::Fidelity;
use hol_lab::{Host, Origin, Results};

/// The information that a reader needs to trust and repeat the results.
#[derive(Debug, Clone)]
pub struct Provenance {
    /// The program's version.
    pub version: String,
    /// The program and the files that it read.
    pub origin: Origin,
    /// The command line.
    pub command: String,
    /// The name of the world, such as `model`.
    pub world: String,
    /// The machine: processor, cores, operating system, compiler.
    pub host: String,
    /// The distinct seeds of the experiments.
    pub seeds: Vec<u64>,
    /// The digest over all runs.
    pub digest: String,
    /// Whether all planned runs are present.
    pub complete: bool,
    /// Whether runs can be repeated exactly, which is impossible with a real clock.
    pub repeatable: bool,
    /// Each experiment: name, title, number of points, number of transactions.
    pub experiments: Vec<(String, String, usize, u64)>,
    /// The label and specification of each transport.
    pub transports: Vec<(String, String)>,
    /// The number of transactions of all runs.
    pub transactions: u64,
    /// The number of packets that hosts sent.
    pub packets: u64,
    /// The wall-clock time of all runs in seconds, summed over all cores.
    pub wall_s: f64,
    /// What is known about differences between the model and Linux at these points; `None` for other worlds.
    pub fidelity: Option<Fidelity>,
}

impl Provenance {
    /// Collects the provenance from a result directory.
    pub fn of(results: &Results) -> Self {
        let manifest = &results.manifest;
        let mut seeds: Vec<u64> = results.points.iter().map(|result| result.point.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let mut transports: Vec<(String, String)> = Vec::new();
        for point in results.points.iter().map(|result| &result.point) {
            if !transports.iter().any(|(label, _)| *label == point.label) {
                transports.push((point.label.clone(), point.transport.to_string()));
            }
        }
        Self {
            version: manifest.version.clone(),
            origin: manifest.origin.clone(),
            command: manifest.command.join(" "),
            world: manifest.world.clone(),
            host: host(&manifest.host),
            seeds,
            digest: results.digest().to_string(),
            complete: results.is_complete(),
            repeatable: hol_lab::check_repeatable(results).is_ok(),
            experiments: experiments(results),
            transports,
            transactions: results.points.iter().flat_map(|p| &p.runs).map(|run| run.summary.offered).sum(),
            packets: results.points.iter().map(|point| point.packets()).sum(),
            wall_s: results.points.iter().map(|point| point.wall_s()).sum(),
            fidelity: Fidelity::of(results.points.iter().map(|result| &result.point)),
        }
    }
}

fn host(host: &Host) -> String {
    let Host { cpu, cores, os, rustc, .. } = host;
    format!("{cpu}, {cores} cores; {os}; {rustc}")
}

fn experiments(results: &Results) -> Vec<(String, String, usize, u64)> {
    let of = |(name, title): &(String, String)| {
        let points = results.points.iter().filter(|result| result.point.experiment == *name);
        let runs = points.clone().flat_map(|result| &result.runs);
        (name.clone(), title.clone(), points.count(), runs.map(|run| run.summary.offered).sum())
    };
    results.manifest.experiments.iter().map(of).collect()
}
