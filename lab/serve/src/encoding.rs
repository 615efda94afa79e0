//! Entity tags and compression of responses. RFC 9110, sections 8.4 and 8.8.3

use std::io::{self, Write};

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use crate::refusal::Refusal;

/// Maximum number of octets of a response that is compressed.
const MAX_SIZE: u64 = 4 << 20;
/// Minimum number of octets of a response that is compressed.
const MIN_SIZE: usize = 1 << 10;

/// What a client accepts, and what it has already.
#[derive(Debug, Clone)]
pub struct ClientCache {
    /// Whether the client accepts gzip.
    pub accepts_gzip: bool,
    /// Entity tags of the versions that the client has, separated by commas.
    known: String,
}

impl ClientCache {
    /// Reads the headers of a request.
    pub fn of(headers: &HeaderMap) -> Self {
        let text =
            |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let accepts_gzip = text(ACCEPT_ENCODING).split(',').any(|coding| coding.trim() == "gzip");
        Self { accepts_gzip, known: text(IF_NONE_MATCH).to_owned() }
    }

    fn has(&self, version: &str) -> bool {
        self.known.split(',').any(|known| known.trim() == version)
    }

    /// Returns the response with contents in one encoding, or only their entity tag if the client has them.
    pub fn respond(
        &self,
        contents: Bytes,
        is_compressed: bool,
        media_type: &HeaderValue,
        vary: &'static str,
    ) -> Response {
        let version = version(&contents);
        let mut response = if self.has(&version) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            ([(CONTENT_TYPE, media_type.clone())], contents).into_response()
        };
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static(vary));
        headers.insert(ETAG, HeaderValue::from_str(&version).expect("it is ASCII"));
        if is_compressed && response.status() == StatusCode::OK {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }

    /// Adds an entity tag to a page or an answer of the API that is in memory, and compresses it.
    pub async fn encode(self, response: Response) -> Response {
        let is_short = response.body().size_hint().exact().is_some_and(|octets| octets <= MAX_SIZE);
        let media_type = response.headers().get(CONTENT_TYPE).cloned();
        let is_encoded = [ETAG, CONTENT_ENCODING].iter().any(|name| response.headers().contains_key(name));
        let Some(media_type) =
            media_type.filter(|_| response.status() == StatusCode::OK && is_short && !is_encoded)
        else {
            return response;
        };
        let (mut parts, body) = response.into_parts();
        let encoded = spawn_compression(body, self.accepts_gzip).await;
        let (contents, is_compressed) = match encoded {
            Ok(encoded) => encoded,
            Err(error) => return Refusal::internal(error).into_response(),
        };
        let mut response = self.respond(contents, is_compressed, &media_type, "accept, accept-encoding");
        [CONTENT_TYPE, CONTENT_LENGTH].iter().for_each(|name| drop(parts.headers.remove(name)));
        response.headers_mut().extend(parts.headers);
        // A browser may keep the response, but asks each time, so that nobody sees it after the end of the session.
        let cache = HeaderValue::from_static("private, no-cache");
        response.headers_mut().entry(CACHE_CONTROL).or_insert(cache);
        response
    }
}

/// Returns the contents of a body, and whether they are compressed.
async fn spawn_compression(body: Body, accepts_gzip: bool) -> io::Result<(Bytes, bool)> {
    let contents = to_bytes(body, MAX_SIZE as usize).await.map_err(io::Error::other)?;
    if !accepts_gzip || contents.len() < MIN_SIZE {
        return Ok((contents, false));
    }
    spawn_blocking(move || gzip(&contents))
        .await
        .map_err(io::Error::other)?
        .map(|octets| (octets.into(), true))
}

fn gzip(contents: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(contents)?;
    encoder.finish()
}

/// Returns an entity tag of contents.
fn version(contents: &[u8]) -> String {
    let digest = Sha256::digest(contents);
    let word: String = digest[..12].iter().map(|octet| format!("{octet:02x}")).collect();
    format!("\"{word}\"")
}
