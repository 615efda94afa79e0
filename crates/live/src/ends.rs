//! `hol live serve`: this host has the servers of flows whose clients another host has, and the other way round.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use hol_base::Seed;
use hol_scenario::Scenario;
use hol_sockets::{Half, Halves, News, Post, SocketsError, TellOf};

use crate::check::{self, Path};
use crate::control::{ControlError, Keys, Outbox, Reply, Request};
use crate::host;
use crate::placement::Placement;
use crate::ports::Ports;
use crate::server::Deeds;
use crate::session::say;

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

    /// Has the ends of flows listen that are here.
    fn listen(&mut self, scenario: &Scenario, seed: Seed) -> Result<Vec<u16>, String> {
        // What is under way is not wanted any more.
        self.halves = None;
        check::possible(scenario, Path::Between).map_err(|why| why.to_string())?;
        let mut assignments = self.placement.assignments(scenario, seed);
        let here = self.placement.here(scenario, &assignments);
        self.ports.map_or(Ok(()), |ports| ports.give(&mut assignments, &here))?;
        let outbox = Arc::clone(&self.outbox);
        // Whether it could be told is noticed by whoever listens.
        let tell: Arc<TellOf> =
            Arc::new(move |flow: usize, news: News| drop(say(&outbox, &Reply::News(flow, news))));
        let secret = self.keys.of("tls");
        let listening = Halves::listen(scenario, assignments, &here, secret, (&tell, &self.post), None);
        let (halves, ports) = listening.map_err(|problem| problem.to_string())?;
        self.halves = Some(halves);
        Ok(ports)
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
            Request::Plan { scenario, seed } => Some(match self.listen(&scenario, Seed(seed)) {
                Ok(ports) => Reply::Ready { ports },
                Err(why) => Reply::Refused(why),
            }),
            Request::Start { ports } => {
                let started = self.halves.as_mut().map_or(Ok(()), |halves| halves.start(&ports));
                started.err().map(|problem| Reply::Failed(problem.to_string()))
            }
            Request::Over => Some(match self.halves.take() {
                None => Reply::Failed("no run is under way".to_owned()),
                Some(halves) => match noted(halves) {
                    Ok(halves) => Reply::Noted(halves),
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
