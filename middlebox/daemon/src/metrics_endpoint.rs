//! The HTTP/1.1 endpoint for Prometheus, which supports only `GET /metrics`. RFC 9112.
//!
//! The endpoint accepts readers on its own thread, and serves each reader on a separate thread with timeouts, so that
//! no reader blocks the event loop or another reader.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::metrics::{MIME_TYPE, Metrics};

/// Timeout of each read of a request, and of sending the answer.
const IO_TIMEOUT: Duration = Duration::from_millis(250);
/// Maximum number of concurrent HTTP clients; further clients are rejected.
const MAX_READERS: usize = 64;
/// Maximum length of a request in octets.
const MAX_OCTETS: usize = 4096;
/// Maximum number of reads per request, so that a client that sends slowly does not occupy a reader for long.
const MAX_READS: usize = 4;

/// The socket on which the endpoint listens.
#[derive(Debug)]
pub(crate) struct Endpoint(TcpListener);

impl Endpoint {
    /// Opens the socket; port 0 means any free port.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).map(Self)
    }

    /// Returns the address of the endpoint, with the actual port.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves these metrics over HTTP until the process ends.
    pub fn serve(self, metrics: Metrics) -> io::Result<()> {
        let serve = move || {
            let readers = Arc::new(());
            for reader in self.0.incoming().flatten() {
                if Arc::strong_count(&readers) > MAX_READERS {
                    continue;
                }
                let (metrics, counted) = (metrics.clone(), Arc::clone(&readers));
                let answer = move || {
                    // An answer to a reader that is gone fails, which is irrelevant.
                    let _ = answer(reader, &metrics);
                    drop(counted);
                };
                // If no thread can be started, the reader gets no answer.
                let _ = thread::Builder::new().name("metrics".into()).spawn(answer);
            }
        };
        thread::Builder::new().name("metrics".into()).spawn(serve).map(drop)
    }
}

fn answer(mut reader: TcpStream, metrics: &Metrics) -> io::Result<()> {
    reader.set_read_timeout(Some(IO_TIMEOUT))?;
    reader.set_write_timeout(Some(IO_TIMEOUT))?;
    let (status, body) = match request_line(&mut reader)?.as_str() {
        "GET /metrics HTTP/1.1" | "GET /metrics HTTP/1.0" => ("200 OK", metrics.text()),
        line if line.starts_with("GET /") => ("404 Not Found", "try /metrics\n".to_owned()),
        _ => ("400 Bad Request", "this server only answers GET /metrics\n".to_owned()),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {MIME_TYPE}\r\nContent-Length: {length}\r\n");
    reader.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes())
}

/// Returns the first line of a complete request; empty if the request is too long or too slow.
fn request_line(reader: &mut TcpStream) -> io::Result<String> {
    let (mut octets, mut length) = ([0; MAX_OCTETS], 0);
    for _ in 0..MAX_READS {
        length += match reader.read(&mut octets[length..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => count,
        };
        if octets[..length].ends_with(b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&octets[..length]);
            return Ok(head.lines().next().unwrap_or_default().to_owned());
        }
        if length == MAX_OCTETS {
            break;
        }
    }
    Ok(String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(at: SocketAddr, pieces: &[&str]) -> String {
        let mut socket = TcpStream::connect(at).unwrap();
        for piece in pieces {
            socket.write_all(piece.as_bytes()).unwrap();
        }
        let mut answer = String::new();
        let _ = socket.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn only_requests_for_metrics_are_served() {
        let metrics = Metrics::default();
        metrics.lock().rules = 42;
        let endpoint = Endpoint::open("127.0.0.1:0".parse().unwrap()).unwrap();
        let at = endpoint.address().unwrap();
        endpoint.serve(metrics).unwrap();
        let answer = ask(at, &["GET /metrics HTTP/1.1\r\nHost", ": localhost\r\n\r\n"]);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(body.contains("\nsimco_rules 42\n"), "{body}");
        assert!(ask(at, &["GET / HTTP/1.1\r\n\r\n"]).starts_with("HTTP/1.1 404 "));
        assert!(ask(at, &["POST /metrics HTTP/1.1\r\n\r\n"]).starts_with("HTTP/1.1 400 "));
        let _silent: Vec<_> = (0..MAX_READERS / 2).map(|_| TcpStream::connect(at).unwrap()).collect();
        assert!(
            ask(at, &["GET /metrics HTTP/1.1\r\n\r\n"]).contains("simco_rules 42"),
            "while other readers are silent"
        );
        let endless = "x".repeat(MAX_OCTETS);
        assert!(!ask(at, &[&endless]).contains("200 OK"));
        assert!(ask(at, &["GET /metrics HTTP/1.0\r\n\r\n"]).contains("simco_rules 42"));
    }
}
