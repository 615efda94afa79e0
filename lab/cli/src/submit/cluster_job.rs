//! An experiment as the jobs of a cluster: the shell command of each.

use std::path::{Path, PathBuf};

/// An experiment for a cluster, divided into parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterJob {
    /// The name of the job.
    pub name: String,
    /// The path of `hol` on the nodes of the cluster.
    pub program: String,
    /// The experiment file and the options of `hol run`.
    pub arguments: Vec<String>,
    /// Number of parts.
    pub part_count: usize,
    /// Numbers of the parts without results, from 1.
    pub missing_parts: Vec<usize>,
    /// Number of processors for each part.
    pub jobs: usize,
    /// The directory to which relative paths refer.
    pub working_directory: PathBuf,
    /// The result directory; an absolute path.
    pub out: PathBuf,
    /// Whether `hol submit` waits for the end of the experiment.
    pub waits: bool,
}

/// Name and content of a script or job description.
pub type Script = (&'static str, String);

/// The name of the script that submits the other scripts.
pub const SUBMIT_SCRIPT: &str = "submit.sh";

impl ClusterJob {
    /// Returns the directory with the results of all parts.
    pub fn parts(&self) -> PathBuf {
        parts_of(&self.out)
    }

    /// Returns the directory for scripts and logs.
    pub fn scripts(&self) -> PathBuf {
        self.parts().join("submit")
    }

    /// Returns the command that runs the part with the number in the shell variable `n`.
    pub fn part_command(&self) -> String {
        let arguments: Vec<_> = self.arguments.iter().map(|word| quote(word)).collect();
        let (program, arguments, parts) =
            (quote(&self.program), arguments.join(" "), quote_path(&self.parts()));
        format!(
            "{program} run {arguments} --shard \"$n\"/{} --out {parts}/\"$n\" --jobs {}",
            self.part_count, self.jobs
        )
    }

    /// Returns the command that merges the parts.
    pub fn merge_command(&self) -> String {
        let (program, parts, out) = (quote(&self.program), quote_path(&self.parts()), quote_path(&self.out));
        format!("{program} merge {parts} --out {out}")
    }

    /// Returns the missing parts as ranges, as in `3,7-9`.
    pub fn missing_part_ranges(&self) -> String {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for &number in &self.missing_parts {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        let range = |(first, last): &(usize, usize)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        };
        ranges.iter().map(range).collect::<Vec<_>>().join(",")
    }
}

/// Returns the directory for the results of the parts, which belongs to the result directory `out`.
pub fn parts_of(out: &Path) -> PathBuf {
    let mut parts = out.as_os_str().to_owned();
    parts.push("-parts");
    parts.into()
}

/// Quotes a word for a shell.
pub fn quote(word: &str) -> String {
    shlex::try_quote(word).expect("an argument has no NUL").into_owned()
}

/// Quotes a path for a shell.
pub fn quote_path(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Returns a job of nine parts, of which parts 3 and 7 to 9 are missing. A path contains a space.
    pub fn example_job() -> ClusterJob {
        ClusterJob {
            name: "hello".into(),
            program: "/opt/hol".into(),
            arguments: vec!["my hello.toml".into(), "--set".into(), "network.loss=1%".into()],
            part_count: 9,
            missing_parts: vec![3, 7, 8, 9],
            jobs: 2,
            working_directory: "/home/me".into(),
            out: "/home/me/results/my hello".into(),
            waits: false,
        }
    }

    #[test]
    fn arguments_of_a_job_are_quoted() {
        assert_eq!(
            example_job().part_command(),
            "/opt/hol run 'my hello.toml' --set 'network.loss=1%' --shard \"$n\"/9 \
             --out '/home/me/results/my hello-parts'/\"$n\" --jobs 2"
        );
        assert_eq!(
            example_job().merge_command(),
            "/opt/hol merge '/home/me/results/my hello-parts' --out '/home/me/results/my hello'"
        );
    }

    #[test]
    fn missing_parts_are_written_as_ranges() {
        assert_eq!(example_job().missing_part_ranges(), "3,7-9");
        assert_eq!(
            ClusterJob { missing_parts: (1..=40).collect(), ..example_job() }.missing_part_ranges(),
            "1-40"
        );
        assert_eq!(ClusterJob { missing_parts: vec![], ..example_job() }.missing_part_ranges(), "");
    }
}
