//! Entity tags and compression of responses. RFC 9110, sections 8.4 and 8.8.3

use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;

use crate::download::{MAX_IN_MEMORY, body};
use crate::refusal::Refusal;

/// Maximum number of octets of a response that is compressed.
const MAX_SIZE: usize = 4 << 20;
/// Minimum number of octets of a response that is compressed.
const MIN_SIZE: usize = 1 << 10;

/// What a client accepts, and which versions of a response it already has.
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
    pub fn respond(&self, Encoded { version, body, is_compressed }: Encoded, vary: &'static str) -> Response {
        let mut response =
            if self.has(&version) { StatusCode::NOT_MODIFIED.into_response() } else { body.into_response() };
        let is_whole = response.status() == StatusCode::OK;
        let headers = response.headers_mut();
        headers.remove(CONTENT_TYPE);
        headers.insert(VARY, HeaderValue::from_static(vary));
        headers.insert(ETAG, HeaderValue::from_str(&version).expect("it is ASCII"));
        if is_compressed && is_whole {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }

    /// Adds an entity tag to a page or an answer of the API that is in memory, and compresses it. Long responses are
    /// moved to a file in `directory`, because clients may receive them slowly.
    pub async fn encode(self, response: Response, directory: PathBuf) -> Response {
        let is_known = [ETAG, CONTENT_ENCODING].iter().any(|name| response.headers().contains_key(name));
        if response.status() != StatusCode::OK || is_known || response.body().size_hint().exact().is_none() {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        let contents = match to_bytes(body, usize::MAX).await {
            Ok(contents) => contents,
            Err(error) => return Refusal::internal(error).into_response(),
        };
        let accepts_gzip = self.accepts_gzip;
        let encoded = spawn_blocking(move || Encoded::of(contents, accepts_gzip, &directory));
        let encoded = match encoded.await.map_err(io::Error::other).and_then(|encoded| encoded) {
            Ok(encoded) => encoded,
            Err(error) => return Refusal::from(error).into_response(),
        };
        let mut response = self.respond(encoded, "accept, accept-encoding");
        parts.headers.remove(CONTENT_LENGTH);
        if response.status() == StatusCode::NOT_MODIFIED {
            parts.headers.remove(CONTENT_TYPE);
        }
        response.headers_mut().extend(parts.headers);
        drop(parts.extensions);
        // A browser may keep the response, but asks each time, so that nobody sees it after the end of the session.
        let cache = HeaderValue::from_static("private, no-cache");
        response.headers_mut().entry(CACHE_CONTROL).or_insert(cache);
        response
    }
}

/// A long answer of the API, and the permission to have it in memory, which ends when the answer is encoded.
#[derive(Debug)]
pub struct LongAnswer<T>(pub T, pub OwnedSemaphorePermit);

impl<T: Serialize> IntoResponse for LongAnswer<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.0).into_response();
        response.extensions_mut().insert(Arc::new(self.1));
        response
    }
}

/// The contents of a response in one encoding.
#[derive(Debug)]
pub struct Encoded {
    version: String,
    body: Body,
    is_compressed: bool,
}

impl Encoded {
    /// Returns contents that are part of the program.
    pub fn of_program(contents: &'static [u8], is_compressed: bool) -> Self {
        Self { version: version(contents), body: Bytes::from_static(contents).into(), is_compressed }
    }

    fn of(contents: Bytes, accepts_gzip: bool, directory: &Path) -> io::Result<Self> {
        let is_compressed = accepts_gzip && (MIN_SIZE..=MAX_SIZE).contains(&contents.len());
        let contents = if is_compressed { gzip(&contents)?.into() } else { contents };
        let version = version(&contents);
        Ok(Self { version, body: into_body(contents, directory)?, is_compressed })
    }
}

fn into_body(contents: Bytes, directory: &Path) -> io::Result<Body> {
    if contents.len() <= MAX_IN_MEMORY {
        return Ok(contents.into());
    }
    let mut file = tempfile::tempfile_in(directory)?;
    file.write_all(&contents)?;
    file.rewind()?;
    Ok(body(file, contents.len() as u64))
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
