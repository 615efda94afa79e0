//! Closes connections to clients that receive too slowly, because unsent responses occupy memory.

use std::future::{Future, Ready, ready};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum_server::accept::Accept;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Minimum number of octets that a client must receive during [`TIMEOUT`] of waiting.
const MIN_OCTETS: usize = 64 << 10;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Accepts connections, and wraps them in [`RateCheckedStream`].
#[derive(Debug, Clone, Copy)]
pub struct RateCheckingAcceptor(Duration);

impl Default for RateCheckingAcceptor {
    fn default() -> Self {
        Self(TIMEOUT)
    }
}

impl<C, S> Accept<C, S> for RateCheckingAcceptor {
    type Stream = RateCheckedStream<C>;
    type Service = S;
    type Future = Ready<io::Result<(RateCheckedStream<C>, S)>>;

    fn accept(&self, stream: C, service: S) -> Self::Future {
        ready(Ok((RateCheckedStream::new(stream, self.0), service)))
    }
}

/// A connection that fails if writing to it is too slow.
#[derive(Debug)]
pub struct RateCheckedStream<C> {
    stream: C,
    timeout: Duration,
    /// Octets written since `waited` was zero.
    octets_written: usize,
    /// Time spent waiting to write, without the current wait.
    waited: Duration,
    waits_since: Option<Instant>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<C> RateCheckedStream<C> {
    fn new(stream: C, timeout: Duration) -> Self {
        Self { stream, timeout, octets_written: 0, waited: Duration::ZERO, waits_since: None, alarm: None }
    }

    /// Counts the written octets; fails if too few were written for too long.
    fn check_rate(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let Poll::Ready(written) = written else {
            let since = *self.waits_since.get_or_insert_with(Instant::now);
            let left = self.timeout.saturating_sub(self.waited + since.elapsed());
            let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(left)));
            return alarm.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()));
        };
        self.alarm = None;
        self.waited += self.waits_since.take().map_or(Duration::ZERO, |since| since.elapsed());
        self.octets_written += *written.as_ref().unwrap_or(&0);
        if self.octets_written >= MIN_OCTETS {
            (self.octets_written, self.waited) = (0, Duration::ZERO);
        }
        Poll::Ready(written)
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for RateCheckedStream<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for RateCheckedStream<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, octets);
        self.check_rate(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.check_rate(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    /// A connection whose client reads `part` octets at a time and then waits.
    fn read_by(part: usize, wait: Duration) -> RateCheckedStream<DuplexStream> {
        let (mut client, server) = duplex(MIN_OCTETS);
        tokio::spawn(async move {
            let mut read = vec![0; part];
            loop {
                sleep(wait).await;
                let _ = client.read(&mut read).await;
            }
        });
        RateCheckedStream::new(server, TIMEOUT)
    }

    async fn fill(mut checked: RateCheckedStream<DuplexStream>, octets: usize) -> io::Result<()> {
        checked.write_all(&vec![0; octets]).await
    }

    #[tokio::test(start_paused = true)]
    async fn connection_of_a_slow_reader_is_closed() {
        for (part, wait) in
            [(0, 3600), (1, 1), (MIN_OCTETS / 2, 16)].map(|(part, secs)| (part, Duration::from_secs(secs)))
        {
            let begun = Instant::now();
            let problem = fill(read_by(part, wait), 1 << 20).await.unwrap_err();
            assert_eq!((problem.kind(), begun.elapsed().as_secs()), (io::ErrorKind::TimedOut, 30), "{part}");
        }
    }

    /// The download lasts about an hour, with more than the minimum in each half a minute.
    #[tokio::test(start_paused = true)]
    async fn reader_above_the_minimum_rate_gets_the_whole_file() {
        fill(read_by(MIN_OCTETS / 2, Duration::from_secs(14)), 8 << 20).await.unwrap();
    }
}
