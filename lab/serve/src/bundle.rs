//! The embedded assets of the pages: scripts, styles and fonts, built by `web/build.js` and committed.

use axum::Router;
use axum::extract::Path;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use include_dir::{Dir, include_dir};
use sha2::{Digest, Sha256};

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
    let takes_gzip = text(&headers, ACCEPT_ENCODING).split(',').any(|coding| coding.trim() == "gzip");
    let small = BUNDLE.get_file(format!("{path}{GZIP_SUFFIX}")).filter(|_| takes_gzip);
    let contents = small.unwrap_or(plain).contents();
    let version = version(contents);
    let mut response = if text(&headers, IF_NONE_MATCH).split(',').any(|known| known.trim() == version) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(CONTENT_TYPE, media_type(&path))], contents).into_response()
    };
    if small.is_some() && response.status() == StatusCode::OK {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(version) = HeaderValue::from_str(&version) {
        response.headers_mut().insert(ETAG, version);
    }
    response
}

fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns an entity tag of contents. RFC 9110, section 8.8.3
fn version(contents: &[u8]) -> String {
    let digest = Sha256::digest(contents);
    let word: String = digest[..12].iter().map(|octet| format!("{octet:02x}")).collect();
    format!("\"{word}\"")
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
