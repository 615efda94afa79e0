//! The UDP sockets of a port.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use hol_sctp_udp::{PortSocket, ReceivedDatagram};

/// Waits for a datagram; returns it with the number of its socket.
fn receive(port: &[PortSocket], buffer: &mut [u8]) -> (usize, ReceivedDatagram) {
    loop {
        let mut received = port.iter().map(|socket| socket.receive(buffer).unwrap()).enumerate();
        if let Some((number, datagram)) = received.find_map(|(number, one)| Some((number, one?))) {
            return (number, datagram);
        }
    }
}

/// A connected agent drops datagrams from any other address of the middlebox.
#[test]
fn a_port_answers_from_the_address_to_which_a_datagram_was_sent() {
    for (any, hosts) in [("0.0.0.0:0", &["127.0.0.1", "127.0.0.2"][..]), ("[::]:0", &["::1"])] {
        let port = PortSocket::open_port(any.parse().unwrap(), None).unwrap();
        for host in hosts {
            let address = SocketAddr::new(host.parse().unwrap(), port[0].address().unwrap().port());
            let agent = UdpSocket::bind((address.ip(), 0)).unwrap();
            agent.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            agent.connect(address).unwrap();
            agent.send(b"request").unwrap();
            let mut buffer = [0; 16];
            let (_, received) = receive(&port, &mut buffer);
            assert_eq!(received.path.local, address.ip());
            assert_eq!(received.path.peer, agent.local_addr().unwrap());
            assert_eq!(&buffer[..received.length], b"request");
            port[0].send(b"answer", received.path);
            assert_eq!(agent.recv(&mut buffer).unwrap(), 6);
        }
        assert!(port.iter().all(|socket| socket.receive(&mut [0; 16]).unwrap().is_none()));
    }
}

/// A flood of INITs fills one queue, and any other flood of a host another one, whatever its ports are.
#[test]
fn datagrams_of_a_host_are_in_two_queues_and_hosts_in_many() {
    let port = PortSocket::open_port("127.0.0.1:0".parse().unwrap(), None).unwrap();
    let mut queues = BTreeSet::new();
    for host in 1..100 {
        let queue_of = |verification_tag: u32| {
            let agent = UdpSocket::bind((Ipv4Addr::new(127, 0, 1, host), 0)).unwrap();
            let header =
                [[5000u16, 7626].map(u16::to_be_bytes).concat(), verification_tag.to_be_bytes().to_vec()];
            agent.send_to(&header.concat(), port[0].address().unwrap()).unwrap();
            receive(&port, &mut [0; 16]).0
        };
        let others: BTreeSet<usize> = (1..4).map(queue_of).collect();
        let inits: BTreeSet<usize> = (0..3).map(|_| queue_of(0)).collect();
        let (Some(other), Some(init)) = (others.first(), inits.first()) else { unreachable!() };
        assert_eq!((others.len(), inits.len()), (1, 1), "127.0.1.{host}");
        assert_eq!(*init, other + PortSocket::QUEUES / 2);
        queues.insert(*other);
    }
    assert!(queues.len() > PortSocket::QUEUES / 4, "{queues:?}");
}

/// The kernel reads a datagram that is too short for a verification tag, too.
#[test]
fn a_short_datagram_is_received() {
    let port = PortSocket::open_port("[::1]:0".parse().unwrap(), None).unwrap();
    let agent = UdpSocket::bind("[::1]:0").unwrap();
    agent.send_to(b"short", port[0].address().unwrap()).unwrap();
    assert_eq!(receive(&port, &mut [0; 16]).1.length, 5);
}

#[test]
fn a_port_belongs_to_one_program() {
    let port = PortSocket::open_port("127.0.0.1:0".parse().unwrap(), None).unwrap();
    let address = port[0].address().unwrap();
    assert_eq!(PortSocket::open_port(address, None).unwrap_err().kind(), ErrorKind::AddrInUse);
}
