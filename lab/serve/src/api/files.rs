//! Results: points, the report, every file.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use axum::Json;
use axum::extract::State as Extract;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Which;
use crate::bundle::media_type;
use crate::leisure::at_leisure;
use crate::lifecycle::holds_cores;
use crate::refusal::{Problems, Refusal};
use crate::server::{Server, Shared};
use crate::viewer::Viewer;

/// Files that are listed.
const MOST_FILES: usize = 10_000;
/// A file is answered from memory; one that is larger is to be had from the disk.
const LARGEST: u64 = 256 << 20;

/// The report is ours, with script and style in it; what it shows is not. In a sandbox it reaches nothing of this server.
const REPORT_POLICY: &str = "sandbox allow-scripts allow-downloads allow-popups; default-src 'none'; \
    script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'";
/// What an experiment wrote may be anything.
const FILE_POLICY: &str = "sandbox; default-src 'none'";

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(points))
        .routes(routes!(report))
        .routes(routes!(files))
        .routes(routes!(file))
        .routes(routes!(log))
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FileLine {
    /// Where it is among the results.
    pub path: String,
    /// Its octets.
    pub size: u64,
}

/// What points.json says so far.
#[utoipa::path(get, path = "/api/experiments/{id}/points", params(("id" = i64, Path)), responses(
    (status = 200, description = "A row a point; empty before the first", body = Vec<serde_json::Value>),
    (status = 404, body = Problems)))]
async fn points(
    Extract(server): Extract<Shared>,
    viewer: Viewer,
    Which(id): Which<i64>,
) -> Result<Response, Refusal> {
    at_leisure(server, move |server| server.points(&viewer, id)).await
}

/// The page of its results so far.
#[utoipa::path(get, path = "/api/experiments/{id}/report", params(("id" = i64, Path)), responses(
    (status = 200, body = String, content_type = "text/html"),
    (status = 404, description = "There is nothing yet", body = Problems)))]
async fn report(
    Extract(server): Extract<Shared>,
    viewer: Viewer,
    Which(id): Which<i64>,
) -> Result<Response, Refusal> {
    at_leisure(server, move |server| {
        server.entry(&viewer, id)?;
        report_of(server, id)
    })
    .await
}

/// The files of its results.
#[utoipa::path(get, path = "/api/experiments/{id}/files/", params(("id" = i64, Path)), responses(
    (status = 200, body = Vec<FileLine>), (status = 404, body = Problems)))]
async fn files(
    Extract(server): Extract<Shared>,
    viewer: Viewer,
    Which(id): Which<i64>,
) -> Result<Json<Vec<FileLine>>, Refusal> {
    let listed = move |server: &Server| {
        server.entry(&viewer, id)?;
        Ok(directory(&server.command(id).results())?)
    };
    at_leisure(server, listed).await.map(Json)
}

/// One of them.
#[utoipa::path(get, path = "/api/experiments/{id}/files/{*path}", params(("id" = i64, Path), ("path" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), (status = 404, body = Problems)))]
async fn file(
    Extract(server): Extract<Shared>,
    viewer: Viewer,
    Which((id, path)): Which<(i64, String)>,
) -> Result<Response, Refusal> {
    at_leisure(server, move |server| {
        server.entry(&viewer, id)?;
        file_of(&server.command(id).results(), &path)
    })
    .await
}

/// What its processes said.
#[utoipa::path(get, path = "/api/experiments/{id}/log", params(("id" = i64, Path)), responses(
    (status = 200, body = String, content_type = "text/plain"), (status = 404, body = Problems)))]
async fn log(
    Extract(server): Extract<Shared>,
    viewer: Viewer,
    Which(id): Which<i64>,
) -> Result<Response, Refusal> {
    at_leisure(server, move |server| {
        server.entry(&viewer, id)?;
        let text = fs::read(server.command(id).dir.join("log")).unwrap_or_default();
        Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
    })
    .await
}

impl Server {
    fn points(&self, viewer: &Viewer, id: i64) -> Result<Response, Refusal> {
        self.entry(viewer, id)?;
        let text = match fs::read(self.command(id).results().join("points.json")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => b"[]".to_vec(),
            read => read?,
        };
        Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
    }
}

/// The report of experiment `id`, drawn anew if there are later points and no process is about to draw it.
pub fn report_of(server: &Server, id: i64) -> Result<Response, Refusal> {
    let results = server.command(id).results();
    let (page, points) = (results.join("report.html"), results.join("points.json"));
    let runs = server.store.entry(id)?.is_some_and(|entry| holds_cores(entry.experiment.state));
    let is_old = match (age(&page), age(&points)) {
        (Ok(page), Ok(points)) => page < points && !runs,
        (Err(_), Ok(_)) => true,
        (_, Err(_)) => false,
    };
    if is_old {
        server.draw(id)?;
    }
    let text = fs::read(page).map_err(|_| Refusal::not_found())?;
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, REPORT_POLICY)];
    Ok((headers, text).into_response())
}

/// File `path` of a directory, to be saved.
pub fn file_of(directory: &Path, path: &str) -> Result<Response, Refusal> {
    let whole = inside(directory, path).ok_or_else(Refusal::not_found)?;
    if fs::metadata(&whole)?.len() > LARGEST {
        return Err(Refusal::too_large(format!("the file has more than {} MiB", LARGEST >> 20)));
    }
    let content = fs::read(&whole)?;
    let headers = [
        (CONTENT_TYPE, media_type(path)),
        (CONTENT_DISPOSITION, "attachment"),
        (CONTENT_SECURITY_POLICY, FILE_POLICY),
    ];
    Ok((headers, content).into_response())
}

/// Where `path` is, if it is a file in `directory`; what leads out of it, a symbolic link too, is not there.
pub fn inside(directory: &Path, path: &str) -> Option<PathBuf> {
    let relative = Path::new(path);
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let directory = fs::canonicalize(directory).ok()?;
    let whole = fs::canonicalize(directory.join(relative)).ok()?;
    (whole.starts_with(&directory) && whole.is_file()).then_some(whole)
}

/// All files of a directory, in order of name; none if it is not there.
pub fn directory(root: &Path) -> io::Result<Vec<FileLine>> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(dir) = left.pop() {
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            // A file may be gone again by now.
            let Ok(metadata) = entry.metadata() else { continue };
            match entry.path().strip_prefix(root) {
                _ if metadata.is_dir() => left.push(entry.path()),
                Ok(path) if metadata.is_file() => {
                    found.push(FileLine { path: path.to_string_lossy().into_owned(), size: metadata.len() });
                }
                _ => (),
            }
        }
        if found.len() >= MOST_FILES {
            break;
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// When a file was written; only compared with others of its kind.
fn age(path: &Path) -> io::Result<impl PartialOrd + use<>> {
    fs::metadata(path)?.modified()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_is_found() {
        let root = tempfile::tempdir().unwrap();
        let results = root.path().join("results");
        fs::create_dir_all(results.join("sub")).unwrap();
        fs::write(root.path().join("secret"), "s").unwrap();
        fs::write(results.join("sub/a.csv"), "1").unwrap();
        std::os::unix::fs::symlink("../secret", results.join("link")).unwrap();
        std::os::unix::fs::symlink("/etc", results.join("etc")).unwrap();
        let outside = [
            "../secret",
            "/etc/passwd",
            "link",
            "etc/passwd",
            "sub/../../secret",
            "",
            ".",
            "sub",
            "a\0b",
            "..",
            "./sub/a.csv",
        ];
        for path in outside {
            assert_eq!(inside(&results, path), None, "{path:?}");
        }
        assert!(inside(&results, "sub/a.csv").is_some());
        assert_eq!(directory(&results).unwrap(), [FileLine { path: "sub/a.csv".to_owned(), size: 1 }]);
        assert_eq!(directory(&root.path().join("nothing")).unwrap(), []);
    }
}
