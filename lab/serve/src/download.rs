//! Files as bodies of responses, read in parts as fast as the client takes them.

use std::fs::File;
use std::io::{self, Read};

use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use tokio::task::spawn_blocking;

/// Octets of a file that are in memory at a time.
pub const PART: usize = 64 << 10;

/// Returns the content of a file as it is now; what is appended later does not follow.
pub fn download(file: File) -> io::Result<Response> {
    let octets = file.metadata()?.len();
    let parts = unfold(Some(file.take(octets)), async |file| {
        let mut file = file?;
        let read = spawn_blocking(move || {
            let mut part = Vec::with_capacity(PART);
            file.by_ref().take(PART as u64).read_to_end(&mut part).map(|_| (part, file))
        });
        match read.await.map_err(io::Error::other).and_then(|read| read) {
            Ok((part, _)) if part.is_empty() => None,
            Ok((part, file)) => Some((Ok(part), Some(file))),
            // The length has been announced, so the connection ends here.
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(([(CONTENT_LENGTH, octets)], Body::from_stream(parts)).into_response())
}
