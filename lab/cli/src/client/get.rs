//! `hol get`: fetches the results of an experiment from a server.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Component, Path, PathBuf};

use clap::Args;
use hol_base::percent_encoded;
use serde::Deserialize;
use ureq::http::StatusCode;

use super::server::{ServerArgs, ServerClient};
use crate::failure::Failure;
use crate::terminal::{group_digits, print};

/// File name of the report.
const REPORT_FILE: &str = "report.html";

/// Maximum number of octets that are read from the connection at once.
const BUFFER_SIZE: usize = 64 << 10;

/// Maximum number of consecutive connections that break without transferring an octet.
const MAX_BROKEN_CONNECTIONS: u32 = 5;

/// Fetch the results of an experiment from a server into a directory like those that `hol run` writes.
#[derive(Debug, Args)]
pub struct Get {
    /// Number of the experiment
    id: i64,
    #[command(flatten)]
    server_args: ServerArgs,
    /// Empty or new directory for the results [default: results/ID]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A file in the server's list of result files.
#[derive(Deserialize)]
struct FileEntry {
    path: String,
}

impl Get {
    /// Fetches every file of the results into the output directory.
    pub fn run(&self) -> Result<(), Failure> {
        let server = self.server_args.server()?;
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from("results").join(self.id.to_string()));
        let files: Vec<FileEntry> = server.get_json(&format!("/api/experiments/{}/files/", self.id))?;
        if files.is_empty() {
            return Err(Failure::Failed(format!(
                "experiment {} has no results yet; `hol watch` shows its progress",
                self.id
            )));
        }
        // Files in the directory may be other results of the user.
        if fs::read_dir(&out).is_ok_and(|mut entries| entries.next().is_some()) {
            let problem =
                format!("{}: the directory is not empty; choose another one with --out DIR", out.display());
            return Err(Failure::Usage(problem));
        }
        let whole = |path: &str| format!("/api/experiments/{}/files/{}", self.id, percent_encoded(path));
        let mut count = 0;
        for file in files.iter().filter(|file| file.path != REPORT_FILE) {
            count += 1;
            Download::new(&out, &file.path)?.run(&server, &whole(&file.path))?;
        }
        // The server draws the report again if results are newer than its page.
        let report = format!("/api/experiments/{}/report", self.id);
        if server.get_if_exists(&report)?.is_some() {
            count += 1;
            Download::new(&out, REPORT_FILE)?.run(&server, &report)?;
        }
        print(&format!("{} now contains {} files\n", out.display(), group_digits(count)));
        Ok(())
    }
}

/// A download that resumes after the connection breaks.
struct Download {
    place: PathBuf,
    file: File,
    /// Octets downloaded so far.
    octets: u64,
    /// The entity tag (ETag) of the version of the file to which the downloaded octets belong.
    entity_tag: Option<String>,
}

impl Download {
    /// Creates the file `path` in `out`. The server chooses `path`, so a path that leads out of the directory is
    /// refused.
    fn new(out: &Path, path: &str) -> Result<Self, Failure> {
        let relative = Path::new(path);
        if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(Failure::Failed(format!(
                "the server sent the unexpected file name {path:?}; nothing was written"
            )));
        }
        let place = out.join(relative);
        let parent = fs::create_dir_all(place.parent().unwrap_or(out));
        let file = parent.and_then(|()| File::create(&place)).map_err(|e| unwritable(&place, &e))?;
        Ok(Self { place, file, octets: 0, entity_tag: None })
    }

    /// Downloads `path` from the server; resumes after the connection breaks.
    fn run(mut self, server: &ServerClient, path: &str) -> Result<(), Failure> {
        let mut tries = 0;
        loop {
            let before = self.octets;
            let Some(problem) = self.resume(server, path)? else { return Ok(()) };
            tries = if self.octets > before { 1 } else { tries + 1 };
            if tries == MAX_BROKEN_CONNECTIONS {
                let place = self.place.display();
                return Err(Failure::Failed(format!(
                    "{place}: the connection failed {MAX_BROKEN_CONNECTIONS} times in a row: {problem}; the download is \
                    incomplete: run the command again with a new --out directory"
                )));
            }
        }
    }

    /// Downloads the missing octets; returns the error with which the connection broke, if it did. RFC 9110, sections
    /// 13.1.5 and 14.2
    fn resume(&mut self, server: &ServerClient, path: &str) -> Result<Option<io::Error>, Failure> {
        let answer = match &self.entity_tag {
            Some(version) if self.octets > 0 => {
                server.get(path, &[("Range", &format!("bytes={}-", self.octets)), ("If-Range", version)])?
            }
            _ => server.get(path, &[])?,
        };
        if answer.status() != StatusCode::PARTIAL_CONTENT {
            // The server sends the whole file, because this is the first request or the file has changed. Octets of an
            // earlier version are discarded.
            self.octets = 0;
            self.entity_tag =
                answer.headers().get("etag").and_then(|version| Some(version.to_str().ok()?.to_owned()));
            let again = self.file.rewind().and_then(|()| self.file.set_len(0));
            again.map_err(|e| unwritable(&self.place, &e))?;
        }
        let mut body = answer.into_body().into_reader();
        let mut part = vec![0; BUFFER_SIZE];
        loop {
            match body.read(&mut part) {
                Ok(0) => return Ok(None),
                Ok(octets) => {
                    self.file.write_all(&part[..octets]).map_err(|e| unwritable(&self.place, &e))?;
                    self.octets += octets as u64;
                }
                Err(problem) => return Ok(Some(problem)),
            }
        }
    }
}

fn unwritable(place: &Path, problem: &io::Error) -> Failure {
    Failure::Failed(format!("{}: {problem}; choose another directory with --out DIR", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers one request after the other, and closes the connection after each; returns the requests.
    fn serve(answers: Vec<Vec<u8>>) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = std::thread::spawn(move || {
            let answer = |answer: Vec<u8>| {
                let (mut connection, _) = listener.accept().unwrap();
                let (mut request, mut octet) = (Vec::new(), [0]);
                while !request.ends_with(b"\r\n\r\n") {
                    connection.read_exact(&mut octet).unwrap();
                    request.push(octet[0]);
                }
                connection.write_all(&answer).unwrap();
                String::from_utf8(request).unwrap().to_ascii_lowercase()
            };
            answers.into_iter().map(answer).collect()
        });
        (url, serving)
    }

    fn answer(status: &str, headers: &str, content: &str) -> Vec<u8> {
        format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n\r\n{content}").into_bytes()
    }

    fn fetched(answers: Vec<Vec<u8>>) -> (Result<(), Failure>, String, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let (url, serving) = serve(answers);
        let server = super::super::Credentials::default().server(&url).unwrap();
        let result = Download::new(dir.path(), "sub/a.csv").unwrap().run(&server, "/file");
        (result, fs::read_to_string(dir.path().join("sub/a.csv")).unwrap(), serving.join().unwrap())
    }

    #[test]
    fn broken_download_is_resumed() {
        let (result, content, requests) = fetched(vec![
            answer("200 OK", "content-length: 9\r\netag: \"v1\"", "abc"),
            answer("206 Partial Content", "content-length: 6\r\ncontent-range: bytes 3-8/9", "de"),
            answer("206 Partial Content", "content-length: 4\r\ncontent-range: bytes 5-8/9", "fghi"),
        ]);
        assert!(result.is_ok());
        assert_eq!(content, "abcdefghi");
        assert!(!requests[0].contains("range:"), "{}", requests[0]);
        assert!(requests[1].contains("range: bytes=3-\r\n") && requests[1].contains("if-range: \"v1\""));
        assert!(requests[2].contains("range: bytes=5-\r\n"), "{}", requests[2]);
    }

    #[test]
    fn download_of_a_changed_file_starts_over() {
        let (result, content, _) = fetched(vec![
            answer("200 OK", "content-length: 9\r\netag: \"v1\"", "abcdef"),
            answer("200 OK", "content-length: 2\r\netag: \"v2\"", "xy"),
        ]);
        assert!(result.is_ok());
        assert_eq!(content, "xy");
    }

    #[test]
    fn download_gives_up_if_the_connection_always_breaks() {
        let broken = || answer("200 OK", "content-length: 9", "");
        let (result, _, requests) = fetched((0..MAX_BROKEN_CONNECTIONS).map(|_| broken()).collect());
        assert!(result.unwrap_err().to_string().contains("failed 5 times"));
        assert_eq!(requests.len(), 5);
    }
}
