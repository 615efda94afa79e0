//! Closes connections whose clients take answers too slowly: what waits for them is memory of the server.

use std::future::{Future, Ready, ready};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum_server::accept::Accept;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// A client takes so many octets, at least, in [`PATIENCE`] in which something waits for it.
const LEAST: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(30);

/// Accepts connections as [`Paced`] ones.
#[derive(Debug, Clone, Copy)]
pub struct Pacer(Duration);

impl Default for Pacer {
    fn default() -> Self {
        Self(PATIENCE)
    }
}

impl<S> Accept<TcpStream, S> for Pacer {
    type Stream = Paced;
    type Service = S;
    type Future = Ready<io::Result<(Paced, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        ready(Ok((Paced::new(stream, self.0), service)))
    }
}

/// A connection with a minimum rate of what is written.
#[derive(Debug)]
pub struct Paced {
    stream: TcpStream,
    patience: Duration,
    /// Octets taken since the time below began.
    taken: usize,
    /// Time in which octets waited, before the present wait.
    waited: Duration,
    waits_since: Option<Instant>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Paced {
    fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, patience, taken: 0, waited: Duration::ZERO, waits_since: None, alarm: None }
    }

    /// Counts what was written, or fails if too little was for too long.
    fn judge(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let Poll::Ready(written) = written else {
            let since = *self.waits_since.get_or_insert_with(Instant::now);
            let left = self.patience.saturating_sub(self.waited + since.elapsed());
            let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(left)));
            return alarm.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()));
        };
        self.alarm = None;
        self.waited += self.waits_since.take().map_or(Duration::ZERO, |since| since.elapsed());
        self.taken += *written.as_ref().unwrap_or(&0);
        if self.taken >= LEAST {
            (self.taken, self.waited) = (0, Duration::ZERO);
        }
        Poll::Ready(written)
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, octets);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.judge(context, written)
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
    use std::future::poll_fn;

    /// Writes until the connection fails or has taken `most` octets.
    async fn fill(paced: &mut Paced, most: usize) -> io::Result<usize> {
        let (octets, mut sum) = (vec![0; LEAST], 0);
        while sum < most {
            sum += poll_fn(|context| Pin::new(&mut *paced).poll_write(context, &octets)).await?;
        }
        Ok(sum)
    }

    /// A connection whose client reads `part` octets at a time and then waits.
    async fn read_by(part: usize, wait: Duration) -> Paced {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        tokio::spawn(async move {
            let mut read = vec![0; part];
            loop {
                sleep(wait).await;
                client.readable().await.unwrap();
                let _ = client.try_read(&mut read);
            }
        });
        Paced::new(listener.accept().await.unwrap().0, Duration::from_millis(300))
    }

    #[tokio::test]
    async fn who_reads_too_little_is_not_waited_for() {
        for (part, wait) in [(0, Duration::from_secs(60)), (1, Duration::from_millis(2))] {
            let problem = fill(&mut read_by(part, wait).await, 1 << 30).await.unwrap_err();
            assert_eq!(problem.kind(), io::ErrorKind::TimedOut);
        }
    }

    #[tokio::test]
    async fn who_reads_in_time_gets_everything() {
        let mut paced = read_by(1 << 20, Duration::from_millis(2)).await;
        assert!(fill(&mut paced, 64 << 20).await.is_ok());
    }
}
