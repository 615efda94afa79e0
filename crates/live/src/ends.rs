//! `hol live serve`: this host has the servers of flows whose clients another host has, and the other way round.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use hol_base::{Duration, Seed};
use hol_scenario::{Sample, Scenario};
use hol_sockets::{Half, Halves, News, Post, Seen, SocketsError, TellOf};

use crate::check::{self, Path};
use crate::control::{ControlError, Keys, Outbox, Reply, Request};
use crate::host;
use crate::placement::Placement;
use crate::ports::Ports;
use crate::server::Deeds;
use crate::session::say;

/// Samples that one word of the control channel has at most …
const PART: usize = 1 << 16;
/// … and all of a run. With one more than a run may have it is refused as in every world.
pub(crate) const MOST_SEEN: usize = Sample::MOST as usize + 1;

/// The ends of a client's flows that are here.
pub(crate) struct Ends {
    outbox: Arc<Mutex<Outbox<TcpStream>>>,
    keys: Keys,
    placement: Placement,
    ports: Option<Ports>,
    post: Post,
    halves: Option<Halves>,
}

impl Ends {
    /// Of the client at the other end of a stream.
    pub(crate) fn new(
        stream: &TcpStream,
        outbox: Arc<Mutex<Outbox<TcpStream>>>,
        keys: Keys,
        ports: Option<Ports>,
    ) -> Result<Self, ControlError> {
        let address = |address: io::Result<SocketAddr>| {
            // One of IPv4 may have come to a socket of IPv6.
            address.map(|address| address.ip().to_canonical())
        };
        let placement = Placement {
            client: address(stream.peer_addr())?,
            server: address(stream.local_addr())?,
            serves: true,
        };
        Ok(Self { outbox, keys, placement, ports, post: Post::default(), halves: None })
    }

    /// Has the ends of flows listen that are here, and be looked at once in an `interval`.
    fn listen(
        &mut self,
        scenario: &Scenario,
        seed: Seed,
        interval: Option<Duration>,
    ) -> Result<Vec<u16>, String> {
        // What is under way is not wanted any more.
        self.halves = None;
        let shortest = Sample::SHORTEST_INTERVAL;
        if let Some(interval) = interval.filter(|interval| *interval < shortest) {
            return Err(format!(
                "`series`: a run is looked at every {shortest} at most, not every {interval}"
            ));
        }
        check::possible(scenario, Path::Between).map_err(|why| why.to_string())?;
        let mut assignments = self.placement.assignments(scenario, seed);
        let here = self.placement.here(scenario, &assignments);
        self.ports.map_or(Ok(()), |ports| ports.give(&mut assignments, &here))?;
        let outbox = Arc::clone(&self.outbox);
        // Whether it could be told is noticed by whoever listens.
        let tell: Arc<TellOf> =
            Arc::new(move |flow: usize, news: News| drop(say(&outbox, &Reply::News(flow, news))));
        let secret = self.keys.of("tls");
        let listening = Halves::listen(scenario, assignments, &here, secret, (&tell, &self.post), interval);
        let (halves, ports) = listening.map_err(|problem| problem.to_string())?;
        self.halves = Some(halves);
        Ok(ports)
    }

    /// Says how the senders here stood: no more than anybody takes of a run.
    fn tell_seen(&self, halves: &[(usize, Half)]) -> Result<(), ControlError> {
        let all = halves.iter().flat_map(|(flow, half)| half.seen().map(|seen| (*flow, seen)));
        let mut all = all.take(MOST_SEEN);
        loop {
            let part: Vec<(usize, Seen)> = all.by_ref().take(PART).collect();
            if part.is_empty() {
                return Ok(());
            }
            say(&self.outbox, &Reply::Seen(part))?;
        }
    }
}

impl Deeds for Ends {
    fn answer(&mut self, request: Request) -> Option<Reply> {
        match request {
            Request::News(flow, news) => {
                self.post.bring(flow, news);
                None
            }
            Request::Check(scenario) => Some(match check::possible(&scenario, Path::Between) {
                Ok(()) => Reply::Fit(host::settings(&scenario)),
                Err(why) => Reply::Refused(why.to_string()),
            }),
            Request::Plan { scenario, seed, interval } => {
                Some(match self.listen(&scenario, Seed(seed), interval) {
                    Ok(ports) => Reply::Ready { ports },
                    Err(why) => Reply::Refused(why),
                })
            }
            Request::Start { ports } => {
                let started = self.halves.as_mut().map_or(Ok(()), |halves| halves.start(&ports));
                started.err().map(|problem| Reply::Failed(problem.to_string()))
            }
            Request::Over => Some(match self.halves.take() {
                None => Reply::Failed("no run is under way".to_owned()),
                Some(halves) => match noted(halves) {
                    Ok(halves) => {
                        // Whether it could be told is noticed by whoever listens.
                        let _ = self.tell_seen(&halves);
                        Reply::Noted(halves)
                    }
                    Err(problem) => Reply::Failed(problem.to_string()),
                },
            }),
            Request::Between { .. } | Request::Shape { .. } | Request::PutBack => Some(Reply::Refused(
                "it has the servers (`hol live serve`) and is no router; start `hol live route` on the router".to_owned(),
            )),
            Request::Alive | Request::Ping => None,
        }
    }
}

fn noted(mut halves: Halves) -> Result<Vec<(usize, Half)>, SocketsError> {
    let clients = halves.end_clients()?;
    Ok([clients, halves.end_servers()?].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::LONGEST;

    #[test]
    fn a_part_of_what_was_seen_fits_into_a_word_however_long_its_numbers() {
        let (most, address) = (u64::MAX, "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255");
        let longest = serde_json::to_vec(&(most, (most, u32::MAX, address, [most; 6]))).unwrap();
        assert!(PART * (longest.len() + 1) < LONGEST / 8);
    }
}
