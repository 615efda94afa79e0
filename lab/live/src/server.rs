//! A host that serves others: it listens, and serves one client after the other.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use std::{io, thread};

use hol_scenario::Side;
use hol_sockets::{StopSignal, monotonic};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;

use crate::control::{ControlError, HostDescription, Inbox, Outbox, Reply, Request, authenticate};
use crate::ends::EndsService;
use crate::host_properties::Host;
use crate::ports::Ports;
use crate::router::{Router, RouterService};
use crate::secret::Secret;
use crate::service::ClientService;
use crate::session::{MAX_SILENCE, send, send_keepalives, split_stream};

/// Maximum number of simultaneous connections; further ones are closed at once.
const MAX_CONNECTIONS: usize = 16;
/// Maximum time for which a client waits for the previous client to disconnect.
const MAX_WAIT: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(5) };

/// The service that a host provides.
#[derive(Debug)]
pub enum Service {
    /// The host runs ends of flows whose other ends are on another host. Its servers listen on these ports; `None`: on
    /// ports that the kernel chooses.
    Ends(Option<Ports>),
    /// The host emulates the path between two other hosts.
    Router(Router),
}

/// A server that serves one client at a time, because concurrent runs would disturb each other.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    secret: Secret,
    service: Service,
    stop: StopSignal,
    /// The address of the current client; `None` if there is none.
    client: Mutex<Option<SocketAddr>>,
    is_free: Condvar,
    connections: AtomicUsize,
}

impl Server {
    /// Listens for clients that know the secret.
    pub fn listen(address: SocketAddr, secret: Secret, service: Service) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let (client, is_free, connections) = (Mutex::default(), Condvar::new(), AtomicUsize::new(0));
        Ok(Self { listener, secret, service, stop: StopSignal::new()?, client, is_free, connections })
    }

    /// Returns the address of the server.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves one client after another until stopped. If `once`, serves only the first client that knows the secret.
    /// Passes messages about clients and errors to `tell`.
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
                    // The client has disconnected, or there is no file descriptor left; other connections will be
                    // closed soon.
                    self.stop.wait(hol_base::Duration::from_millis(10))?;
                    continue;
                };
                if self.connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
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
                        // Ends the loop that accepts clients; an error leaves it running.
                        let _ = self.stop();
                    }
                });
            }
        })
    }

    /// Makes the server stop accepting clients.
    pub fn stop(&self) -> io::Result<()> {
        self.stop.raise()
    }

    /// Serves a client. Returns false if the client was rejected because another client is being served.
    fn serve(
        &self,
        stream: &TcpStream,
        from: SocketAddr,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<bool, ControlError> {
        stream.set_nonblocking(false)?;
        let (inbox, mut outbox) =
            within_time_limit(stream, |halves| authenticate(Side::Server, &self.secret, halves))?;
        if let Some(other) = self.wait_for_turn(from) {
            outbox.send(&Reply::Busy(other.ip().to_string()))?;
            return Ok(false);
        }
        tell(format!("{from}: connected"));
        let outbox = Arc::new(Mutex::new(outbox));
        // A panic of this program, whatever the client requested, must not keep others from being served.
        let run = AssertUnwindSafe(|| {
            let service: Box<dyn ClientService + '_> = match &self.service {
                Service::Ends(ports) => {
                    Box::new(EndsService::new(stream, Arc::clone(&outbox), self.secret.clone(), *ports)?)
                }
                Service::Router(_) => Box::new(RouterService::default()),
            };
            serve_requests(inbox, &outbox, service)
        });
        let done = catch_unwind(run).unwrap_or_else(|_| {
            Err(ControlError::Malformed(
                "internal error while serving this request; please report it".to_owned(),
            ))
        });
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.is_free.notify_one();
        match done {
            // The client has finished.
            Err(ControlError::Closed) => tell(format!("{from}: finished")),
            Err(problem) => tell(format!("{from}: {problem}; waiting for the next client")),
            Ok(()) => {}
        }
        Ok(true)
    }

    /// Waits until no client is served. If that takes too long, returns the address of the client that is served.
    fn wait_for_turn(&self, from: SocketAddr) -> Option<SocketAddr> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.is_free.wait_timeout_while(client, MAX_WAIT, |client| client.is_some());
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

/// Performs the handshake. Closes the stream if the handshake takes too long in total, even if single octets keep
/// arriving.
fn within_time_limit<T>(
    stream: &TcpStream,
    authenticate: impl FnOnce((TcpStream, TcpStream)) -> Result<T, ControlError>,
) -> Result<T, ControlError> {
    let (halves, late) = (split_stream(stream)?, stream.try_clone()?);
    let (met, waiting) = channel::<()>();
    thread::spawn(move || {
        if waiting.recv_timeout(MAX_SILENCE) == Err(RecvTimeoutError::Timeout) {
            let _ = late.shutdown(Shutdown::Both);
        }
    });
    let greeted = authenticate(halves);
    drop(met);
    greeted
}

/// Handles a client's requests until the connection ends.
fn serve_requests(
    mut inbox: Inbox<TcpStream>,
    outbox: &Arc<Mutex<Outbox<TcpStream>>>,
    mut service: Box<dyn ClientService + '_>,
) -> Result<(), ControlError> {
    let Host { kernel, clocksource } = Host::current();
    send(outbox, &Reply::Host(HostDescription { kernel, clocksource }))?;
    let weak = Arc::downgrade(outbox);
    thread::spawn(move || {
        send_keepalives(|| weak.upgrade().is_some_and(|outbox| send(&outbox, &Reply::Alive).is_ok()));
    });
    loop {
        let request = inbox.receive()?;
        let received = monotonic();
        let reply = match request {
            Request::Alive => None,
            Request::Ping => Some(Reply::Pong { received, sent: monotonic() }),
            other => service.answer(other),
        };
        if let Some(reply) = reply {
            send(outbox, &reply)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hol_network::NetworkSpec;
    use hol_scenario::{Background, Scenario};
    use hol_sockets::PeerReport;

    use super::*;
    use crate::control::RunDescription;
    use crate::placement::{AddressPair, Placement};

    fn secret() -> Secret {
        Secret::new("known to both").unwrap()
    }

    /// A client of these tests, which sends single messages.
    struct Client {
        inbox: Inbox<TcpStream>,
        outbox: Outbox<TcpStream>,
    }

    impl Client {
        /// Returns a client after the handshake, and the first message that it received.
        fn of(server: &Server) -> (Self, Reply) {
            let stream = TcpStream::connect(server.address().unwrap()).unwrap();
            let (mut inbox, outbox) =
                authenticate(Side::Client, &secret(), split_stream(&stream).unwrap()).unwrap();
            let first = inbox.receive().unwrap();
            (Self { inbox, outbox }, first)
        }

        fn receive(&mut self) -> Result<Reply, ControlError> {
            loop {
                match self.inbox.receive() {
                    Ok(Reply::Alive | Reply::ServerReport(..)) => {}
                    other => return other,
                }
            }
        }

        fn ask(&mut self, request: &Request) -> Reply {
            self.outbox.send(request).unwrap();
            self.receive().unwrap()
        }
    }

    /// Returns the plan that a client on this machine sends to a server on it.
    fn planned(network: &str, workload: &str) -> RunDescription {
        let network: NetworkSpec = toml::from_str(network).unwrap();
        let (transport, workload) = ("tcp".parse().unwrap(), toml::from_str(workload).unwrap());
        let here = Ipv4Addr::LOCALHOST.into();
        let placement = Placement {
            nodes: [("client".to_owned(), 0), ("server".to_owned(), 1)].into(),
            address_pairs: vec![AddressPair { first: here, other: here }],
            own: 1,
        };
        let scenario = Scenario::with_single_flow(network, transport, workload, 10);
        RunDescription { scenario, seed: 1, interval: None, placement, run: [7; 32] }
    }

    fn plan(plan: RunDescription) -> Request {
        Request::Plan(Box::new(plan))
    }

    fn with_server(test: impl FnOnce(&Server)) {
        with_server_at(None, test);
    }

    fn with_server_at(ports: Option<Ports>, test: impl FnOnce(&Server)) {
        let service = Service::Ends(ports);
        let server = Server::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), secret(), service).unwrap();
        thread::scope(|scope| {
            let running = scope.spawn(|| server.run(false, &|_| ()));
            let tested = catch_unwind(AssertUnwindSafe(|| test(&server)));
            server.stop().unwrap();
            running.join().unwrap().unwrap();
            tested.unwrap();
        });
    }

    #[test]
    fn requests_out_of_sequence_are_refused_without_effect() {
        with_server(|server| {
            let (mut client, first) = Client::of(server);
            assert!(matches!(first, Reply::Host(host) if !host.kernel.is_empty()));
            assert!(matches!(client.ask(&Request::End), Reply::Failed(why) if why.contains("no run")));
            assert!(
                matches!(client.ask(&Request::Restore), Reply::Refused(why) if why.contains("hol live route"))
            );
            client.outbox.send(&Request::Start { ports: vec![1; 1000] }).unwrap();
            client.outbox.send(&Request::ServerReport(usize::MAX, PeerReport::default())).unwrap();
            let refused = client.ask(&plan(planned("loss = '1%'", "kind = 'echo'")));
            assert!(matches!(refused, Reply::Refused(why) if why.contains("`network.loss`")));
            let refused = client.ask(&plan(planned("", "kind = 'echo'\nto = 'client'")));
            assert!(matches!(refused, Reply::Refused(why) if why.contains("`scenario`")));
            let interval = Some(hol_base::Duration::ZERO);
            let refused = client.ask(&plan(RunDescription { interval, ..planned("", "kind = 'echo'") }));
            assert!(matches!(refused, Reply::Refused(why) if why.contains("`series`")));
            let mut nowhere = planned("", "kind = 'echo'");
            nowhere.placement.own = 7;
            let refused = client.ask(&plan(nowhere));
            assert!(matches!(refused, Reply::Refused(why) if why.contains("a host that it does not list")));
            assert!(matches!(client.ask(&Request::EndClients), Reply::Failed(why) if why.contains("no run")));
            assert!(matches!(client.ask(&Request::Ping), Reply::Pong { received, sent } if received <= sent));
        });
    }

    #[test]
    fn a_server_without_connections_has_no_results_and_ends_with_its_client() {
        with_server(|server| {
            let (mut client, _) = Client::of(server);
            let Reply::Ready { ports } = client.ask(&plan(planned("", "kind = 'echo'"))) else {
                panic!("the host can run the scenario")
            };
            let port = (Ipv4Addr::LOCALHOST, ports[0]);
            client.outbox.send(&Request::Start { ports: Vec::new() }).unwrap();
            let noted = client.ask(&Request::End);
            assert!(matches!(&noted, Reply::Results(halves) if halves.len() == 1 && halves[0].0 == 0));
            assert!(TcpStream::connect(port).is_err(), "the server has ended with the run");
            let Reply::Ready { ports } = client.ask(&plan(planned("", "kind = 'echo'"))) else {
                panic!("the host can run the scenario")
            };
            let port = (Ipv4Addr::LOCALHOST, ports[0]);
            drop(TcpStream::connect(port).unwrap());
            // The client disconnects without a message.
            drop(client);
            // The next client is served after the previous one's ends were removed.
            let (_next, first) = Client::of(server);
            assert!(matches!(first, Reply::Host(_)));
            assert!(TcpStream::connect(port).is_err(), "the server has ended with its client");
        });
    }

    #[test]
    fn servers_use_the_ports_that_the_user_names() {
        // Bound, so that the kernel does not choose this port for another socket.
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = held.local_addr().unwrap().port();
        with_server_at(Some(port.to_string().parse().unwrap()), |server| {
            let (mut client, _) = Client::of(server);
            let refused = client.ask(&plan(planned("", "kind = 'echo'")));
            assert!(matches!(refused, Reply::Refused(why) if why.contains(&format!(":{port}"))));
            drop(held);
            for _ in 0..3 {
                let ready = client.ask(&plan(planned("", "kind = 'echo'")));
                assert!(matches!(ready, Reply::Ready { ports } if ports == [port]));
            }
            let mut two = planned("", "kind = 'echo'");
            let (transport, workload) = (two.scenario.transport.clone(), two.scenario.workload.clone());
            let spread = hol_base::Duration::ZERO;
            two.scenario.background =
                vec![Background { transport, workload, messages: None, count: 1, spread }];
            let refused = client.ask(&plan(two));
            assert!(matches!(refused, Reply::Refused(why) if why.contains("needs 2 ports")));
        });
    }

    #[test]
    fn a_second_client_receives_the_address_of_the_current_one() {
        with_server(|server| {
            let (mut served, _) = Client::of(server);
            let (mut other, first) = Client::of(server);
            assert!(matches!(first, Reply::Busy(host) if host == "127.0.0.1"));
            assert!(matches!(other.receive(), Err(ControlError::Closed)));
            assert!(matches!(served.ask(&Request::Ping), Reply::Pong { .. }));
        });
    }

    #[test]
    fn malformed_messages_end_a_client_and_the_next_is_served() {
        with_server(|server| {
            for words in ["Alive?", "", "{\"Plan\":{}}"] {
                let (mut client, _) = Client::of(server);
                client.outbox.send(&words).unwrap();
                assert!(matches!(client.receive(), Err(ControlError::Closed)), "{words}");
            }
            let stream = TcpStream::connect(server.address().unwrap()).unwrap();
            drop(stream);
            let (mut client, _) = Client::of(server);
            assert!(matches!(client.ask(&Request::Ping), Reply::Pong { .. }));
        });
    }
}
