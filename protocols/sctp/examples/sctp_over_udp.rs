//! SCTP over a UDP socket (RFC 6951), on the system's clock: a server that echoes messages in a thread, and a client.

#![expect(clippy::disallowed_types, reason = "a program with a socket reads the system's clock")]

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use std::{io, thread};

use hol_sctp::base::{Seed, Time};
use hol_sctp::transport::{Command, Endpoint as _, Event, Input, Message, Output};
use hol_sctp::wire::{Packet, Transport, sctp};
use hol_sctp::{Config, Endpoint};

fn main() -> io::Result<()> {
    let [client, server] = [UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?];
    let (here, there) = (client.local_addr()?, server.local_addr()?);
    // The UDP header takes eight octets of each packet. Over a real network seeds must be unpredictable.
    let config = Config::linux_6_12().with_network_mtu(1500 - 8);
    let (own, peer) = (vec![here.ip()], vec![there.ip()]);
    let mut connecting =
        Endpoint::connect(config.clone(), own, here.port(), peer.clone(), there.port(), Seed(1).rng());
    let listening = Endpoint::listen(config, peer, there.port(), Seed(2).rng());
    let echo = thread::spawn(move || {
        drive(&server, here, listening, |event| match event {
            Event::Received(message) => Some(Command::Send(Message::new(message.payload))),
            _ => None,
        })
    });
    connecting.handle(Time::ZERO, Input::Command(Command::Connect));
    drive(&client, there, connecting, |event| match event {
        Event::Connected => Some(Command::Send(Message::new("hello"))),
        Event::Received(message) => {
            println!("the server answered {:?}", message.payload);
            Some(Command::Close)
        }
        _ => None,
    })?;
    echo.join().expect("the server does not panic")
}

/// Runs one endpoint until its association has ended. `react` returns the application's answer to an event.
fn drive(
    socket: &UdpSocket,
    peer: SocketAddr,
    mut endpoint: Endpoint,
    mut react: impl FnMut(Event) -> Option<Command>,
) -> io::Result<()> {
    let (start, local) = (Instant::now(), socket.local_addr()?);
    let mut octets = [0; 65_536];
    loop {
        let now = Time::from_nanos(start.elapsed().as_nanos() as u64);
        match endpoint.poll(now) {
            Output::Transmit(packet) => {
                let Transport::Sctp(packet) = packet.transport else { unreachable!("it speaks SCTP") };
                socket.send_to(&packet.to_bytes(), peer)?;
            }
            Output::Event(Event::Closed) => return Ok(()),
            Output::Event(Event::Failed { reason }) => return Err(io::Error::other(reason)),
            Output::Event(event) => {
                if let Some(command) = react(event) {
                    endpoint.handle(now, Input::Command(command));
                }
            }
            Output::Wait(until) => {
                let wait = until.map(|until| Duration::from_nanos(until.since(now).as_nanos()));
                socket.set_read_timeout(wait)?;
                let Ok((length, _)) = socket.recv_from(&mut octets) else { continue };
                // RFC 9260 section 6.8: an invalid packet is dropped.
                let Ok(packet) = sctp::Packet::parse(octets[..length].to_vec().into()) else { continue };
                let now = Time::from_nanos(start.elapsed().as_nanos() as u64);
                endpoint.handle(now, Input::Packet(Packet::new(peer.ip(), local.ip(), packet)));
            }
        }
    }
}
