//! The embedded assets of the pages: scripts, styles and fonts, built by `web/build.js` and committed.

use axum::Router;
use axum::extract::Path;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use include_dir::{Dir, include_dir};

use crate::encoding::{ClientCache, Encoded};
use crate::refusal::Refusal;
use crate::server::SharedServer;

/// The suffix of compressed files.
const GZIP_SUFFIX: &str = ".gz";

static BUNDLE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/web/dist");

/// Returns the route `/web/PATH` to the files of the bundle.
pub fn routes() -> Router<SharedServer> {
    Router::new().route("/web/{*path}", get(file))
}

/// Returns a file of the bundle, compressed if the client accepts gzip and `web/build.js` has made a compressed copy.
async fn file(Path(path): Path<String>, headers: HeaderMap) -> Response {
    let Some(plain) = BUNDLE.get_file(&path).filter(|_| !path.ends_with(GZIP_SUFFIX)) else {
        return Refusal::not_found().into_response();
    };
    let cache = ClientCache::of(&headers);
    let small = BUNDLE.get_file(format!("{path}{GZIP_SUFFIX}")).filter(|_| cache.accepts_gzip);
    let encoded = Encoded::of_program(small.unwrap_or(plain).contents(), small.is_some());
    let mut response = cache.respond(encoded, "accept-encoding");
    if response.status() == StatusCode::OK {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type(&path)));
    }
    response
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
