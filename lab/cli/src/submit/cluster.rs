//! Submits an experiment to a cluster: divides it into parts, and writes scripts for the parts that have no
//! results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use hol_lab::{Experiment, Plan, Results, Shard};

use super::cluster_job::{ClusterJob, SUBMIT_SCRIPT, Script, parts_of, quote_path};
use super::executor::Executor;
use super::{hyperqueue, kubernetes, slurm};
use crate::failure::Failure;
use crate::number::parse_positive_number;
use crate::run::ExperimentArgs;
use crate::terminal::print;

/// Default duration of a part, in s, approximately. Parts should not be short, because each of them waits in the queue.
const PART_SECONDS: f64 = 600.0;
/// Maximum number of parts, because clusters allow 1,000 jobs in an array.
const MAX_PARTS: usize = 1000;

#[derive(Debug, Args, Default, PartialEq, Eq)]
/// Options for an experiment on a cluster.
pub struct ClusterOptions {
    /// Number of parts [default: enough that each takes about ten minutes]
    #[arg(long, value_name = "N", value_parser = parse_positive_number)]
    shards: Option<usize>,
    /// Number of processors for each part [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_positive_number)]
    jobs: Option<usize>,
    /// Result directory; the parts are written to DIR-parts [default: results/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// For Kubernetes: container image with `hol` and a shell
    #[arg(long)]
    image: Option<String>,
    /// For Kubernetes: name of a PersistentVolumeClaim (ReadWriteMany) for the results
    #[arg(long, value_name = "CLAIM")]
    volume: Option<String>,
    /// Write the job scripts without submitting them
    #[arg(long)]
    dry_run: bool,
    /// Further options for sbatch, hq or kubectl, as in `-- --partition=long`
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

impl ClusterOptions {
    /// Submits the parts that have no results.
    pub fn submit(
        &self,
        to: &Executor,
        experiment_args: &ExperimentArgs,
        name: Option<&str>,
        waits: bool,
    ) -> Result<(), Failure> {
        let words = experiment_args.arguments()?;
        let experiment = experiment_args.experiment()?;
        let name = name.unwrap_or(&experiment.name).to_owned();
        let working_directory = std::env::current_dir().map_err(Failure::failed)?;
        let out =
            working_directory.join(self.out.clone().unwrap_or_else(|| Path::new("results").join(&name)));
        let jobs = self.jobs.unwrap_or(1);
        let part_count = self.divide(&out, &experiment, jobs)?;
        let program = std::env::current_exe().map_err(Failure::failed)?;
        let job = ClusterJob {
            name,
            program: program.to_string_lossy().into_owned(),
            arguments: words,
            part_count,
            missing_parts: missing_parts(&out, part_count),
            jobs,
            working_directory,
            out,
            waits,
        };
        let scripts = self.scripts(to, &job, experiment_args)?;
        let submit = write(&job, &scripts)?;
        if self.dry_run {
            print(&format!("`sh {}` submits {} parts\n", quote_path(&submit), job.missing_parts.len()));
            return Ok(());
        }
        print(&format!(
            "{} of {part_count} parts have no results yet; scripts and logs are in {}\n",
            job.missing_parts.len(),
            job.scripts().display()
        ));
        self.run_submission(to, &submit)
    }

    /// Returns the number of parts; an experiment that has begun keeps its number of parts.
    fn divide(&self, out: &Path, experiment: &Experiment, jobs: usize) -> Result<usize, Failure> {
        let existing_part_count = existing_part_count(out);
        match (existing_part_count, self.shards) {
            (Some(existing_part_count), Some(part_count)) if existing_part_count != part_count => {
                Err(Failure::Usage(format!(
                    "--shards {part_count}: {} already has {existing_part_count} parts; omit the option, or choose another --out",
                    parts_of(out).display()
                )))
            }
            (Some(part_count), _) | (None, Some(part_count)) => Ok(part_count),
            (None, None) => {
                let seconds = Plan::new([experiment]).estimate(1).min / jobs as f64;
                Ok(((seconds / PART_SECONDS).ceil() as usize).clamp(1, MAX_PARTS))
            }
        }
    }

    fn scripts(
        &self,
        to: &Executor,
        job: &ClusterJob,
        experiment_args: &ExperimentArgs,
    ) -> Result<Vec<Script>, Failure> {
        match (to, &self.image, &self.volume) {
            (Executor::Slurm, None, None) => Ok(slurm::scripts(job)),
            (Executor::HyperQueue, None, None) => Ok(hyperqueue::scripts(job)),
            (Executor::Kubernetes, Some(image), Some(volume)) => {
                Ok(kubernetes::scripts(job, kubernetes::PodTemplate { image, volume, text: &experiment_args.as_single_file()? }))
            }
            (Executor::Kubernetes, ..) => Err(Failure::Usage(
                "--to kubernetes: add --image IMAGE, an image with `hol` and a shell, and --volume CLAIM, a PersistentVolumeClaim \
                (ReadWriteMany)".into(),
            )),
            _ => Err(Failure::Usage("--image and --volume are for --to kubernetes only; omit them".into())),
        }
    }

    fn run_submission(&self, to: &Executor, submit: &Path) -> Result<(), Failure> {
        let tool = match to {
            Executor::HyperQueue => "hq",
            Executor::Kubernetes => "kubectl",
            _ => "sbatch",
        };
        let ended =
            Command::new("/bin/sh").arg(submit).args(&self.options).status().map_err(Failure::failed)?;
        match ended.code() {
            Some(0) => Ok(()),
            // A shell exits with 127 if a command does not exist.
            Some(127) => Err(Failure::Failed(format!(
                "--to {to}: `{tool}` is not installed on this machine; run this command on the cluster, or `sh {}` there",
                quote_path(submit)
            ))),
            _ => Err(Failure::Failed(format!(
                "--to {to}: `{tool}` or a job failed; read the logs beside the script, then run `sh {}` to try again",
                quote_path(submit)
            ))),
        }
    }
}

/// Returns the number of parts of an experiment that has begun; `None` if it has not.
fn existing_part_count(out: &Path) -> Option<usize> {
    let parts = fs::read_dir(parts_of(out)).ok()?.flatten();
    parts.filter_map(|part| Results::load(&part.path()).ok()?.manifest.shard).map(Shard::part_count).next()
}

/// Returns the numbers of the parts without results.
fn missing_parts(out: &Path, part_count: usize) -> Vec<usize> {
    let is_done = |number: &usize| {
        Results::load(&parts_of(out).join(number.to_string())).is_ok_and(|results| results.is_complete())
    };
    (1..=part_count).filter(|number| !is_done(number)).collect()
}

/// Writes the scripts; returns the path of the script that submits the others.
fn write(job: &ClusterJob, scripts: &[Script]) -> Result<PathBuf, Failure> {
    let dir = job.scripts();
    let failed = |path: &Path, e| Failure::Failed(format!("{}: {e}", path.display()));
    fs::create_dir_all(&dir).map_err(|e| failed(&dir, e))?;
    for (name, text) in scripts {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|e| failed(&path, e))?;
    }
    Ok(dir.join(SUBMIT_SCRIPT))
}
