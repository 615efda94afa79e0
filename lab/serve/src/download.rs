//! Files as bodies of responses, read in parts as fast as the client receives them.

use std::convert::Infallible;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, RANGE};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use tempfile::{SpooledData, SpooledTempFile};
use tokio::task::spawn_blocking;

use crate::refusal::Refusal;

/// Maximum number of octets of a file that are in memory at a time.
pub const PART_SIZE: usize = 64 << 10;
/// Number of octets of a response that are kept in memory; longer ones are kept on the disk, because clients may receive
/// them slowly.
pub const MAX_IN_MEMORY: usize = 256 << 10;

/// The requested part of a file: all of it, or one range of octets. RFC 9110, section 14
#[derive(Debug, Clone, Default)]
pub struct ByteRange {
    /// First octet of the range, and the last one if the request names it.
    range: Option<(u64, Option<u64>)>,
    /// Entity tag of the version of the file to which the range applies.
    version: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for ByteRange {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = |name: HeaderName| parts.headers.get(name)?.to_str().ok();
        Ok(Self { range: text(RANGE).and_then(range), version: text(IF_RANGE).map(str::to_owned) })
    }
}

/// Parses `bytes=FIRST-` and `bytes=FIRST-LAST`; ignores all other ranges, so that the client gets the whole file.
fn range(text: &str) -> Option<(u64, Option<u64>)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit()).then(|| text.parse().ok())?;
    let first = number(first)?;
    let last = if last.is_empty() { None } else { Some(number(last)?) };
    last.is_none_or(|last| first <= last).then_some((first, last))
}

/// Returns an entity tag of a file, from its inode, its modification time and its size.
fn version(metadata: &Metadata) -> String {
    let nanoseconds = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    format!("\"{:x}-{:x}-{:x}\"", metadata.ino(), nanoseconds, metadata.len())
}

/// Returns the requested part of a file as it is now, without octets that are appended later.
pub fn download(mut file: File, wanted: &ByteRange) -> Result<Response, Refusal> {
    let metadata = file.metadata()?;
    let (all, version) = (metadata.len(), version(&metadata));
    let is_same = wanted.version.as_ref().is_none_or(|wanted| *wanted == version);
    let headers = [(ACCEPT_RANGES, "bytes".to_owned()), (ETAG, version)];
    let Some((first, last)) = wanted.range.filter(|_| is_same) else {
        return Ok((headers, [(CONTENT_LENGTH, all)], body(file, all)).into_response());
    };
    if first >= all {
        let problem = format!("the range begins beyond the end of the file, which has {all} octets");
        return Err(Refusal::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            problem,
            "request a range within the file",
        ));
    }
    let last = last.map_or(all - 1, |last| last.min(all - 1));
    let octets = last - first + 1;
    file.seek(SeekFrom::Start(first))?;
    let range = [(CONTENT_RANGE, format!("bytes {first}-{last}/{all}"))];
    let length = [(CONTENT_LENGTH, octets)];
    Ok((StatusCode::PARTIAL_CONTENT, headers, range, length, body(file, octets)).into_response())
}

/// The JSON that a computation has written, as the body of a response.
#[derive(Debug)]
pub struct JsonAnswer(pub SpooledTempFile);

impl IntoResponse for JsonAnswer {
    fn into_response(self) -> Response {
        let json = [(CONTENT_TYPE, "application/json")];
        match self.0.into_inner() {
            SpooledData::InMemory(octets) => (json, octets.into_inner()).into_response(),
            SpooledData::OnDisk(file) => match file.metadata() {
                Ok(metadata) => {
                    let octets = metadata.len();
                    (json, [(CONTENT_LENGTH, octets)], body(file, octets)).into_response()
                }
                Err(error) => Refusal::from(error).into_response(),
            },
        }
    }
}

/// Returns a body that is read from a file.
pub fn body(file: File, octets: u64) -> Body {
    let parts = unfold(Some(file.take(octets)), async |file| {
        let mut file = file?;
        let read = spawn_blocking(move || {
            let mut part = Vec::with_capacity(PART_SIZE);
            file.by_ref().take(PART_SIZE as u64).read_to_end(&mut part).map(|_| (part, file))
        });
        match read.await.map_err(io::Error::other).and_then(|read| read) {
            Ok((part, _)) if part.is_empty() => None,
            Ok((part, file)) => Some((Ok(part), Some(file))),
            // The length has already been sent, so the server can only close the connection.
            Err(error) => Some((Err(error), None)),
        }
    });
    Body::from_stream(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_range_is_parsed_and_other_ranges_mean_the_whole_file() {
        assert_eq!(range("bytes=0-"), Some((0, None)));
        assert_eq!(range("bytes=5-9"), Some((5, Some(9))));
        for other in
            ["bytes=-5", "bytes=9-5", "bytes=1-2,5-6", "lines=1-2", "bytes=a-", "bytes=", "bytes=+1-"]
        {
            assert_eq!(range(other), None, "{other}");
        }
    }
}
