//! A session over SCTP.

use std::io;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};

use hol_agent::{Server, Session, Transport, tuples};
use hol_base::Time;
use hol_simco::{
    Batch, ConnectionInfo, Direction, Enable, Framing, Lifetime, Middlebox, Output, PAYLOAD_PROTOCOL,
    PerParameters, PortParity, Reply, Request, Unauthenticated,
};
use hol_system::Association;
use socket2::{Domain, Protocol, Socket, Type};

/// Opens a listening socket; returns its address, too.
fn listen() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::SCTP)).unwrap();
    let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&address.into()).unwrap();
    socket.listen(1).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, address)
}

/// Serves one association until it ends; returns the number of received messages.
fn serve(listener: Socket) -> JoinHandle<u64> {
    thread::spawn(move || {
        let mut association = Association::new(listener.accept().unwrap().0).unwrap();
        let mut middlebox = Middlebox::firewall(Lifetime(3600));
        let id = middlebox.connect(Time::ZERO, ConnectionInfo::plain(Framing::Messages));
        // The buffer is so small that long messages arrive in parts.
        let (mut buffer, mut count) = ([0; 24], 0);
        loop {
            let message = match association.receive(&mut buffer) {
                Ok(Some(message)) => message,
                Ok(None) => continue,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return count,
                Err(error) => panic!("{error}"),
            };
            count += 1;
            let mut batch = Batch::default();
            middlebox.receive(Time::ZERO, id, message, &mut batch);
            for output in batch.release() {
                let Output::Send(_, message) = output else { return count };
                let stream = message.tid.0 % u32::from(association.streams().unwrap());
                association.send(&message.to_bytes(), stream as u16, PAYLOAD_PROTOCOL).unwrap();
            }
        }
    })
}

fn enable(port: u16) -> Request {
    let (internal, external) = (format!("10.0.0.5:{port}"), "198.51.100.7:6000");
    let (internal, external) = tuples(&internal.parse().unwrap(), &external.parse().unwrap(), 17);
    let parameters = PerParameters { parity: PortParity::Any, direction: Direction::BiDirectional };
    Request::Per { enable: Enable { parameters, internal, external, lifetime: Lifetime(300) }, gid: None }
}

#[test]
#[ignore = "needs a kernel with SCTP (modprobe sctp)"]
fn messages_are_user_messages_on_streams_in_turn() {
    let (listener, address) = listen();
    let served = serve(listener);
    let server = Server { transport: Transport::Sctp, ..address.to_string().parse().unwrap() };
    let mut session = Session::open(&server, Box::new(Unauthenticated)).unwrap();
    let tids: Vec<_> = (1..=1000).map(|port| session.send(enable(port)).unwrap()).collect();
    for tid in tids {
        assert!(matches!(session.answer(tid).unwrap().unwrap(), Reply::Per(_)));
    }
    let Reply::Prl(pids) = session.ask(Request::Prl).unwrap() else { panic!("no list") };
    assert_eq!(pids.len(), 1000);
    session.close().unwrap();
    assert_eq!(served.join().unwrap(), 1 + 1000 + 1 + 1, "SE, PER, PRL, ST");
}
