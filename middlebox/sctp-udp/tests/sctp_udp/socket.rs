//! The UDP socket of a port.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use hol_sctp_udp::PortSocket;

/// A connected agent drops datagrams from any other address of the middlebox.
#[test]
fn a_socket_answers_from_the_address_to_which_a_datagram_was_sent() {
    for (any, hosts) in [("0.0.0.0:0", &["127.0.0.1", "127.0.0.2"][..]), ("[::]:0", &["::1"])] {
        let port = PortSocket::open(any.parse().unwrap(), None).unwrap();
        for host in hosts {
            let address = SocketAddr::new(host.parse().unwrap(), port.address().unwrap().port());
            let agent = UdpSocket::bind((address.ip(), 0)).unwrap();
            agent.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            agent.connect(address).unwrap();
            agent.send(b"request").unwrap();
            let mut buffer = [0; 16];
            let received =
                std::iter::repeat_with(|| port.receive(&mut buffer).unwrap()).flatten().next().unwrap();
            assert_eq!(received.path.local, address.ip());
            assert_eq!(received.path.peer, agent.local_addr().unwrap());
            assert_eq!(&buffer[..received.length], b"request");
            port.send(b"answer", received.path);
            assert_eq!(agent.recv(&mut buffer).unwrap(), 6);
        }
        assert_eq!(port.receive(&mut [0; 16]).unwrap(), None);
    }
}
