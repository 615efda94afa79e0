//! `hol live serve`: this host has the servers of flows whose clients another host has, and the other way round.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use std::{io, thread};

use hol_base::Seed;
use hol_scenario::Scenario;
use hol_sockets::{Half, Halves, News, Post, SocketsError, Stop, TellOf, monotonic};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;

use crate::check::{self, Path};
use crate::control::{ControlError, HostWords, Inbox, Keys, Outbox, Reply, Request, Role, greet};
use crate::host::{self, Host};
use crate::placement::Placement;
use crate::ports::Ports;
use crate::secret::Secret;
use crate::session::{SILENCE, beat, prepare, say};

/// Connections at a time; more are closed at once.
const MOST_CONNECTIONS: usize = 16;
/// So long one waits for the last client to be gone.
const TURN: Duration = Duration::from_secs(5);

/// Serves one client at a time, for two at a time would measure each other.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    secret: Secret,
    /// Where servers listen; `None`: where the kernel has room.
    ports: Option<Ports>,
    stop: Stop,
    /// Who is served.
    client: Mutex<Option<SocketAddr>>,
    is_free: Condvar,
    connections: AtomicUsize,
}

impl Server {
    /// Listens for clients that know the secret, and lets servers have these ports, or any.
    pub fn listen(address: SocketAddr, secret: Secret, ports: Option<Ports>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let (client, is_free, connections) = (Mutex::default(), Condvar::new(), AtomicUsize::new(0));
        Ok(Self { listener, secret, ports, stop: Stop::new()?, client, is_free, connections })
    }

    /// Where.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves one client after another until it is stopped, or the first one that knew the secret if `once`; `tell` is told who came
    /// and what went wrong.
    pub fn run(&self, once: bool, tell: &(dyn Fn(String) + Sync)) -> io::Result<()> {
        thread::scope(|scope| {
            loop {
                let mut ready =
                    [PollFd::new(&self.stop, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
                retry_on_intr(|| poll(&mut ready, None))?;
                if !ready[0].revents().is_empty() {
                    return Ok(());
                }
                let Ok((stream, from)) = self.listener.accept() else {
                    // It has gone already; or there is no descriptor for it, and others are let go soon.
                    self.stop.wait(hol_base::Duration::from_millis(10))?;
                    continue;
                };
                if self.connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                    self.connections.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                scope.spawn(move || {
                    let served = self.serve(&stream, from, tell);
                    self.connections.fetch_sub(1, Ordering::Relaxed);
                    if let Err(problem) = &served {
                        tell(format!("{from}: {problem}"));
                    }
                    if once && served.is_ok_and(|was_served| was_served) {
                        // It is not raised but to end.
                        let _ = self.stop();
                    }
                });
            }
        })
    }

    /// Takes no more clients.
    pub fn stop(&self) -> io::Result<()> {
        self.stop.raise()
    }

    /// Whether it had its turn.
    fn serve(
        &self,
        stream: &TcpStream,
        from: SocketAddr,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<bool, ControlError> {
        stream.set_nonblocking(false)?;
        let (inbox, mut outbox, keys) = in_time(stream, |halves| greet(Role::Server, &self.secret, halves))?;
        if let Some(other) = self.wait_for_turn(from) {
            outbox.send(&Reply::Busy(other.ip().to_string()))?;
            return Ok(false);
        }
        tell(format!("{from}: served"));
        let session = Session::new(stream, (inbox, outbox, keys), self.ports);
        // Our own mistake, on whatever a client asked for, is not to keep others from being served.
        let run = AssertUnwindSafe(|| session.and_then(Session::run));
        let done = catch_unwind(run).unwrap_or_else(|_| {
            Err(ControlError::Nonsense("what was asked for broke hol, which is a mistake of hol".to_owned()))
        });
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.is_free.notify_one();
        match done {
            // The client has nothing more to ask.
            Err(ControlError::Closed) => tell(format!("{from}: done")),
            Err(problem) => tell(format!("{from}: {problem}; waiting for the next")),
            Ok(()) => {}
        }
        Ok(true)
    }

    /// Who is served, if that is another for too long.
    fn wait_for_turn(&self, from: SocketAddr) -> Option<SocketAddr> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.is_free.wait_timeout_while(client, TURN, |client| client.is_some());
        let (mut client, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match *client {
            Some(other) => Some(other),
            None => {
                *client = Some(from);
                None
            }
        }
    }
}

/// Greets, or closes the stream when that takes too long altogether: octets that trickle are no silence.
fn in_time<T>(
    stream: &TcpStream,
    greet: impl FnOnce((TcpStream, TcpStream)) -> Result<T, ControlError>,
) -> Result<T, ControlError> {
    let (halves, late) = (prepare(stream)?, stream.try_clone()?);
    let (met, waiting) = channel::<()>();
    thread::spawn(move || {
        if waiting.recv_timeout(SILENCE) == Err(RecvTimeoutError::Timeout) {
            let _ = late.shutdown(Shutdown::Both);
        }
    });
    let greeted = greet(halves);
    drop(met);
    greeted
}

/// A client, and what is done for it.
struct Session {
    inbox: Inbox<TcpStream>,
    outbox: Arc<Mutex<Outbox<TcpStream>>>,
    keys: Keys,
    placement: Placement,
    ports: Option<Ports>,
    post: Post,
    halves: Option<Halves>,
}

impl Session {
    fn new(
        stream: &TcpStream,
        (inbox, outbox, keys): (Inbox<TcpStream>, Outbox<TcpStream>, Keys),
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
        let outbox = Arc::new(Mutex::new(outbox));
        Ok(Self { inbox, outbox, keys, placement, ports, post: Post::default(), halves: None })
    }

    /// Does what it is asked until nobody asks any more.
    fn run(mut self) -> Result<(), ControlError> {
        let Host { kernel, clocksource } = Host::this();
        self.say(&Reply::Host(HostWords { kernel, clocksource }))?;
        let weak = Arc::downgrade(&self.outbox);
        thread::spawn(move || {
            beat(|| weak.upgrade().is_some_and(|outbox| say(&outbox, &Reply::Alive).is_ok()));
        });
        loop {
            let request = self.inbox.receive()?;
            let received = monotonic();
            if let Some(reply) = self.answer(request, received) {
                self.say(&reply)?;
            }
        }
    }

    fn say(&self, reply: &Reply) -> Result<(), ControlError> {
        say(&self.outbox, reply)
    }

    fn answer(&mut self, request: Request, received: u64) -> Option<Reply> {
        match request {
            Request::Alive => None,
            Request::Ping => Some(Reply::Pong { received, sent: monotonic() }),
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
        }
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

fn noted(mut halves: Halves) -> Result<Vec<(usize, Half)>, SocketsError> {
    let clients = halves.end_clients()?;
    Ok([clients, halves.end_servers()?].concat())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hol_network::NetworkSpec;
    use hol_scenario::Background;

    use super::*;

    fn secret() -> Secret {
        Secret::new("known to both").unwrap()
    }

    /// What a client says by itself, whatever it is.
    struct Client {
        inbox: Inbox<TcpStream>,
        outbox: Outbox<TcpStream>,
    }

    impl Client {
        /// One that was greeted, and its first word.
        fn of(server: &Server) -> (Self, Reply) {
            let stream = TcpStream::connect(server.address().unwrap()).unwrap();
            let (mut inbox, outbox, _) = greet(Role::Client, &secret(), prepare(&stream).unwrap()).unwrap();
            let first = inbox.receive().unwrap();
            (Self { inbox, outbox }, first)
        }

        fn hear(&mut self) -> Result<Reply, ControlError> {
            loop {
                match self.inbox.receive() {
                    Ok(Reply::Alive | Reply::News(..)) => {}
                    other => return other,
                }
            }
        }

        fn ask(&mut self, request: &Request) -> Reply {
            self.outbox.send(request).unwrap();
            self.hear().unwrap()
        }
    }

    fn plan(network: &str, workload: &str) -> Request {
        let network: NetworkSpec = toml::from_str(network).unwrap();
        let (transport, workload) = ("tcp".parse().unwrap(), toml::from_str(workload).unwrap());
        Request::Plan { scenario: Box::new(Scenario::alone(network, transport, workload, 10)), seed: 1 }
    }

    fn with_server(test: impl FnOnce(&Server)) {
        with_server_at(None, test);
    }

    fn with_server_at(ports: Option<Ports>, test: impl FnOnce(&Server)) {
        let server = Server::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), secret(), ports).unwrap();
        thread::scope(|scope| {
            let running = scope.spawn(|| server.run(false, &|_| ()));
            let tested = catch_unwind(AssertUnwindSafe(|| test(&server)));
            server.stop().unwrap();
            running.join().unwrap().unwrap();
            tested.unwrap();
        });
    }

    #[test]
    fn what_is_asked_out_of_place_is_refused_and_harms_nobody() {
        with_server(|server| {
            let (mut client, first) = Client::of(server);
            assert!(matches!(first, Reply::Host(host) if !host.kernel.is_empty()));
            assert!(matches!(client.ask(&Request::Over), Reply::Failed(why) if why.contains("no run")));
            client.outbox.send(&Request::Start { ports: vec![1; 1000] }).unwrap();
            client.outbox.send(&Request::News(usize::MAX, News::default())).unwrap();
            let refused = client.ask(&plan("loss = '1%'", "kind = 'echo'"));
            assert!(matches!(refused, Reply::Refused(why) if why.contains("`network.loss`")));
            let refused = client.ask(&plan("", "kind = 'echo'\nto = 'client'"));
            assert!(matches!(refused, Reply::Refused(why) if why.contains("`scenario`")));
            assert!(matches!(client.ask(&Request::Ping), Reply::Pong { received, sent } if received <= sent));
        });
    }

    #[test]
    fn a_server_of_whom_nobody_comes_has_nothing_to_tell_and_ends_with_its_client() {
        with_server(|server| {
            let (mut client, _) = Client::of(server);
            let Reply::Ready { ports } = client.ask(&plan("", "kind = 'echo'")) else { panic!("it can") };
            let port = (Ipv4Addr::LOCALHOST, ports[0]);
            client.outbox.send(&Request::Start { ports: Vec::new() }).unwrap();
            let noted = client.ask(&Request::Over);
            assert!(matches!(&noted, Reply::Noted(halves) if halves.len() == 1 && halves[0].0 == 0));
            assert!(TcpStream::connect(port).is_err(), "it is over");
            let Reply::Ready { ports } = client.ask(&plan("", "kind = 'echo'")) else { panic!("it can") };
            let port = (Ipv4Addr::LOCALHOST, ports[0]);
            drop(TcpStream::connect(port).unwrap());
            // Without a word.
            drop(client);
            // The next is served when nothing is left.
            let (_next, first) = Client::of(server);
            assert!(matches!(first, Reply::Host(_)));
            assert!(TcpStream::connect(port).is_err(), "it is left over");
        });
    }

    #[test]
    fn servers_have_the_ports_that_a_firewall_lets_through() {
        // Held, so that nobody else is told that it is free.
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = held.local_addr().unwrap().port();
        with_server_at(Some(port.to_string().parse().unwrap()), |server| {
            let (mut client, _) = Client::of(server);
            let refused = client.ask(&plan("", "kind = 'echo'"));
            assert!(matches!(refused, Reply::Refused(why) if why.contains(&format!(":{port}"))));
            drop(held);
            for _ in 0..3 {
                let ready = client.ask(&plan("", "kind = 'echo'"));
                assert!(matches!(ready, Reply::Ready { ports } if ports == [port]));
            }
            let Request::Plan { mut scenario, seed } = plan("", "kind = 'echo'") else { unreachable!() };
            let (transport, workload) = (scenario.transport.clone(), scenario.workload.clone());
            let spread = hol_base::Duration::ZERO;
            scenario.background = vec![Background { transport, workload, messages: None, count: 1, spread }];
            let refused = client.ask(&Request::Plan { scenario, seed });
            assert!(matches!(refused, Reply::Refused(why) if why.contains("1 of the 2 ports")));
        });
    }

    #[test]
    fn a_second_client_hears_who_is_served() {
        with_server(|server| {
            let (mut served, _) = Client::of(server);
            let (mut other, first) = Client::of(server);
            assert!(matches!(first, Reply::Busy(host) if host == "127.0.0.1"));
            assert!(matches!(other.hear(), Err(ControlError::Closed)));
            assert!(matches!(served.ask(&Request::Ping), Reply::Pong { .. }));
        });
    }

    #[test]
    fn words_that_mean_nothing_end_a_client_and_the_next_is_served() {
        with_server(|server| {
            for words in ["Alive?", "", "{\"Plan\":{}}"] {
                let (mut client, _) = Client::of(server);
                client.outbox.send(&words).unwrap();
                assert!(matches!(client.hear(), Err(ControlError::Closed)), "{words}");
            }
            let stream = TcpStream::connect(server.address().unwrap()).unwrap();
            drop(stream);
            let (mut client, _) = Client::of(server);
            assert!(matches!(client.ask(&Request::Ping), Reply::Pong { .. }));
        });
    }
}
