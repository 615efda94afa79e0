//! TLS handshakes of attackers.

#[path = "../../../tests/certificates/mod.rs"]
mod certificates;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use certificates::Authority;
use hol_agent::{Tls, crypto_provider};
use hol_base::Duration;
use hol_simco::{Middlebox, Policy};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use socket2::{Domain, Socket, Type};

use super::super::Daemon;
use super::world::{Plan, World};
use crate::{Limits, Settings, TlsSettings, Transport};

/// Returns a daemon that serves TLS and requires certificates, and the configuration of a client without one.
fn world() -> (World, Arc<ClientConfig>) {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "authority");
    let (certificate, key) = authority.certify("localhost");
    let agents = Some(authority.certificate.clone());
    let tls = TlsSettings { certificate: Some(certificate), key: Some(key), agents };
    let tls = Settings { tls, ..Settings::default() }.tls().unwrap();
    let policy = Policy::parse("[agents.innocent]").unwrap();
    let world = Plan { tls, policy, transport: Transport::Tls, ..Plan::default() }.open();
    assert!(Tls::read(&authority.certificate, None).is_ok());
    let roots = hol_agent::read_authorities(&authority.certificate).unwrap();
    let builder =
        ClientConfig::builder_with_provider(crypto_provider()).with_safe_default_protocol_versions();
    (world, Arc::new(builder.unwrap().with_root_certificates(roots).with_no_client_auth()))
}

fn connect(world: &World) -> TcpStream {
    let socket = TcpStream::connect(world.address).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// Returns the first octets of a handshake.
fn hello(config: &Arc<ClientConfig>) -> (ClientConnection, Vec<u8>) {
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(config.clone(), name).unwrap();
    let mut octets = Vec::new();
    client.write_tls(&mut octets).unwrap();
    (client, octets)
}

#[test]
fn concurrent_handshakes_are_performed_a_few_per_turn() {
    let (mut world, config) = world();
    let mut sockets: Vec<TcpStream> = (0..100).map(|_| connect(&world)).collect();
    for socket in &mut sockets {
        socket.write_all(&hello(&config).1).unwrap();
    }
    world.settle();
    let mut answer = [0; 1 << 14];
    assert!(
        sockets.iter_mut().all(|socket| socket.read(&mut answer).unwrap() > 500),
        "each handshake is answered"
    );
    let max = world.daemon.metrics.lock().max_work;
    assert!(
        (Limits::AGENT_SHARE..=Limits::TURN_WORK + Limits::AGENT_SHARE).contains(&max),
        "a turn of {max}"
    );
}

#[test]
fn the_oldest_unfinished_handshake_is_displaced() {
    let (mut world, _) = world();
    let sockets: Vec<TcpStream> = (0..Daemon::MAX_HANDSHAKES + 10).map(|_| connect(&world)).collect();
    world.settle();
    assert_eq!(world.daemon.connections.len(), Daemon::MAX_HANDSHAKES);
    let gone = sockets.iter().filter(|socket| socket.peek(&mut [0]).is_ok_and(|count| count == 0)).count();
    assert_eq!(gone, 10);
    world.skip(Middlebox::TIMEOUT);
    // The clients do not close, so their connections linger before they are removed.
    world.skip(Duration::from_secs(2));
    assert_eq!(world.daemon.connections.len(), 0, "all handshakes time out together");
}

/// Connects from another address of the loopback interface.
fn connect_from(host: [u8; 4], world: &World) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((host, 0)).into()).unwrap();
    socket.connect(&world.address.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.into()
}

#[test]
fn handshakes_from_one_address_do_not_displace_others() {
    let (mut world, config) = world();
    let others: Vec<TcpStream> = (1..100).map(|host| connect_from([127, 0, 1, host], &world)).collect();
    world.settle();
    let mut attackers = Vec::new();
    for _ in 0..3 * Daemon::MAX_HANDSHAKES {
        let mut attacker = connect_from([127, 0, 0, 66], &world);
        attacker.write_all(&hello(&config).1[..20]).unwrap();
        attackers.push(attacker);
        if attackers.len() % 64 == 0 {
            world.settle();
        }
    }
    world.settle();
    assert_eq!(world.daemon.connections.len(), Daemon::MAX_HANDSHAKES);
    let is_gone = |socket: &&TcpStream| socket.peek(&mut [0]).is_ok_and(|count| count == 0);
    assert_eq!(others.iter().filter(is_gone).count(), 0);
}

/// The octets arrive one at a time, each just before the middlebox's timeout.
#[test]
fn a_slow_handshake_times_out_after_a_minute() {
    let (mut world, config) = world();
    let mut socket = connect(&world);
    for octet in hello(&config).1.iter().take(70) {
        if socket.write_all(&[*octet]).is_err() {
            break;
        }
        world.skip(Duration::from_secs(1));
    }
    assert_eq!(world.daemon.connections.len(), 0);
}

#[test]
fn invalid_handshakes_end_the_connection_and_are_counted() {
    let (mut world, config) = world();
    for octets in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), hello(&config).1.repeat(2), vec![0x16; 70_000]] {
        let mut socket = connect(&world);
        // The kernel does not take all octets if the daemon has closed before.
        let _ = socket.write_all(&octets);
        world.settle();
        let mut answer = Vec::new();
        let end = socket.read_to_end(&mut answer);
        assert!(end.is_ok() || end.is_err_and(|error| error.kind() != ErrorKind::WouldBlock));
    }
    assert_eq!(world.daemon.connections.len(), 0);
    assert_eq!(world.daemon.metrics.lock().refused_handshakes, 3);
}

/// With TLS 1.3 a client may finish before the server has noticed that there is no certificate.
#[test]
fn a_client_without_a_certificate_is_refused_before_its_first_message() {
    let (mut world, config) = world();
    let (mut client, octets) = hello(&config);
    let mut socket = connect(&world);
    socket.write_all(&octets).unwrap();
    let failure = loop {
        world.turn();
        match client.read_tls(&mut socket) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(error) => panic!("{error}"),
        }
        if let Err(failure) = client.process_new_packets() {
            break failure;
        }
        while client.wants_write() {
            client.write_tls(&mut socket).unwrap();
        }
    };
    assert!(matches!(failure, rustls::Error::AlertReceived(_)), "{failure}");
    assert_eq!(world.daemon.metrics.lock().refused_handshakes, 1);
}
