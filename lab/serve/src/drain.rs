//! Receives the rest of a request's body after its handler has responded without it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use futures_util::StreamExt;
use http_body::{Frame, SizeHint};
use tokio::time::timeout;

/// Maximum number of octets of the rest of a body that are received.
const MAX_OCTETS: usize = 64 << 20;
/// Maximum time for receiving the rest of a body.
const MAX_TIME: Duration = Duration::from_secs(30);

/// A body whose rest is received and discarded when it is dropped. Otherwise HTTP/2 would reset the stream, and some
/// clients would report the reset instead of the response. RFC 9113, section 8.1
#[derive(Debug)]
pub struct DrainedBody(Body);

impl DrainedBody {
    pub fn wrap(body: Body) -> Body {
        if body.is_end_stream() { body } else { Body::new(Self(body)) }
    }
}

impl Drop for DrainedBody {
    fn drop(&mut self) {
        let body = std::mem::take(&mut self.0);
        if !body.is_end_stream() {
            tokio::spawn(timeout(MAX_TIME, discard(body)));
        }
    }
}

async fn discard(body: Body) {
    let (mut parts, mut octets) = (body.into_data_stream(), 0);
    while let Some(Ok(part)) = parts.next().await
        && octets < MAX_OCTETS
    {
        octets += part.len();
    }
}

impl HttpBody for DrainedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.0).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Returns how many of `count` parts of a body are received although its handler reads only one.
    async fn received(count: usize) -> usize {
        let received = Arc::new(AtomicUsize::new(0));
        let counter = received.clone();
        let parts = futures_util::stream::iter(0..count).map(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Error>(Bytes::from_static(&[0; 1 << 20]))
        });
        let mut body = DrainedBody::wrap(Body::from_stream(parts)).into_data_stream();
        assert!(body.next().await.is_some());
        drop(body);
        tokio::task::yield_now().await;
        received.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn rest_of_a_body_is_received_up_to_a_limit() {
        assert_eq!((received(30).await, received(1000).await), (30, 66));
    }
}
