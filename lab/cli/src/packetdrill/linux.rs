//! Plays scripts with packetdrill itself on Linux in virtual time: each script over each version of IP, each time in a fresh guest.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hol_lab::{Archive, Experiment, PointResult, RunResults, Source};
use hol_scenario::ProgramResult;
use toml::{Table, Value};

use crate::compare::run_experiment;
use crate::executable;
use crate::failure::Failure;
use crate::service::table;

/// The versions of IP, each with the options that packetdrill needs for it, as in `ksft_runner.sh` of Linux and
/// `run_all.py` of packetdrill.
const IP_VERSIONS: [(&str, &str); 3] = [
    (
        "ipv4",
        "--local_ip=192.168.0.1 --gateway_ip=192.168.0.1 --netmask_ip=255.255.0.0 --remote_ip=192.0.2.1 \
        -D TFO_COOKIE=3021b9d889017eeb -D TFO_COOKIE_ZERO=b7c12350a90dc8f5 -D CODE=host_unreachable \
        -D CMSG_LEVEL_IP=SOL_IP -D CMSG_TYPE_RECVERR=IP_RECVERR",
    ),
    (
        "ipv4-mapped-ipv6",
        "--local_ip=192.168.0.1 --gateway_ip=192.168.0.1 --netmask_ip=255.255.0.0 --remote_ip=192.0.2.1 \
        -D TFO_COOKIE=3021b9d889017eeb -D TFO_COOKIE_ZERO=b7c12350a90dc8f5 -D CODE=host_unreachable \
        -D CMSG_LEVEL_IP=SOL_IPV6 -D CMSG_TYPE_RECVERR=IPV6_RECVERR",
    ),
    (
        "ipv6",
        "--mtu=1520 --local_ip=fd3d:0a0b:17d6::1 --gateway_ip=fd3d:0a0b:17d6:8888::1 --remote_ip=fd3d:fa7b:d17d::1 \
        -D TFO_COOKIE=c1d1e9742a47a9bc -D TFO_COOKIE_ZERO=82af1a8f9a205c34 \
        -D CMSG_LEVEL_IP=SOL_IPV6 -D CMSG_TYPE_RECVERR=IPV6_RECVERR",
    ),
];

/// Programs that packetdrill and the scripts of Linux start.
const TOOLS: [&str; 8] = ["bash", "ip", "tc", "sysctl", "nstat", "ifconfig", "ethtool", "/usr/bin/python3"];

/// Runs packetdrill in the directory of the script, because scripts name other files relative to it.
const LINE: &str = r#"cd "${SCRIPT%/*}" && exec "$0" $OPTIONS "${SCRIPT##*/}""#;

/// The directory on the node that contains the scripts.
const NODE_DIRECTORY: &str = "/scripts";

/// The settings with which scripts are played on Linux.
pub(super) struct LinuxPlayer<'a> {
    pub(super) world: &'a str,
    /// Path or name of the program packetdrill.
    pub(super) program: &'a Path,
    /// Number of runs of each script over each version of IP.
    pub(super) repetitions: usize,
    pub(super) jobs: Option<usize>,
    /// The user's own options of packetdrill.
    pub(super) options: &'a [String],
    /// Whether no progress is shown.
    pub(super) is_quiet: bool,
}

/// The results of all runs of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ScriptRuns {
    pub(super) runs: usize,
    pub(super) failed: usize,
    /// The line and the problem of the first failed run.
    pub(super) first: Option<(usize, String)>,
}

impl LinuxPlayer<'_> {
    /// Plays the scripts below each path, and returns the runs of each script in the same order.
    pub(super) fn play(&self, paths: &[(&Path, Vec<PathBuf>)]) -> Result<Vec<Vec<ScriptRuns>>, Failure> {
        let mut folders = Vec::new();
        let mut scripts = Vec::new();
        for (path, found) in paths {
            let folder = fs::canonicalize(folder(path)).map_err(Failure::failed)?;
            let number = folders.iter().position(|known| *known == folder).unwrap_or_else(|| {
                folders.push(folder);
                folders.len() - 1
            });
            scripts.push(
                found.iter().map(|script| (script, node_path(number, path, script))).collect::<Vec<_>>(),
            );
        }
        let experiment = self.experiment(&folders, &scripts.concat())?;
        let (results, finished) = run_experiment(&experiment, &Archive::default(), self.jobs, self.is_quiet)?;
        let mut of_scripts: BTreeMap<&str, ScriptRuns> = BTreeMap::new();
        for result in &results {
            let name = &result.point.programs[0].env["SCRIPT"];
            of_scripts.entry(name).or_default().add(result, &finished);
        }
        let runs =
            |(_, name): &(&PathBuf, String)| of_scripts.get(name.as_str()).cloned().unwrap_or_default();
        Ok(scripts.iter().map(|scripts| scripts.iter().map(runs).collect()).collect())
    }

    /// Returns an experiment with a point for each script and version of IP. `scripts` contains each script with
    /// its path on the node.
    fn experiment(&self, folders: &[PathBuf], scripts: &[(&PathBuf, String)]) -> Result<Experiment, Failure> {
        let program = self.find_program()?;
        let mut files = Table::new();
        for (number, folder) in folders.iter().enumerate() {
            let from = table([("from", folder.display().to_string().into())]);
            files.insert(format!("{NODE_DIRECTORY}/{number}"), from.into());
        }
        let (mut names, mut options) = (Vec::new(), Vec::new());
        // A script may be named twice, by itself and by its folder.
        let scripts: BTreeMap<&str, &PathBuf> =
            scripts.iter().map(|(script, name)| (name.as_str(), *script)).collect();
        for (name, script) in scripts {
            for version in ip_versions(self.options, script, &fs::read_to_string(script).unwrap_or_default())
            {
                names.push(Value::from(name));
                options.push(Value::from(self.options_for(version)));
            }
        }
        let mut command: Vec<String> = ["sh", "-c", LINE].map(str::to_owned).to_vec();
        command.push(program.display().to_string());
        command.extend(TOOLS.map(str::to_owned));
        let program =
            table([("node", "client".into()), ("command", command.into()), ("files", files.into())]);
        let zip = Table::from_iter([
            ("program.0.env.SCRIPT".to_owned(), Value::Array(names)),
            ("program.0.env.OPTIONS".to_owned(), Value::Array(options)),
        ]);
        let file = table([
            ("world", self.world.into()),
            ("transports", vec!["tcp"].into()),
            ("repetitions", Value::Integer(self.repetitions as i64)),
            // The nodes of an IPv4 network have no IPv6.
            ("network", table([("ip", "v6".into())]).into()),
            ("program", vec![Value::from(program)].into()),
            ("zip", zip.into()),
        ]);
        Ok(Experiment::parse("packetdrill", &Source::new("packetdrill", file.to_string()))?)
    }

    /// Returns the path of packetdrill: the given path if it contains a slash, otherwise the program of this name in
    /// `PATH`.
    fn find_program(&self) -> Result<PathBuf, Failure> {
        let given = self.program.to_string_lossy();
        let found =
            if given.contains('/') { fs::canonicalize(self.program).ok() } else { executable::find(&given) };
        found.ok_or_else(|| {
            Failure::Usage(format!(
                "{given}: program not found; build packetdrill from https://github.com/google/packetdrill, then add its directory to PATH \
                or give its path with --program"
            ))
        })
    }

    /// Returns packetdrill's options for a version of IP. The user's options come last, so that they override the
    /// others.
    fn options_for(&self, (name, options): (&str, &str)) -> String {
        [&[format!("--ip_version={name} {options}")], self.options].concat().join(" ")
    }
}

impl ScriptRuns {
    /// Adds the runs of the script over one version of IP.
    fn add(&mut self, result: &PointResult, finished: &RunResults) {
        let name = &result.point.programs[0].env["OPTIONS"];
        let version = name.split(['=', ' ']).nth(1).unwrap_or_default();
        let mut failures = Vec::new();
        for run in &result.runs {
            let program = run.world_report.as_ref().and_then(|report| report.programs.first());
            failures.extend(program.filter(|program| program.status != "exit 0").map(first_error));
        }
        self.runs += result.runs.len();
        let lost = finished.failed().filter(|run| run.key.point == result.point.id);
        for run in lost {
            self.runs += 1;
            failures.push((0, run.failed.clone()));
        }
        self.failed += failures.len();
        if let (None, Some((line, problem))) = (&self.first, failures.into_iter().next()) {
            self.first = Some((line, format!("{version}: {problem}")));
        }
    }
}

/// Returns the line of the script that failed, and packetdrill's message. If there is no such message, returns line 0
/// and the exit status.
fn first_error(result: &ProgramResult) -> (usize, String) {
    let lines: Vec<&str> = result.stderr.lines().collect();
    let place = |line: &&str| {
        let (_, rest) = line.split_once(".pkt:")?;
        let (number, problem) = rest.split_once(": ")?;
        Some((number.parse().ok()?, problem.to_owned()))
    };
    let found = lines.iter().enumerate().find_map(|(index, line)| Some((index, place(line)?)));
    match found {
        Some((index, (number, problem))) => {
            (number, [&[problem.as_str()], &lines[index + 1..]].concat().join("\n"))
        }
        None => (0, format!("{}: {}", result.status, lines.last().unwrap_or(&"no output"))),
    }
}

/// Returns the versions of IP over which a script runs: all, unless packetdrill's `options` or the `text` of the script
/// set one, or the `name` of the script ends in `v4` or `v6`.
fn ip_versions(options: &[String], name: &Path, text: &str) -> Vec<(&'static str, &'static str)> {
    let lines = options.iter().map(String::as_str).chain(text.lines());
    let mut set = lines.filter_map(|line| line.strip_prefix("--ip_version=")?.split_whitespace().next());
    let set = set.next();
    let name = name.to_string_lossy();
    let is_wanted = |version: &str| match set {
        Some(set) => set == version,
        None if name.ends_with("v4.pkt") => version != "ipv6",
        None if name.ends_with("v6.pkt") => version == "ipv6",
        None => true,
    };
    IP_VERSIONS.into_iter().filter(|(version, _)| is_wanted(version)).collect()
}

/// Returns the directory to copy to the node for a path that the user gave. For a script it is the directory of the
/// script, because scripts name files next to them.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if path.is_file() && parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) if path.is_file() => parent,
        _ => path,
    }
}

/// Returns the path of a script on the node.
fn node_path(number: usize, path: &Path, script: &Path) -> String {
    let inside = script.strip_prefix(folder(path)).unwrap_or(script);
    format!("{NODE_DIRECTORY}/{number}/{}", inside.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_runs_over_all_versions_of_ip_unless_it_names_one() {
        let names = |options: &[&str], name, text| {
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            ip_versions(&options, Path::new(name), text)
                .into_iter()
                .map(|(version, _)| version)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&[], "a.pkt", "0 socket(...) = 3"), ["ipv4", "ipv4-mapped-ipv6", "ipv6"]);
        assert_eq!(names(&[], "a.pkt", "--ip_version=ipv6\n0 socket(...) = 3"), ["ipv6"]);
        assert_eq!(names(&["--ip_version=ipv4"], "a.pkt", ""), ["ipv4"]);
        assert_eq!(names(&[], "a-v4.pkt", ""), ["ipv4", "ipv4-mapped-ipv6"]);
    }

    #[test]
    fn first_error_is_the_message_of_packetdrill() {
        let of = |stderr: &str| {
            let (status, stderr) = ("exit 1".to_owned(), stderr.to_owned());
            first_error(&ProgramResult { status, stderr, ..ProgramResult::default() })
        };
        let message =
            "sysctl: no such key\na.pkt:30: error handling packet: timing error\nscript packet: 0.1 .\n";
        assert_eq!(of(message), (30, "error handling packet: timing error\nscript packet: 0.1 .".to_owned()));
        assert_eq!(
            of("open tun device: No such file"),
            (0, "exit 1: open tun device: No such file".to_owned())
        );
    }

    #[test]
    fn scripts_keep_their_place_below_the_folder() {
        let place = |path, script| node_path(1, Path::new(path), Path::new(script));
        assert_eq!(place("suite", "suite/tcp/a.pkt"), "/scripts/1/tcp/a.pkt");
    }
}
