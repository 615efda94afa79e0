//! Our SCTP beside another's, each a process on this machine, in datagrams of UDP (RFC 6951) over loopback, which are lost as told.

mod peer;
mod wire;

use std::net::UdpSocket;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use hol_base::Seed;

use super::talks::{LOSSES, SIDES, Side, TALKS, Talk, Terms};
pub use peer::{Peer, Port, make};
use wire::Wire;

/// No process is made while ports are tried: until it runs its program it would hold them, too.
static PORTS_ARE_TRIED: Mutex<()> = Mutex::new(());

/// All that may be told apart.
#[derive(Debug)]
struct Case {
    talk: Talk,
    own_side: Side,
    terms: Terms,
    loss: f64,
}

/// A port of UDP that is free, and stays so for who asks the kernel for any.
fn free_port() -> u16 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let port =
            20_000 + (std::process::id() as usize * 97 + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
        if UdpSocket::bind(("127.0.0.1", port as u16)).is_ok() {
            return port as u16;
        }
    }
}

/// What is not as it has to be.
fn wrong(peer: &Peer, case: &Case, seed: u64) -> Option<String> {
    let Case { talk, own_side, terms, loss } = case;
    let (ports, mut own) = {
        let _nobody_is_made = PORTS_ARE_TRIED.lock().unwrap();
        let peer_port = match peer.port {
            Port::OfEach => free_port(),
            Port::OfAll(port) => port,
        };
        let ports = [free_port(), peer_port];
        (ports, Wire::new(*own_side, talk, *terms, ports, *loss, Seed(seed)))
    };
    let mut process = peer.start(own_side.other(), [ports[1], ports[0]], talk, *terms);
    let done = own.talk();
    let Some(peer_done) = process.done() else { return Some(format!("the peer said nothing; {done:?}")) };
    let went_well = talk.went_well(*own_side, &done) && talk.went_well(own_side.other(), &peer_done);
    let as_agreed = terms.interleaving == own.has_interleaved;
    (!went_well || !as_agreed)
        .then(|| format!("we {done:?}, the peer {peer_done:?}, I-DATA: {}", own.has_interleaved))
}

/// All of the table, with us as client and as server, and over all losses.
pub fn every_talk_goes_well(peer: &Peer, terms: Terms) {
    let cases: Vec<Case> = TALKS
        .iter()
        .flat_map(|talk| SIDES.map(|side| (talk, side)))
        .flat_map(|(talk, own_side)| LOSSES.map(|loss| Case { talk: *talk, own_side, terms, loss }))
        .collect();
    let (next, problems) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..peer.port.side_by_side() {
            scope.spawn(|| {
                while let Some((seed, case)) =
                    cases.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed))
                {
                    let what = wrong(peer, case, seed as u64);
                    let Case { talk, own_side, loss, .. } = case;
                    let what = match (what, (peer.cannot)(talk, terms)) {
                        (Some(_), true) => None,
                        (None, true) => Some("it can now".to_owned()),
                        (what, false) => what,
                    };
                    if let Some(what) = what {
                        let name = own_side.name();
                        let problem = format!("{}, we are the {name}, {loss} lost: {what}", talk.name);
                        problems.lock().unwrap().push(problem);
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), cases.len(), problems.join("\n"));
}
