//! Endpoints for results: points, the report, and all files.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use axum::Json;
use axum::extract::State as Extract;
use axum::http::HeaderName;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Redirect, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::blocking::run_blocking;
use crate::bundle::media_type;
use crate::directory::{FileEntry, list_files, resolve_inside};
use crate::download::{ByteRange, download};
use crate::experiment::Links;
use crate::extract::{AcceptHeader, PathParameter};
use crate::lifecycle::holds_cores;
use crate::refusal::{Problems, Refusal};
use crate::requester::Requester;
use crate::server::{Server, SharedServer};

/// Policy of the report. It contains our script and style, but also text that users wrote, so a sandbox prevents it
/// from sending requests to this server.
const REPORT_POLICY: &str = "sandbox allow-scripts allow-downloads allow-popups; default-src 'none'; \
    script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'";
/// Policy of the files of an experiment, which may contain anything.
const FILE_POLICY: &str = "sandbox; default-src 'none'";

pub fn routes() -> OpenApiRouter<SharedServer> {
    OpenApiRouter::new()
        .routes(routes!(points))
        .routes(routes!(report))
        .routes(routes!(report_page))
        .routes(routes!(report_file))
        .routes(routes!(files))
        .routes(routes!(file))
        .routes(routes!(log))
}

/// Returns the points that have results so far, as in points.json.
#[utoipa::path(get, path = "/api/experiments/{id}/points", params(("id" = i64, Path)), responses(
    (status = 200, description = "One object per point; empty before the first result", body = Vec<serde_json::Value>),
    (status = 404, body = Problems)))]
async fn points(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<Response, Refusal> {
    run_blocking(server, move |server| server.points(&requester, id)).await
}

/// Returns the report so far, or a range of its octets. A browser is redirected to `report/`, to which the links in
/// the report are relative.
#[utoipa::path(get, path = "/api/experiments/{id}/report", params(("id" = i64, Path)), responses(
    (status = 200, body = String, content_type = "text/html"),
    (status = 206, body = String, content_type = "text/html"),
    (status = 308, description = "Redirects a browser to report/"),
    (status = 404, description = "There is no report yet", body = Problems),
    (status = 416, description = "The range starts beyond the end of the file", body = Problems)))]
async fn report(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    accept: AcceptHeader,
    wanted: ByteRange,
) -> Result<Response, Refusal> {
    if accept.is_browser {
        return Ok(Redirect::permanent(&Links::of(id).report).into_response());
    }
    run_blocking(server, move |server| server.report(&requester, id, &wanted)).await
}

/// Returns the report so far, or a range of its octets. The links in the report are relative to this path.
#[utoipa::path(get, path = "/api/experiments/{id}/report/", params(("id" = i64, Path)), responses(
    (status = 200, body = String, content_type = "text/html"),
    (status = 206, body = String, content_type = "text/html"),
    (status = 404, description = "There is no report yet", body = Problems),
    (status = 416, description = "The range starts beyond the end of the file", body = Problems)))]
async fn report_page(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
    wanted: ByteRange,
) -> Result<Response, Refusal> {
    run_blocking(server, move |server| server.report(&requester, id, &wanted)).await
}

/// Returns a file of the results, at the path to which the report links.
#[utoipa::path(get, path = "/api/experiments/{id}/report/{*path}", params(("id" = i64, Path), ("path" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
    (status = 206, body = Vec<u8>, content_type = "application/octet-stream"), (status = 404, body = Problems),
    (status = 416, description = "The range starts beyond the end of the file", body = Problems)))]
async fn report_file(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter((id, path)): PathParameter<(i64, String)>,
    wanted: ByteRange,
) -> Result<Response, Refusal> {
    let read = move |server: &Server| {
        server.entry(&requester, id)?;
        file_response(&server.runner_command(id)?.results(), &path, &wanted)
    };
    run_blocking(server, read).await
}

/// Lists the files of an experiment's results.
#[utoipa::path(get, path = "/api/experiments/{id}/files/", params(("id" = i64, Path)), responses(
    (status = 200, body = Vec<FileEntry>), (status = 404, body = Problems)))]
async fn files(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<Json<Vec<FileEntry>>, Refusal> {
    let listed = move |server: &Server| {
        server.entry(&requester, id)?;
        Ok(list_files(&server.runner_command(id)?.results())?)
    };
    run_blocking(server, listed).await.map(Json)
}

/// Returns a file of an experiment's results, or a range of its octets.
#[utoipa::path(get, path = "/api/experiments/{id}/files/{*path}", params(("id" = i64, Path), ("path" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
    (status = 206, body = Vec<u8>, content_type = "application/octet-stream"), (status = 404, body = Problems),
    (status = 416, description = "The range starts beyond the end of the file", body = Problems)))]
async fn file(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter((id, path)): PathParameter<(i64, String)>,
    wanted: ByteRange,
) -> Result<Response, Refusal> {
    run_blocking(server, move |server| {
        server.entry(&requester, id)?;
        file_response(&server.runner_command(id)?.results(), &path, &wanted)
    })
    .await
}

/// Returns the log of an experiment's processes.
#[utoipa::path(get, path = "/api/experiments/{id}/log", params(("id" = i64, Path)), responses(
    (status = 200, body = String, content_type = "text/plain"), (status = 404, body = Problems)))]
async fn log(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(id): PathParameter<i64>,
) -> Result<Response, Refusal> {
    run_blocking(server, move |server| {
        server.entry(&requester, id)?;
        let headers = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
        content(&server.runner_command(id)?.dir.join("log"), headers, "")
    })
    .await
}

impl Server {
    fn report(&self, requester: &Requester, id: i64, wanted: &ByteRange) -> Result<Response, Refusal> {
        self.entry(requester, id)?;
        report_response(self, id, wanted)
    }

    fn points(&self, requester: &Requester, id: i64) -> Result<Response, Refusal> {
        self.entry(requester, id)?;
        let points = self.runner_command(id)?.results().join("points.json");
        content(&points, [(CONTENT_TYPE, "application/json")], "[]")
    }
}

/// Returns the report of experiment `id`. If there are newer points, writes the report again first, unless a running process will do so.
pub fn report_response(server: &Server, id: i64, wanted: &ByteRange) -> Result<Response, Refusal> {
    let results = server.runner_command(id)?.results();
    let (page, points) = (results.join("report.html"), results.join("points.json"));
    let runs = server.store.entry(id)?.is_some_and(|entry| holds_cores(entry.experiment.state));
    let is_old = || match (modified_at(&page), modified_at(&points)) {
        (Ok(page), Ok(points)) => page < points && !runs,
        (Err(_), Ok(_)) => true,
        (_, Err(_)) => false,
    };
    if is_old() {
        server.write_report(id, is_old)?;
    }
    let page = File::open(&page).map_err(|_| Refusal::not_found())?;
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, REPORT_POLICY)];
    Ok((headers, download(page, wanted)?).into_response())
}

/// Returns the content of a file, or `else_text` if it does not exist yet.
fn content(
    path: &Path,
    headers: [(HeaderName, &'static str); 1],
    else_text: &'static str,
) -> Result<Response, Refusal> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((headers, else_text).into_response()),
        file => Ok((headers, download(file?, &ByteRange::default())?).into_response()),
    }
}

/// Returns file `path` of a directory as a download.
pub fn file_response(directory: &Path, path: &str, wanted: &ByteRange) -> Result<Response, Refusal> {
    let whole = resolve_inside(directory, path).ok_or_else(Refusal::not_found)?;
    let headers = [
        (CONTENT_TYPE, media_type(path)),
        (CONTENT_DISPOSITION, "attachment"),
        (CONTENT_SECURITY_POLICY, FILE_POLICY),
    ];
    Ok((headers, download(File::open(whole)?, wanted)?).into_response())
}

/// Returns the time at which a file was last modified, for comparison only.
fn modified_at(path: &Path) -> io::Result<impl PartialOrd + use<>> {
    fs::metadata(path)?.modified()
}
