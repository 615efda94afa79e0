//! The user's own programs, which run on nodes unmodified.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hol_base::{ByteCount, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::MetricReader;

/// A program on a node. With `ready` it is a service; otherwise the run lasts until it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Node of the program.
    pub node: String,
    /// The command to execute: a list of words, or a line for the node's `/bin/sh`.
    pub command: Command,
    /// Delay of the start: for a service from the start of the run, for other programs from when all services are ready.
    /// Default 0.
    #[serde(default)]
    pub start: Duration,
    /// Time of SIGTERM, counted like `start`. Default: for services, when all other programs have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// When the service is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Ready>,
    /// Working directory. Default /root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Environment variables besides `PATH`, `HOME` and `LANG`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Metrics from output or files, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, crate::metric::MetricTable>")]
    pub metrics: BTreeMap<String, MetricReader>,
    /// Files to add to the node, by absolute path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Content>,
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Command {
    /// `"curl -s http://server/page"`: interpreted by the node's `/bin/sh`.
    Line(String),
    /// `["curl", "-s", "http://server/page"]`: executed without a shell.
    Words(Vec<String>),
}

/// When a service counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ready {
    /// A socket on the node listens on this port.
    Listens(u16),
    /// The program has printed this text on stdout or stderr.
    Prints(String),
    /// The program started this long ago.
    After(Duration),
}

/// Content of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// A file with this text.
    Text(String),
    /// A copy of this file or directory of the host.
    From(PathBuf),
    /// The contents of this tar archive of the host.
    Tar(PathBuf),
    /// A file of this size with fixed content.
    Size(ByteCount),
}

/// The file system from which nodes take programs and the files that they need.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Root {
    /// This machine: the named programs, and the libraries and files that they need.
    #[default]
    Host,
    /// A directory, or an archive of one (`.tar`), which contains every file.
    Path(PathBuf),
}

impl From<String> for Root {
    fn from(text: String) -> Self {
        if text == "host" { Self::Host } else { Self::Path(text.into()) }
    }
}

impl From<Root> for String {
    fn from(root: Root) -> Self {
        match root {
            Root::Host => "host".to_owned(),
            Root::Path(path) => path.display().to_string(),
        }
    }
}

impl Command {
    /// Returns the program with its arguments, as `exec` takes them.
    pub fn argument_vector(&self) -> Vec<String> {
        match self {
            Self::Line(line) => ["/bin/sh", "-c", line].map(str::to_owned).to_vec(),
            Self::Words(words) => words.clone(),
        }
    }

    /// Returns the words that may name a program or a file.
    pub fn possible_file_names(&self) -> Vec<&str> {
        const WORD_SEPARATORS: [char; 14] =
            [';', '|', '&', '(', ')', '<', '>', '\'', '"', '`', '$', '=', ',', ':'];
        let is_between = |c: char| c.is_whitespace() || WORD_SEPARATORS.contains(&c);
        let parts = |text| str::split(text, is_between).filter(|part| !part.is_empty());
        match self {
            Self::Line(line) => parts(line).collect(),
            // A word may be a shell command.
            Self::Words(words) => {
                words.iter().flat_map(|word| std::iter::once(word.as_str()).chain(parts(word))).collect()
            }
        }
    }

    /// Returns the command as a shell line.
    pub fn shell_line(&self) -> String {
        match self {
            Self::Line(line) => line.clone(),
            Self::Words(words) => words.join(" "),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Line(line) => line.trim().is_empty(),
            Self::Words(words) => words.first().is_none_or(String::is_empty),
        }
    }
}

impl Program {
    /// Returns whether the run waits for the end of the program; otherwise the program is ended with the
    /// run.
    pub const fn is_awaited(&self) -> bool {
        self.ready.is_none()
    }

    /// Checks that the program does not contradict itself.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.command.is_empty() {
            return Err("`command` is empty; name a program");
        }
        let relative =
            |path: &&String| !path.starts_with('/') || path.contains("/../") || path.ends_with('/');
        if self.files.keys().any(|path| relative(&path)) {
            return Err("`files` need absolute paths on the node, as in \"/srv/page.html\"");
        }
        if !self.metrics.keys().all(|name| is_name(name)) {
            return Err("the name of a metric must consist of letters, digits, - and _, as in page-time");
        }
        let named = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
        if !self.env.keys().all(named) {
            return Err("the name of an `env` variable must not contain =");
        }
        if self.directory.as_ref().is_some_and(|directory| !directory.is_absolute()) {
            return Err("`directory` needs an absolute path on the node, as in \"/srv\"");
        }
        if self.stop.is_some_and(|stop| stop <= self.start) {
            return Err("`stop` must be later than `start`; raise `stop`, or lower `start`");
        }
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> Result<Program, String> {
        toml::from_str(toml).map_err(|e| e.to_string())
    }

    #[test]
    fn program_is_a_line_or_words_and_a_service_if_ready_is_set() {
        let curl = read("node = \"client\"\ncommand = \"curl -s http://server/\"").unwrap();
        assert_eq!(curl.command.argument_vector(), ["/bin/sh", "-c", "curl -s http://server/"]);
        assert!(curl.is_awaited());
        let nginx = read("node = \"server\"\ncommand = [\"nginx\"]\nready = { listens = 80 }").unwrap();
        assert_eq!((nginx.command.argument_vector(), nginx.is_awaited()), (vec!["nginx".to_owned()], false));
        assert_eq!(nginx.ready, Some(Ready::Listens(80)));
        let files = read("node = \"a\"\ncommand = \"x\"\nfiles.\"/srv/f\" = { size = \"10kB\" }").unwrap();
        assert_eq!(files.files["/srv/f"], Content::Size(ByteCount(10_000)));
    }

    #[test]
    fn invalid_programs_are_refused_with_a_remedy() {
        let problem = |more: &str| {
            read(&format!("node = \"a\"\n{more}")).and_then(|program| Ok(program.check()?)).unwrap_err()
        };
        assert!(problem("command = []").contains("name a program"));
        assert!(problem("command = \"x\"\nfiles.page = { text = \"\" }").contains("absolute path"));
        assert!(problem("command = \"x\"\nstart = \"2s\"\nstop = \"1s\"").contains("must be later"));
        assert!(problem("command = \"x\"\nstrat = \"2s\"").contains("unknown field `strat`"));
    }

    #[test]
    fn command_names_are_words_split_at_shell_operators() {
        let line = Command::Line("cd /srv && PATH=/x nginx -c 'a.conf' | tee log".into());
        let names = ["cd", "/srv", "PATH", "/x", "nginx", "-c", "a.conf", "tee", "log"];
        assert_eq!(
            (line.possible_file_names(), line.shell_line()),
            (names.to_vec(), "cd /srv && PATH=/x nginx -c 'a.conf' | tee log".into())
        );
        let words = Command::Words(vec!["sh".into(), "wget;ls".into()]);
        assert_eq!(
            (words.possible_file_names(), words.shell_line()),
            (vec!["sh", "sh", "wget;ls", "wget", "ls"], "sh wget;ls".into())
        );
    }

    #[test]
    fn names_of_metrics_and_variables_are_checked() {
        assert!(["page-time", "a_1"].into_iter().all(is_name));
        assert!(!["", "a b", "ü", "a.b"].into_iter().any(is_name));
        let problem = |more: &str| read(&format!("node = 'a'\ncommand = 'x'\n{more}")).unwrap().check();
        assert!(problem("env.\"A=B\" = '1'").unwrap_err().contains("must not contain ="));
        assert!(problem("env.\"\" = '1'").unwrap_err().contains("must not contain ="));
        assert!(problem("directory = 'srv'").unwrap_err().contains("absolute"));
        assert!(
            problem("files.\"/srv/../x\" = { text = '' }").is_err()
                && problem("files.\"/srv/\" = { text = '' }").is_err()
        );
        assert!(problem("metrics.\"a b\" = { regex = '(x)' }").unwrap_err().contains("the name of a metric"));
        assert_eq!(problem("env.A = '1'\ndirectory = '/srv'\nfiles.\"/srv/x\" = { text = '' }"), Ok(()));
    }

    #[test]
    fn root_round_trips() {
        for text in ["host", "root.tar"] {
            assert_eq!(String::from(Root::from(text.to_owned())), text);
        }
        assert_eq!(Root::from("host".to_owned()), Root::Host);
    }
}
