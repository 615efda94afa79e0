//! The embedded assets of the pages: scripts, styles and fonts, made by `web/build` and checked in.

use axum::Router;
use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use include_dir::{Dir, include_dir};

use crate::refusal::Refusal;
use crate::server::Shared;

static BUNDLE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/web/dist");

/// `/web/PATH` for each file of the bundle.
pub fn routes() -> Router<Shared> {
    Router::new().route("/web/{*path}", get(file))
}

async fn file(Path(path): Path<String>) -> Response {
    match BUNDLE.get_file(&path) {
        Some(file) => ([(header::CONTENT_TYPE, media_type(&path))], file.contents()).into_response(),
        None => Refusal::not_found().into_response(),
    }
}

/// Returns the media type of a file by its suffix. RFC 9110, section 8.3
pub fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        Some("csv") => "text/csv; charset=utf-8",
        Some("toml" | "ns" | "log" | "jsonl" | "txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
