//! `hol share`: writes a report as one file.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Component, Path, PathBuf};

use clap::Args;

use crate::failure::Failure;
use crate::terminal::{note, print};

/// Maximum size of an embedded file, in octets. Some mail servers refuse mails of more than 10 MB.
const MAX_EMBEDDED_SIZE: u64 = 2 << 20;

/// Write a report as one HTML file for sharing.
///
/// The file contains the figures and tables to which the report links, as downloads; opening it needs no
/// network and no other file. Files of more than 2 MiB are left out.
#[derive(Debug, Args)]
pub struct Share {
    /// Result directory of `hol run`, `hol reproduce` or `hol compare --out`
    dir: PathBuf,
    /// File to write [default: DIR.html]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Share {
    /// Writes the file and prints its size.
    pub fn run(&self) -> Result<(), Failure> {
        let report = self.dir.join("report.html");
        let page = fs::read_to_string(&report).map_err(|problem| {
            let dir = self.dir.display();
            Failure::Usage(format!(
                "{}: {problem}; create the report with `hol report {dir}`",
                report.display()
            ))
        })?;
        let SelfContainedPage { page, absent_files } = embed(&page, &self.dir);
        let out = self.out.clone().unwrap_or_else(|| {
            let name = self.dir.canonicalize().ok().and_then(|dir| Some(dir.file_name()?.to_owned()));
            let name = name.map_or("report".into(), |name| name.to_string_lossy().into_owned());
            self.dir.with_file_name(format!("{name}.html"))
        });
        fs::write(&out, &page).map_err(|problem| Failure::failed(format!("{}: {problem}", out.display())))?;
        if !absent_files.is_empty() {
            let names: Vec<&str> = absent_files.iter().map(String::as_str).collect();
            note!(
                "these files are not in the page, because they are absent or longer than 2 MiB: {}",
                names.join(", ")
            );
        }
        print(&format!("{} written, {:.1} MB\n", out.display(), page.len() as f64 / 1e6));
        Ok(())
    }
}

/// A page with all its files embedded.
struct SelfContainedPage {
    page: String,
    /// Names of the linked files that are not embedded in the page, and stay in the result directory.
    absent_files: BTreeSet<String>,
}

/// Replaces the links of a page to files of `dir` with the content of these files.
fn embed(page: &str, dir: &Path) -> SelfContainedPage {
    const LINK_ATTRIBUTE: &str = "href=\"";
    let (mut whole, mut absent_files) = (String::with_capacity(2 * page.len()), BTreeSet::new());
    for (index, piece) in page.split(LINK_ATTRIBUTE).enumerate() {
        let (target, rest) =
            if index == 0 { ("", piece) } else { piece.split_once('"').unwrap_or((piece, "")) };
        let text = content(dir, target);
        let _ = match (index, text, is_result_file(target)) {
            (0, ..) => write!(whole, "{rest}"),
            (_, Some(text), true) => {
                let name = target.rsplit('/').next().unwrap_or(target);
                write!(
                    whole,
                    "{LINK_ATTRIBUTE}data:{};charset=utf-8,{}\" download=\"{name}\"{rest}",
                    media_type(name),
                    percent_encode(&text)
                )
            }
            (_, None, true) => {
                absent_files.insert(target.to_owned());
                write!(whole, "title=\"{target} is in the result directory, not in this page\"{rest}")
            }
            _ => write!(whole, "{LINK_ATTRIBUTE}{target}\"{rest}"),
        };
    }
    SelfContainedPage { page: whole, absent_files }
}

/// Returns whether a link leads to a file of the result directory.
fn is_result_file(target: &str) -> bool {
    let is_plain = Path::new(target).components().all(|part| matches!(part, Component::Normal(_)));
    !target.is_empty() && !target.contains([':', '#']) && is_plain
}

fn content(dir: &Path, target: &str) -> Option<String> {
    let path = Some(dir.join(target)).filter(|_| is_result_file(target))?;
    let is_short = fs::metadata(&path).is_ok_and(|world_report| world_report.len() <= MAX_EMBEDDED_SIZE);
    is_short.then(|| fs::read_to_string(&path).ok()).flatten()
}

/// Returns the media type of a file.
fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("svg") => "image/svg+xml",
        Some("csv") => "text/csv",
        Some("json") => "application/json",
        _ => "text/plain",
    }
}

/// Percent-encodes all octets with a special meaning in a URL or in HTML (RFC 3986 section 2.1).
fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 3 / 2);
    for octet in text.bytes() {
        match octet {
            b'0'..=b'9'
            | b'A'..=b'Z'
            | b'a'..=b'z'
            | b'-'..=b'/'
            | b':'
            | b';'
            | b'='
            | b'_'
            | b'('
            | b')' => {
                encoded.push(octet.into());
            }
            _ => {
                let _ = write!(encoded, "%{octet:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_embeds_linked_files_and_has_no_dangling_links() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("figures")).unwrap();
        fs::write(dir.path().join("figures/fig01.svg"), "<svg fill=\"#fff\">± &amp;</svg>").unwrap();
        let page = "<a href=\"#top\">a</a><a href=\"figures/fig01.svg\">SVG</a><a href=\"none.csv\">b</a>\
                    <a href=\"../secret\">c</a><a href=\"https://x.example/\">d</a>";
        let SelfContainedPage { page, absent_files } = embed(page, dir.path());
        assert_eq!(
            page,
            "<a href=\"#top\">a</a><a href=\"data:image/svg+xml;charset=utf-8,%3Csvg%20fill=%22%23fff%22%3E%C2%B1%20%26amp;\
             %3C/svg%3E\" download=\"fig01.svg\">SVG</a><a title=\"none.csv is in the result directory, not in this page\">b</a>\
             <a href=\"../secret\">c</a><a href=\"https://x.example/\">d</a>"
        );
        assert_eq!(absent_files.into_iter().collect::<Vec<_>>(), ["none.csv"]);
    }
}
