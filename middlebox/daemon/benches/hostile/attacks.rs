//! Attacks by a malicious agent.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::thread;

use hol_agent::Transport;
use hol_base::{Duration, Time};
use hol_sctp::wire::sctp::{Chunk, Init, Packet, Tsn};
use hol_sctp_udp::{Association, UdpPath, parse};
use hol_simco::{
    AddressTuple, Body, IpChoice, Lifetime, Location, NatMode, Pid, PrrParameters, Reply, Request,
    ReservedParity,
};

use crate::peer::{Peer, now, octets, pdr, per, per_for, sleep, tuple};
use crate::server::{Server, Setup};

/// An attack on the daemon. The second argument of `run` divides the size of the attack.
pub struct Attack {
    pub name: &'static str,
    pub setup: Setup,
    /// The transport of the agent whose response times are measured.
    pub transport: Transport,
    pub run: fn(&Server, usize) -> String,
}

impl Attack {
    const fn on_firewall(name: &'static str, run: fn(&Server, usize) -> String) -> Self {
        Self { name, setup: Setup::Firewall, transport: Transport::Tcp, run }
    }

    const fn over_udp(name: &'static str, run: fn(&Server, usize) -> String) -> Self {
        Self { transport: Transport::SctpOverUdp, ..Self::on_firewall(name, run) }
    }

    const fn on_nat(name: &'static str, run: fn(&Server, usize) -> String) -> Self {
        Self { setup: Setup::Nat, ..Self::on_firewall(name, run) }
    }
}

pub const ALL: &[Attack] = &[
    Attack::on_firewall("idle", idle),
    Attack::on_firewall("port-ranges", port_ranges),
    Attack::on_firewall("parallel-ranges", parallel_ranges),
    Attack::on_firewall("shapes", shapes),
    Attack::on_firewall("lists", lists),
    Attack::on_firewall("wide-beside-blocks", wide_beside_blocks),
    Attack::on_firewall("fan-out", fan_out),
    Attack::on_firewall("listeners", listeners),
    Attack::on_firewall("handshakes", handshakes),
    Attack::over_udp("idle-over-udp", idle),
    Attack::over_udp("inits", inits),
    Attack::over_udp("associations", associations),
    Attack::on_firewall("short-lives", short_lives),
    Attack::on_firewall("common-end", common_end),
    Attack::on_nat("port-searches", port_searches),
    Attack::on_nat("fragmented-ports", fragmented_ports),
    Attack::on_firewall("beyond-quota", beyond_quota),
    Attack::on_firewall("lifetimes", lifetimes),
    Attack::on_firewall("lifetimes-of-ranges", lifetimes_of_ranges),
    Attack::on_firewall("disabled-ranges", disabled_ranges),
    Attack::on_firewall("disabled-rules", disabled_rules),
    Attack::on_firewall("wrong-secrets", wrong_secrets),
    Attack { setup: Setup::UnreadAudit, ..Attack::on_firewall("unread-audit", unread_audit) },
];

/// Does nothing for some time, for comparison with the attacks.
fn idle(_: &Server, scale: usize) -> String {
    sleep(Duration::from_secs(10) / scale as u64);
    "no attack".to_owned()
}

/// Returns the address 10.x.y.z of the host with this number.
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

/// Sends all requests, several at a time, and returns the number of granted ones.
fn ask(peer: &mut Peer, requests: impl Iterator<Item = Vec<u8>>) -> usize {
    let mut granted = 0;
    let mut requests = requests.peekable();
    while requests.peek().is_some() {
        let batch: Vec<Vec<u8>> = requests.by_ref().take(1000).collect();
        peer.send(&batch.concat());
        granted += batch.iter().filter(|_| matches!(peer.answer(), Body::Reply(_))).count();
    }
    granted
}

/// Enables 9,600 rules, each with 4,096 ports at one end.
fn port_ranges(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let granted = ask(peer, (0..9600 / scale).map(|n| per(internal(n, 1025, 4096), external(0, 1))));
    format!("{granted} rules of 4,096 ports")
}

/// Enables 960 rules, each with 512 ports at both ends.
fn parallel_ranges(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let granted = ask(peer, (0..960 / scale).map(|n| per(internal(n, 1025, 512), external(2049, 512))));
    format!("{granted} rules of 512 pairs of ports")
}

/// Enables rules, each with a combination of prefix lengths that no other rule has; then another agent requests one
/// more.
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
    assert_eq!(gets, 1, "another agent gets no new combination of prefix lengths");
    format!("{granted} combinations of prefix lengths; another agent got its own")
}

/// Sends 16 MB of PRL (policy rule list) requests while there are more rules than a list can contain.
fn lists(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let held = ask(peer, (0..9000).map(|n| per(internal(n, 5004, 1), external(0, 1))));
    let count = 2_000_000 / scale;
    let mut writer = peer.socket.try_clone().expect("a socket");
    let writing = thread::spawn(move || {
        let lists = octets(Request::Prl).repeat(10_000);
        (0..count / 10_000).for_each(|_| writer.write_all(&lists).expect("the daemon listens"));
    });
    peer.skip_octets(count / 10_000 * 10_000 * 8);
    writing.join().expect("all requests are sent");
    format!("{count} lists of {held} rules refused")
}

/// Enables wide rules in addition to 49,000 PDRs (disable rules) for other ports, as many as the quota of elements
/// allows.
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

/// Sends one PDR (policy disable rule) that ends 99,000 rules, which must be announced to 400 sessions; half of these
/// do not read.
fn fan_out(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let held = ask(peer, (0..99_000 / scale).map(|n| per(internal(n, 5004, 1), external(0, 1))));
    let sessions: Vec<Peer> = (0..400 / scale).map(|_| Peer::connect(server.address, "watcher")).collect();
    let count = sessions.len();
    let reading: Vec<_> =
        sessions.into_iter().enumerate().map(|(n, peer)| listen(peer, n % 2 == 0)).collect();
    let all = AddressTuple { prefix_length: 8, ..internal(0, 0, 1) };
    peer.send(&pdr(all, AddressTuple { prefix_length: 0, ..external(0, 1) }));
    assert!(matches!(peer.answer(), Body::Reply(_)));
    // Waits until all sessions have been notified, and those that do not read have been closed.
    (0..held).for_each(|_| drop(peer.receive()));
    drop(reading);
    format!("one disable rule over {held} rules, {count} sessions notified")
}

/// Opens a session that reads its notifications if `listens`, and otherwise reads nothing.
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

/// Sends PERs (enable requests), each of which must be announced to 4,000 sessions.
fn listeners(server: &Server, scale: usize) -> String {
    let sessions: Vec<Peer> = (0..4000 / scale).map(|_| Peer::connect(server.address, "watcher")).collect();
    let peer = &mut Peer::connect(server.address, "attacker");
    let granted = ask(peer, (0..2000 / scale).map(|n| per(internal(n, 5004, 1), external(0, 1))));
    format!("{granted} rules, {} sessions notified", sessions.len())
}

/// Starts TLS handshakes without finishing them, 64 at a time.
fn handshakes(server: &Server, scale: usize) -> String {
    let hello = server.client_hello();
    let (mut open, mut answer) = (Vec::new(), [0; 1 << 14]);
    for _ in 0..6400 / scale / 64 {
        let mut some: Vec<TcpStream> =
            (0..64).map(|_| TcpStream::connect(server.protected).expect("the daemon listens")).collect();
        some.iter_mut().for_each(|socket| socket.write_all(&hello).expect("the daemon runs"));
        for socket in &mut some {
            assert!(socket.read(&mut answer).expect("an answer") > 0);
        }
        open.extend(some);
    }
    format!("{} handshakes begun", open.len())
}

/// Sends INITs to the port of SCTP over UDP as fast as possible, and reads no answer.
fn inits(server: &Server, scale: usize) -> String {
    let socket = UdpSocket::bind("127.0.0.2:0").expect("a socket");
    socket.connect(server.over_udp).expect("a socket");
    let (end, mut count) = (now() + Duration::from_secs(10) / scale as u64, 0);
    while now() < end {
        count += 1;
        let init = Init {
            initiate_tag: count,
            a_rwnd: 65_536,
            outbound_streams: 10,
            inbound_streams: 10,
            initial_tsn: Tsn(1),
            parameters: Vec::new(),
        };
        let packet = Packet {
            source_port: count as u16,
            destination_port: hol_simco::PORT,
            verification_tag: 0,
            zero_checksum: false,
            chunks: vec![Chunk::Init(Box::new(init))].into(),
        };
        // The queue of the loopback interface may be full.
        let _ = socket.send(&packet.to_bytes());
    }
    format!("{count} INITs")
}

/// Opens more associations from one address than the daemon accepts, and falls silent after each COOKIE ECHO.
fn associations(server: &Server, scale: usize) -> String {
    let socket = UdpSocket::bind("127.0.0.2:0").expect("a socket");
    socket.connect(server.over_udp).expect("a socket");
    socket.set_read_timeout(Some(std::time::Duration::from_millis(100))).expect("a socket");
    let path = UdpPath { peer: server.over_udp, local: [127, 0, 0, 2].into() };
    let (mut buffer, mut count) = ([0; 2048], 0);
    for _ in 0..20_000 / scale {
        let mut association = Association::connect(Time::ZERO, path, hol_simco::PORT);
        for _ in 0..4 {
            while let Some(datagram) = association.next_datagram() {
                socket.send(&datagram).expect("the daemon listens");
            }
            let Ok(length) = socket.recv(&mut buffer) else { break };
            if let Some(packet) = parse(&buffer[..length]) {
                association.receive(Time::ZERO, packet);
            }
            if association.is_established() {
                count += 1;
                break;
            }
        }
    }
    format!("{count} associations")
}

/// Sends all requests without waiting for answers, which another thread reads. Returns the number of octets read.
fn flood(peer: &mut Peer, requests: impl Iterator<Item = Vec<u8>>) -> usize {
    let mut reader = peer.socket.try_clone().expect("a socket");
    let reading = thread::spawn(move || {
        let (mut piece, mut octets) = (vec![0; 1 << 16], 0);
        while let Ok(count @ 1..) = reader.read(&mut piece) {
            octets += count;
        }
        octets
    });
    let mut requests = requests.peekable();
    while requests.peek().is_some() {
        peer.send(&requests.by_ref().take(1000).collect::<Vec<_>>().concat());
    }
    peer.send(&octets(Request::St));
    reading.join().expect("the reader does not panic")
}

/// Enables 50,000 rules for the same flow, each with a lifetime of one second, again and again for 20 s.
fn short_lives(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let all: Vec<Vec<u8>> =
        (0..50_000 / scale).map(|n| per_for(Lifetime(1), internal(n, 5004, 1), external(6004, 1))).collect();
    let end = now() + Duration::from_secs(20) / scale as u64;
    let mut rounds = 0;
    let requests = std::iter::from_fn(|| {
        rounds += 1;
        (now() < end).then(|| all.iter().cloned())
    });
    flood(peer, requests.flatten());
    format!("{} rules of 1 s, {} rounds", all.len(), rounds - 1)
}

/// Enables 99,000 rules that all expire after 10 s, which must be announced to 360 sessions.
fn common_end(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let lifetime = Lifetime(if scale > 1 { 1 } else { 10 });
    let rules = (0..99_000 / scale).map(|n| per_for(lifetime, internal(n, 5004, 1), external(0, 1)));
    let held = ask(peer, rules);
    let sessions: Vec<Peer> = (0..360 / scale).map(|_| Peer::connect(server.address, "watcher")).collect();
    let count = sessions.len();
    sessions.into_iter().for_each(|peer| drop(listen(peer, true)));
    (0..held).for_each(|_| drop(peer.receive()));
    format!("{held} rules that end together, {count} sessions notified")
}

/// Requests more ports than the quota allows, and mappings of more ports than a rule may have, from a NAT that has not
/// assigned any ports.
fn port_searches(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let count = 400_000 / scale;
    let many = |n: usize| match n % 2 {
        0 => prr(60_000, ReservedParity::Any),
        _ => per(internal(n, 1025, 60_000), external(0, 1)),
    };
    flood(peer, (0..count).map(many));
    format!("{count} searches for 60,000 ports")
}

/// Reserves 8,000 single ports and releases every second one; then requests ranges of 8,000 ports.
fn fragmented_ports(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let pids: Vec<Pid> = (0..8000 / scale).filter_map(|_| reserve(peer, 1)).collect();
    let ends = pids.iter().step_by(2).map(|pid| octets(Request::Plc { pid: *pid, lifetime: Lifetime(0) }));
    let freed = ask(peer, ends);
    let count = 200_000 / scale;
    flood(peer, (0..count).map(|_| prr(8000, ReservedParity::Odd)));
    format!("{count} searches among {freed} gaps")
}

fn reserve(peer: &mut Peer, ports: u16) -> Option<Pid> {
    peer.send(&prr(ports, ReservedParity::Any));
    match peer.answer() {
        Body::Reply(Reply::Prr(rule)) => Some(rule.pid),
        _ => None,
    }
}

fn prr(ports: u16, parity: ReservedParity) -> Vec<u8> {
    let parameters = PrrParameters {
        nat_mode: NatMode::Traditional,
        parity,
        inside: IpChoice::V4,
        outside: IpChoice::V4,
        protocol: crate::peer::UDP,
        port_range: ports,
    };
    octets(Request::Prr { parameters, lifetime: Lifetime(3600), gid: None })
}

/// Requests rules with 511 pairs of ports although the quota of elements is exhausted.
fn beyond_quota(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let pairs = |n| per(internal(n, 1025, 511), external(2049, 511));
    let held = ask(peer, (0..200).map(pairs));
    let count = 100_000 / scale;
    flood(peer, (200..200 + count).map(pairs));
    format!("{count} rules of 511 pairs of ports beside {held}")
}

/// Changes the lifetimes of 1,000 rules without a pause.
fn lifetimes(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let pids: Vec<Pid> = (0..1000 / scale).filter_map(|n| enable(peer, n)).collect();
    let count = 400_000 / scale;
    let changes = pids
        .iter()
        .cycle()
        .take(count)
        .zip(0_u32..)
        .map(|(pid, n)| octets(Request::Plc { pid: *pid, lifetime: Lifetime(1 + n % 3) }));
    flood(peer, changes);
    format!("{count} changes of the lifetimes of {} rules", pids.len())
}

/// Enables 190 rules of 512 pairs of ports; returns their PIDs.
fn enable_ranges(peer: &mut Peer, scale: usize) -> Vec<Pid> {
    let enabled = |n| {
        peer.send(&per(internal(n, 1025, 512), external(2049, 512)));
        match peer.answer() {
            Body::Reply(Reply::Per(rule)) => Some(rule.pid),
            _ => None,
        }
    };
    (0..190 / scale).filter_map(enabled).collect()
}

/// Changes the lifetimes of rules of 512 pairs of ports without a pause.
fn lifetimes_of_ranges(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let pids = enable_ranges(peer, scale);
    let count = 2000 / scale;
    let change = |(pid, n): (&Pid, u32)| octets(Request::Plc { pid: *pid, lifetime: Lifetime(3600 + n % 3) });
    flood(peer, pids.iter().cycle().take(count).zip(0_u32..).map(change));
    format!("{count} changes of the lifetimes of {} rules of 512 pairs of ports", pids.len())
}

/// Sends one PDR that ends 190 rules of 512 pairs of ports.
fn disabled_ranges(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let count = enable_ranges(peer, scale).len();
    format!("one disable rule over {count} rules of 512 pairs of ports, {}", disable_all(peer, count))
}

/// Sends one PDR that ends 99,000 rules.
fn disabled_rules(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let held = ask(peer, (0..99_000 / scale).map(|n| per(internal(n, 5004, 1), external(0, 1))));
    format!("one disable rule over {held} rules, {}", disable_all(peer, held))
}

/// Ends all rules with one PDR; returns how long that takes.
fn disable_all(peer: &mut Peer, count: usize) -> String {
    let start = now();
    let all = AddressTuple { prefix_length: 8, ..internal(0, 0, 1) };
    peer.send(&pdr(all, AddressTuple { prefix_length: 0, ..external(0, 1) }));
    assert!(matches!(peer.answer(), Body::Reply(_)));
    (0..count).for_each(|_| drop(peer.receive()));
    format!("ended after {}", now().since(start))
}

fn enable(peer: &mut Peer, n: usize) -> Option<Pid> {
    peer.send(&per(internal(n, 5004, 1), external(6004, 1)));
    match peer.answer() {
        Body::Reply(Reply::Per(rule)) => Some(rule.pid),
        _ => None,
    }
}

/// Tries to open sessions with a wrong secret, again and again over 16 connections at a time.
fn wrong_secrets(server: &Server, scale: usize) -> String {
    let address = server.address;
    let guess = move || (0..1000 / scale).filter(|_| Peer::is_refused(address)).count();
    let guessing: Vec<_> = (0..16).map(|_| thread::spawn(guess)).collect();
    let refused: usize =
        guessing.into_iter().map(|guessing| guessing.join().expect("the thread does not panic")).sum();
    format!("{refused} sessions refused")
}

/// Sends requests while nobody reads the audit log.
fn unread_audit(server: &Server, scale: usize) -> String {
    let peer = &mut Peer::connect(server.address, "attacker");
    let end = now() + Duration::from_secs(20) / scale as u64;
    let mut count = 0;
    while now() < end {
        count += ask(peer, (0..200).map(|_| octets(Request::Prl)));
        sleep(Duration::from_millis(100));
    }
    format!("{count} lists, and a log that nobody reads")
}
