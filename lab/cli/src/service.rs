//! The flags that describe the server's program, the files of both hosts, and the root file system of programs.

use clap::Args;
use hol_lab::{InputError, Source};
use toml::{Table, Value};

use crate::failure::Failure;

/// The program on the server, and the files of both hosts.
#[derive(Debug, Args)]
pub struct ServiceArgs {
    /// Command line of the server
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,
    /// Wait until the server listens on this port
    #[arg(long, value_name = "PORT", requires = "server", conflicts_with = "prints")]
    listens: Option<u16>,
    /// Wait until the server prints this text
    #[arg(long, value_name = "TEXT", requires = "server")]
    prints: Option<String>,
    /// Put a file on both hosts, as in /srv/page=page.html, or a file of a given size, as in /srv/page=100kB
    #[arg(long = "file", value_name = "PATH=FILE")]
    files: Vec<String>,
    /// Root file system of the programs: host (this machine's files), a directory, or a tar archive of a directory or
    /// container [default: host]
    #[arg(long, value_name = "ROOT")]
    root: Option<String>,
}

impl ServiceArgs {
    /// Returns whether --server or --file was given.
    pub const fn is_given(&self) -> bool {
        self.server.is_some() || !self.files.is_empty()
    }

    /// Returns the programs as TOML: the server's program, if there is one, and the client's. `client`
    /// contains keys of the client's `[[program]]`.
    pub fn programs(&self, client: Table) -> Result<Vec<Value>, Failure> {
        let files = self.files.iter().map(|file| parse_file(file)).collect::<Result<Table, Failure>>()?;
        let program = |node: &str, keys: Table| {
            let mut table = keys;
            table.insert("node".to_owned(), node.into());
            table.insert("files".to_owned(), files.clone().into());
            Value::Table(table)
        };
        let ready = match (self.listens, &self.prints) {
            (Some(port), _) => ("listens", Value::from(i64::from(port))),
            (None, Some(text)) => ("prints", text.clone().into()),
            (None, None) => ("after", "1s".into()),
        };
        let ready = Value::Table(table([ready]));
        let server = self.server.iter().map(|line| {
            program("server", table([("command", line.clone().into()), ("ready", ready.clone())]))
        });
        Ok(server.chain([program("client", client)]).collect())
    }

    /// Adds the root file system of programs to `source`, if --root was given.
    pub fn apply(&self, source: &mut Source) -> Result<(), InputError> {
        self.root.iter().try_for_each(|root| source.set("--root", "root", &format!("{root:?}")))
    }
}

/// Returns a TOML table with these entries.
pub fn table<const N: usize>(entries: [(&str, Value); N]) -> Table {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Parses `/srv/page=100kB`: a path, and the content or size of the file.
fn parse_file(file: &str) -> Result<(String, Value), Failure> {
    let wrong = || {
        Failure::Usage(format!(
            "--file {file}: write PATH=FILE, as in /srv/page=page.html, or PATH=SIZE, as in /srv/page=100kB"
        ))
    };
    let (path, content) = file.split_once('=').ok_or_else(wrong)?;
    let kind = if content.parse::<hol_base::ByteCount>().is_ok() { "size" } else { "from" };
    let content = Table::from_iter([(kind.to_owned(), Value::from(content))]);
    Ok((path.to_owned(), content.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_option_takes_a_size_or_a_file_of_this_machine() {
        let size = parse_file("/srv/f=100kB").unwrap().1;
        assert_eq!(size["size"].as_str(), Some("100kB"));
        assert_eq!(parse_file("/srv/f=page.html").unwrap().1["from"].as_str(), Some("page.html"));
        assert!(parse_file("/srv/f").unwrap_err().to_string().contains("PATH=FILE"));
    }
}
