//! Attacks by a malicious agent.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use hol_simco::{AddressTuple, Body, Location, Request};

use crate::peer::{Peer, octets, pdr, per, tuple};
use crate::server::Server;

/// An attack; its size is divided by the second argument.
pub struct Attack {
    pub name: &'static str,
    pub run: fn(&Server, usize) -> String,
}

pub const ALL: &[Attack] = &[
    Attack { name: "port-ranges", run: port_ranges },
    Attack { name: "parallel-ranges", run: parallel_ranges },
    Attack { name: "shapes", run: shapes },
    Attack { name: "lists", run: lists },
    Attack { name: "wide-beside-blocks", run: wide_beside_blocks },
    Attack { name: "fan-out", run: fan_out },
    Attack { name: "listeners", run: listeners },
    Attack { name: "handshakes", run: handshakes },
];

/// 10.x.y.z, so that each number is another host.
fn host(number: usize) -> [u8; 4] {
    let [_, b, c, d] = (number as u32).to_be_bytes();
    [10, b, c, d]
}

fn internal(number: usize, port: u16, ports: u16) -> AddressTuple {
    tuple(Location::Internal, (host(number), port), ports)
}

fn external(port: u16, ports: u16) -> AddressTuple {
    tuple(Location::External, ([198, 51, 100, 7], port), ports)
}

/// Sends all requests, a number at a time, and counts those granted.
fn ask(peer: &mut Peer, requests: impl Iterator<Item = Vec<u8>>) -> usize {
    let mut granted = 0;
    let mut requests = requests.peekable();
    while requests.peek().is_some() {
        let batch: Vec<Vec<u8>> = requests.by_ref().take(1000).collect();
        peer.say(&batch.concat());
        granted += batch.iter().filter(|_| matches!(peer.answer(), Body::Reply(_))).count();
    }
    granted
}

/// 9,600 times 4,096 ports at one end.
fn port_ranges(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let granted = ask(peer, (0..9600 / scale).map(|n| per(internal(n, 1025, 4096), external(0, 1))));
    format!("{granted} rules of 4,096 ports")
}

/// The same at both ends.
fn parallel_ranges(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let granted = ask(peer, (0..960 / scale).map(|n| per(internal(n, 1025, 512), external(2049, 512))));
    format!("{granted} rules of 512 pairs of ports")
}

/// A new combination of prefix lengths each; then another agent requests one more.
fn shapes(server: &Server, _: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let shaped = |n: usize| {
        let a0 = AddressTuple { prefix_length: 8 + (n / 8) as u8, ..internal(0, 5004, 1) };
        per(a0, AddressTuple { prefix_length: 8 + (n % 8) as u8, ..external(0, 1) })
    };
    let granted = ask(peer, (0..64).map(shaped));
    let other = &mut Peer::connect(server.address, "innocent");
    let a3 = AddressTuple { prefix_length: 24, ..external(0, 1) };
    let gets = ask(other, std::iter::once(per(internal(1, 5004, 1), a3)));
    assert_eq!(gets, 1, "another agent gets no combination of its own");
    format!("{granted} combinations of prefix lengths; another agent got its own")
}

/// 16 MB of PRL, with more rules than a list can have.
fn lists(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let held = ask(peer, (0..9000).map(|n| per(internal(n, 5004, 1), external(0, 1))));
    let count = 2_000_000 / scale;
    let mut writer = peer.socket.try_clone().expect("a socket");
    let writing = thread::spawn(move || {
        let lists = octets(Request::Prl).repeat(10_000);
        (0..count / 10_000).for_each(|_| writer.write_all(&lists).expect("it listens"));
    });
    peer.swallow(count / 10_000 * 10_000 * 8);
    writing.join().expect("all is said");
    format!("{count} lists of {held} rules refused")
}

/// Wide PERs, with 49,000 PDRs about other ports: as many as the quota of elements allows.
fn wide_beside_blocks(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let blocked = ask(peer, (0..49_000 / scale).map(|n| pdr(internal(n, 9, 1), external(9, 1))));
    let wide = |n: usize| {
        let a0 = AddressTuple { prefix_length: 8, ..internal(0, 10 + n as u16, 1) };
        per(a0, AddressTuple { prefix_length: 0, ..external(0, 1) })
    };
    let granted = ask(peer, (0..1000 / scale).map(wide));
    format!("{granted} wide rules beside {blocked} disable rules")
}

/// One PDR that ends 99,000 rules, of which 400 sessions are notified; half of them do not read.
fn fan_out(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let held = ask(peer, (0..99_000 / scale).map(|n| per(internal(n, 5004, 1), external(0, 1))));
    let sessions: Vec<Peer> = (0..400 / scale).map(|_| Peer::connect(server.address, "watcher")).collect();
    let count = sessions.len();
    let reading: Vec<_> =
        sessions.into_iter().enumerate().map(|(n, peer)| listen(peer, n % 2 == 0)).collect();
    let all = AddressTuple { prefix_length: 8, ..internal(0, 0, 1) };
    peer.say(&pdr(all, AddressTuple { prefix_length: 0, ..external(0, 1) }));
    assert!(matches!(peer.answer(), Body::Reply(_)));
    // Until everybody has been notified, and sessions that do not read have been closed.
    (0..held).for_each(|_| drop(peer.hear()));
    drop(reading);
    format!("one disable rule over {held} rules, {count} sessions told")
}

/// A session that reads its notifications, or does not.
fn listen(mut peer: Peer, listens: bool) -> Option<Peer> {
    if !listens {
        return Some(peer);
    }
    thread::spawn(move || {
        let mut piece = vec![0; 1 << 16];
        while peer.socket.read(&mut piece).is_ok_and(|count| count > 0) {}
    });
    None
}

/// PERs of which 4,000 sessions are notified.
fn listeners(server: &Server, scale: usize) -> String {
    let sessions: Vec<Peer> = (0..4000 / scale).map(|_| Peer::connect(server.address, "watcher")).collect();
    let peer = &mut Peer::connect(server.address, "attacker");
    let granted = ask(peer, (0..2000 / scale).map(|n| per(internal(n, 5004, 1), external(0, 1))));
    format!("{granted} rules that {} sessions are told of", sessions.len())
}

/// Unfinished TLS handshakes, 64 at a time.
fn handshakes(server: &Server, scale: usize) -> String {
    let hello = server.client_hello();
    let (mut open, mut answer) = (Vec::new(), [0; 1 << 14]);
    for _ in 0..6400 / scale / 64 {
        let mut some: Vec<TcpStream> =
            (0..64).map(|_| TcpStream::connect(server.protected).expect("it listens")).collect();
        some.iter_mut().for_each(|socket| socket.write_all(&hello).expect("it is there"));
        for socket in &mut some {
            assert!(socket.read(&mut answer).expect("an answer") > 0);
        }
        open.extend(some);
    }
    format!("{} handshakes begun", open.len())
}
