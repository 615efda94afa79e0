//! Performs TLS handshakes with all peers at the same time, so that no peer can keep the standby out.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};

use hol_base::Duration;
use hol_simco::SessionId;
use rustls::ServerConnection;

use crate::clock::Clock;
use crate::unauthenticated_connections::UnauthenticatedConnections;

/// The TLS handshakes in progress. Each has a thread, which ends when its socket is shut down.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    connections: UnauthenticatedConnections,
    sockets: BTreeMap<SessionId, TcpStream>,
    /// The number of the handshake that began last.
    last: u32,
}

impl Handshakes {
    /// Maximum number of handshakes in progress. A further one replaces the oldest handshake from the address with most
    /// handshakes.
    const MAX_HANDSHAKES: usize = 16;

    pub fn add(&mut self, socket: TcpStream, from: IpAddr) -> SessionId {
        self.last = self.last.wrapping_add(1);
        let id = SessionId(self.last);
        self.connections.add(id, from);
        self.sockets.insert(id, socket);
        if self.connections.len() > Self::MAX_HANDSHAKES
            && let Some(other) = self.connections.next_to_displace()
            && let Some(socket) = self.remove(other)
        {
            // The handshake may have ended by itself.
            let _ = socket.shutdown(Shutdown::Both);
        }
        id
    }

    pub fn remove(&mut self, id: SessionId) -> Option<TcpStream> {
        self.connections.remove(id);
        self.sockets.remove(&id)
    }
}

/// Performs a TLS handshake, which must end within the given time even if the peer's octets arrive slowly.
pub(super) fn perform_handshake(
    session: &mut ServerConnection,
    socket: &mut TcpStream,
    clock: Clock,
    patience: Duration,
) -> io::Result<()> {
    let deadline = clock.now() + patience;
    while session.is_handshaking() || session.wants_write() {
        let left = deadline.saturating_since(clock.now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left = Some(std::time::Duration::from_nanos(left.as_nanos()));
        if session.wants_write() {
            socket.set_write_timeout(left)?;
            session.write_tls(socket)?;
            continue;
        }
        socket.set_read_timeout(left)?;
        match session.read_tls(socket) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            // The socket reports its timeout like this.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
        if let Err(problem) = session.process_new_packets() {
            // The peer gets the TLS alert.
            let _ = session.write_tls(socket);
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::thread;

    use hol_agent::crypto_provider;
    use rustls::ServerConfig;
    use rustls::server::ResolvesServerCertUsingSni;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn a_handshake_with_slow_octets_ends_at_its_timeout() {
        let config = ServerConfig::builder_with_provider(crypto_provider());
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
        let mut session = ServerConnection::new(Arc::new(config)).unwrap();
        let (mut client, mut server) = pair();
        let trickle = thread::spawn(move || {
            // The start of a record of 1,024 octets, with which a handshake begins.
            let octets = [0x16, 3, 1, 4, 0, 1, 0, 3, 0xfc].into_iter().chain([3; 100]);
            for octet in octets {
                let _ = client.write_all(&[octet]);
                thread::park_timeout(std::time::Duration::from_millis(20));
            }
        });
        let patience = Duration::from_millis(200);
        let ended = perform_handshake(&mut session, &mut server, Clock::start(), patience);
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        trickle.join().unwrap();
    }

    #[test]
    fn the_oldest_handshake_of_the_largest_source_is_displaced() {
        let mut handshakes = Handshakes::default();
        let [attacker, standby] = ["192.0.2.66", "10.9.0.2"].map(|address| address.parse().unwrap());
        let (_client, server) = pair();
        let theirs = handshakes.add(server, standby);
        for _ in 0..3 * Handshakes::MAX_HANDSHAKES {
            let (client, server) = pair();
            handshakes.add(server, attacker);
            drop(client);
        }
        assert_eq!(handshakes.sockets.len(), Handshakes::MAX_HANDSHAKES);
        assert!(handshakes.remove(theirs).is_some());
    }
}
