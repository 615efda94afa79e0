//! `hol get`: the results of an experiment of a server.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use serde::Deserialize;

use super::server::{At, Server};
use crate::failure::Failure;
use crate::terminal::{grouped, say};

/// Fetch the results of an experiment from a server: a directory as `hol run` fills it.
#[derive(Debug, Args)]
pub struct Get {
    /// Its number
    id: i64,
    #[command(flatten)]
    at: At,
    /// Where to put them [default: results/ID]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Deserialize)]
struct FileLine {
    path: String,
}

impl Get {
    /// Fetches all files.
    pub fn run(&self) -> Result<(), Failure> {
        let server = self.at.server()?;
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from("results").join(self.id.to_string()));
        let files: Vec<FileLine> = server.read(&format!("/api/experiments/{}/files/", self.id))?;
        if files.is_empty() {
            return Err(Failure::Failed(format!("experiment {} has no results yet", self.id)));
        }
        // Whatever is there may be somebody's own results.
        if fs::read_dir(&out).is_ok_and(|mut entries| entries.next().is_some()) {
            let problem =
                format!("{}: has something in it; choose a new place with --out DIR", out.display());
            return Err(Failure::Usage(problem));
        }
        for file in &files {
            fetch(&server, self.id, &file.path, &out)?;
        }
        say(&format!("{} has {} files\n", out.display(), grouped(files.len() as u64)));
        Ok(())
    }
}

/// Fetches one file. The server says what it is called, so it must not lead out of the directory.
fn fetch(server: &Server, id: i64, path: &str, out: &Path) -> Result<(), Failure> {
    let relative = Path::new(path);
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(Failure::Failed(format!(
            "the server sent the file name {path:?}, which no result has; nothing was written"
        )));
    }
    let place = out.join(relative);
    let failed =
        |e: io::Error| Failure::Failed(format!("{}: {e}; choose another place with --out", place.display()));
    fs::create_dir_all(place.parent().unwrap_or(out)).map_err(failed)?;
    let answer = server.get(&format!("/api/experiments/{id}/files/{}", encoded(path)))?;
    let mut file = File::create(&place).map_err(failed)?;
    io::copy(&mut answer.into_body().into_reader(), &mut file).map(drop).map_err(failed)
}

/// RFC 3986, section 2.1
fn encoded(path: &str) -> String {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-._~/".contains(&octet);
    let encode = |octet| if plain(octet) { char::from(octet).to_string() } else { format!("%{octet:02X}") };
    path.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_encoded_octet_by_octet() {
        assert_eq!(encoded("failed/a b%é?.log"), "failed/a%20b%25%C3%A9%3F.log");
    }
}
