//! A session over SCTP in UDP datagrams, with a middlebox whose time is controlled by the test. RFC 6951.

use std::thread;

use hol_agent::{Server, Session, Transport};
use hol_base::{Duration, Time};
use hol_sctp_udp::{Association, AssociationEnd, Port, PortOutput, PortSocket, UdpPath, parse};
use hol_simco::{
    Batch, ConnectionInfo, Framing, Lifetime, Middlebox, Output, PAYLOAD_PROTOCOL, PORT, Reply, Request,
    SessionId, Unauthenticated,
};

/// A middlebox with one agent.
struct Host {
    sockets: Vec<PortSocket>,
    port: Port<u32>,
    agent: Option<(Association, UdpPath)>,
    middlebox: Middlebox,
    id: SessionId,
    now: Time,
}

impl Host {
    fn new() -> Self {
        let sockets = PortSocket::open_port("127.0.0.1:0".parse().unwrap(), None).unwrap();
        let port = Port::new("127.0.0.1".parse().unwrap(), PORT);
        let mut middlebox = Middlebox::firewall(Lifetime(3600));
        let id = middlebox.connect(Time::ZERO, ConnectionInfo::plain(Framing::Messages));
        Self { sockets, port, agent: None, middlebox, id, now: Time::ZERO }
    }

    fn server(&self) -> Server {
        let server = self.sockets[0].address().unwrap().to_string().parse().unwrap();
        Server { transport: Transport::SctpOverUdp, ..server }
    }

    /// Handles the datagrams that have arrived; returns their number.
    fn turn(&mut self) -> usize {
        let mut buffer = [0; 2048];
        let mut arrived = Vec::new();
        for socket in &self.sockets {
            while let Some(datagram) = socket.receive(&mut buffer).unwrap() {
                arrived.push((datagram.path, buffer[..datagram.length].to_vec()));
            }
        }
        arrived.iter().for_each(|(path, octets)| self.handle(*path, octets));
        self.answer();
        thread::yield_now();
        arrived.len()
    }

    fn handle(&mut self, path: UdpPath, octets: &[u8]) {
        if self.port.association_of(path, octets).is_some() {
            let (association, _) = self.agent.as_mut().unwrap();
            return association.receive(self.now, parse(octets).unwrap());
        }
        match self.port.answer(self.now, path, octets, true) {
            PortOutput::Datagram(datagram) => self.sockets[0].send(&datagram, path),
            PortOutput::Association(association) => {
                self.port.add(1, path, association.peer_port(), association.verification_tag());
                self.agent = Some((*association, path));
            }
            PortOutput::None => {}
        }
    }

    fn answer(&mut self) {
        let Some((association, path)) = &mut self.agent else { return };
        association.advance(self.now);
        let mut batch = Batch::default();
        while let Some(message) = association.next_message() {
            self.middlebox.receive(self.now, self.id, message, &mut batch);
        }
        for output in batch.release() {
            let Output::Send(_, message) = output else { continue };
            let stream = message.tid.0 % u32::from(association.streams());
            assert!(association.queue(stream as u16, PAYLOAD_PROTOCOL, message.to_bytes()));
        }
        association.flush();
        while let Some(datagram) = association.next_datagram() {
            self.sockets[0].send(&datagram, *path);
        }
    }

    /// Serves while a program of the agent runs in a thread.
    fn serve<R: Send + 'static>(&mut self, program: impl FnOnce() -> R + Send + 'static) -> R {
        let running = thread::spawn(program);
        while !running.is_finished() {
            self.turn();
        }
        running.join().unwrap()
    }

    fn end(&self) -> Option<AssociationEnd> {
        self.agent.as_ref().unwrap().0.end()
    }
}

/// RFC 9260 section 8.3: the middlebox would give up an agent that is silent for four minutes.
#[test]
fn heartbeats_are_answered_while_the_program_does_something_else() {
    let mut host = Host::new();
    let server = host.server();
    let mut session = host.serve(move || Session::open(&server, Box::new(Unauthenticated)).unwrap());
    for _ in 0..20 {
        host.now += Duration::from_secs(40);
        host.answer();
        while host.turn() == 0 {}
    }
    assert_eq!(host.end(), None);
    let answer = host.serve(move || {
        let answer = session.ask(Request::Prl).unwrap();
        session.close().unwrap();
        answer
    });
    assert_eq!(answer, Reply::Prl(Vec::new()));
}

/// RFC 9260 section 9.2.
#[test]
fn a_dropped_session_shuts_its_association_down() {
    let mut host = Host::new();
    let server = host.server();
    host.serve(move || drop(Session::open(&server, Box::new(Unauthenticated)).unwrap()));
    host.turn();
    assert_eq!(host.end(), Some(AssociationEnd::Closed));
}

/// A middlebox that vanishes delays the end of the program by no more than the time for the shutdown.
#[test]
fn a_session_without_a_middlebox_can_be_dropped() {
    let mut host = Host::new();
    let server = host.server();
    let mut session = host.serve(move || Session::open(&server, Box::new(Unauthenticated)).unwrap());
    drop(host);
    session.send(Request::Prl).unwrap();
    drop(session);
}
