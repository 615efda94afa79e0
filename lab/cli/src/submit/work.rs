//! An experiment as jobs: what each runs, in the words of a shell.

use std::path::{Path, PathBuf};

/// What a cluster is to do, whichever it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Name of the experiment there.
    pub name: String,
    /// This program, where the nodes have it.
    pub program: String,
    /// The experiment file, and what the command line says otherwise.
    pub asked: Vec<String>,
    /// How many parts there are.
    pub of: usize,
    /// Those that are not done, from 1.
    pub left: Vec<usize>,
    /// Processors that each takes.
    pub jobs: usize,
    /// From where paths count.
    pub here: PathBuf,
    /// The result directory; whole.
    pub out: PathBuf,
    /// Whether who submits it stays until it is over.
    pub waits: bool,
}

/// A file that a cluster reads, or that tells it to.
pub type Script = (&'static str, String);

/// What hands the others over.
pub const SUBMIT: &str = "submit.sh";

impl Work {
    /// Where the directories of the parts go.
    pub fn parts(&self) -> PathBuf {
        parts_of(&self.out)
    }

    /// Where scripts and logs go.
    pub fn scripts(&self) -> PathBuf {
        self.parts().join("submit")
    }

    /// Does the part with the number that the shell's variable `n` has.
    pub fn part(&self) -> String {
        let asked: Vec<_> = self.asked.iter().map(|word| quote(word)).collect();
        let (program, asked, parts) = (quote(&self.program), asked.join(" "), quote_path(&self.parts()));
        format!("{program} run {asked} --shard \"$n\"/{} --out {parts}/\"$n\" --jobs {}", self.of, self.jobs)
    }

    /// Joins what parts there are.
    pub fn merge(&self) -> String {
        let (program, parts, out) = (quote(&self.program), quote_path(&self.parts()), quote_path(&self.out));
        format!("{program} merge {parts} --out {out}")
    }

    /// What is left, as in `3,7-9`.
    pub fn ranges(&self) -> String {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for &number in &self.left {
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

/// Beside what they are joined to.
pub fn parts_of(out: &Path) -> PathBuf {
    let mut parts = out.as_os_str().to_owned();
    parts.push("-parts");
    parts.into()
}

/// A word as a shell reads it.
pub fn quote(word: &str) -> String {
    shlex::try_quote(word).expect("an argument has no NUL").into_owned()
}

/// A path as a shell reads it.
pub fn quote_path(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Parts 3 and 7 to 9 of 9 are left, and a path has a space.
    pub fn work() -> Work {
        Work {
            name: "hello".into(),
            program: "/opt/hol".into(),
            asked: vec!["my hello.toml".into(), "--set".into(), "network.loss=1%".into()],
            of: 9,
            left: vec![3, 7, 8, 9],
            jobs: 2,
            here: "/home/me".into(),
            out: "/home/me/results/my hello".into(),
            waits: false,
        }
    }

    #[test]
    fn what_a_job_runs_is_quoted() {
        assert_eq!(
            work().part(),
            "/opt/hol run 'my hello.toml' --set 'network.loss=1%' --shard \"$n\"/9 \
             --out '/home/me/results/my hello-parts'/\"$n\" --jobs 2"
        );
        assert_eq!(
            work().merge(),
            "/opt/hol merge '/home/me/results/my hello-parts' --out '/home/me/results/my hello'"
        );
    }

    #[test]
    fn what_is_left_is_written_in_ranges() {
        assert_eq!(work().ranges(), "3,7-9");
        assert_eq!(Work { left: (1..=40).collect(), ..work() }.ranges(), "1-40");
        assert_eq!(Work { left: vec![], ..work() }.ranges(), "");
    }
}
