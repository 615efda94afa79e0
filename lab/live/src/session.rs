//! The connection from the host with the experiment to a serving host or a router, which all runs of this process share.

use std::collections::BTreeMap;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use hol_base::Seed;
use hol_network::NetworkSpec;
use hol_scenario::{RunError, Scenario, Side};
use hol_sockets::{CompactSenderSample, EndResult, FlowReportCallback, PeerReport, monotonic};

use crate::clocks::ClockComparison;
use crate::control::{
    ControlError, HostDescription, Inbox, LinkCounters, MAX_SAMPLES, Outbox, Reply, Request, RunDescription,
    authenticate,
};
use crate::host_and_port::{HostAndPort, HostRole};
use crate::placement::AddressPair;
use crate::relay::Relay;
use crate::secret::Secret;

/// Time without a message after which a host is considered unreachable.
pub(crate) const MAX_SILENCE: Duration = Duration::from_secs(10);
/// The interval between two keepalive messages.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum time until a reply arrives; it includes the time in which the host is busy with another client.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time until a host has sent its results, after the request to end the run.
const RESULTS_TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum number of queries in a comparison of the clocks.
const MAX_PINGS: usize = 16;
/// Minimum number of queries in a comparison of the clocks.
const MIN_PINGS: usize = 4;
/// Time in ns after which the comparison of the clocks ends, if it has made the minimum number of queries.
const PINGING_NS: u64 = 1_000_000_000;

/// The connection to the other host.
#[derive(Debug)]
pub(crate) struct ControlConnection {
    pub(crate) host: HostDescription,
    /// Address of the other host.
    pub(crate) peer_address: IpAddr,
    /// Address of this host.
    pub(crate) own_address: IpAddr,
    stream: TcpStream,
    outbox: Arc<Mutex<Outbox<TcpStream>>>,
    replies: Receiver<Result<(Reply, u64), ControlError>>,
}

impl ControlConnection {
    /// Connects to a host and performs the handshake.
    pub(crate) fn open(
        role: HostRole,
        place: &HostAndPort,
        secret: &Secret,
        relay: Relay,
    ) -> Result<Self, RunError> {
        let unusable = |problem: String| RunError::Unusable(format!("{} {place}: {problem}", role.name()));
        let address = resolve(role, place).map_err(unusable)?;
        let stream = TcpStream::connect_timeout(&address, MAX_SILENCE)
            .map_err(|problem| unusable(connect_error(&problem, role, place)))?;
        let prepared = split_stream(&stream).map_err(|problem| unusable(problem.to_string()))?;
        let (mut inbox, outbox) =
            authenticate(Side::Client, secret, prepared).map_err(|problem| unusable(problem.to_string()))?;
        let host = match inbox.receive().map_err(|problem| unusable(problem.to_string()))? {
            Reply::Host(host) => host,
            Reply::Busy(other) => {
                return Err(unusable(format!("the host serves another client, {other}; try again later")));
            }
            other => return Err(unusable(unexpected_reply(&other))),
        };
        let own_address =
            stream.local_addr().map_err(|problem| unusable(problem.to_string()))?.ip().to_canonical();
        let (sender, replies) = channel();
        let outbox = Arc::new(Mutex::new(outbox));
        thread::spawn(move || listen(inbox, &sender, &relay));
        let weak = Arc::downgrade(&outbox);
        thread::spawn(move || {
            send_keepalives(|| weak.upgrade().is_some_and(|outbox| send(&outbox, &Request::Alive).is_ok()));
        });
        Ok(Self { host, peer_address: address.ip().to_canonical(), own_address, stream, outbox, replies })
    }

    /// Returns the addresses of this host and of the other host.
    pub(crate) fn address_pair(&self) -> AddressPair {
        AddressPair { first: self.own_address, other: self.peer_address }
    }

    fn send(&self, request: &Request) -> Result<(), ControlError> {
        send(&self.outbox, request)
    }

    /// Waits for the next reply, for at most the time `within`. Returns the reply, and the time at which it
    /// arrived.
    fn receive(&self, within: Duration) -> Result<(Reply, u64), ControlError> {
        match self.replies.recv_timeout(within) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => Err(ControlError::Timeout),
            Err(RecvTimeoutError::Disconnected) => Err(ControlError::Closed),
        }
    }

    fn ask(&self, request: &Request, within: Duration) -> Result<Reply, ControlError> {
        self.send(request)?;
        Ok(self.receive(within)?.0)
    }

    /// Returns an error if the host is unreachable or has reported a failure. While flows run, the host sends no
    /// other replies.
    pub(crate) fn check_alive(&self) -> Result<(), String> {
        match self.replies.try_recv() {
            Ok(Ok((Reply::Failed(problem), _))) => Err(problem),
            Ok(Ok((other, _))) => Err(unexpected_reply(&other)),
            Ok(Err(problem)) => Err(problem.to_string()),
            Err(std::sync::mpsc::TryRecvError::Empty) => Ok(()),
            Err(std::sync::mpsc::TryRecvError::Disconnected) => Err(ControlError::Closed.to_string()),
        }
    }

    /// Compares the clocks of both hosts with at most `max` queries.
    fn ping(&self, max: usize) -> Result<ClockComparison, ControlError> {
        let (begin, mut all) = (monotonic(), Vec::new());
        while all.len() < MIN_PINGS || (all.len() < max && monotonic() - begin < PINGING_NS) {
            let sent_at = monotonic();
            self.send(&Request::Ping)?;
            match self.receive(MAX_SILENCE)? {
                (Reply::Pong { received, sent }, answered_at) => {
                    all.push(ClockComparison {
                        query_sent_at: sent_at,
                        query_received_at: received,
                        reply_sent_at: sent,
                        reply_received_at: answered_at,
                    });
                }
                (other, _) => return Err(ControlError::Malformed(unexpected_reply(&other))),
            }
        }
        Ok(ClockComparison::best(all).expect("at least one query was made"))
    }

    /// Compares the clocks of both hosts with up to [`MAX_PINGS`] queries.
    pub(crate) fn compare_clocks(&self) -> Result<ClockComparison, ControlError> {
        self.ping(MAX_PINGS)
    }

    /// Returns the minimum round trip, in ns.
    pub(crate) fn round_trip(&self) -> Result<u64, ControlError> {
        self.ping(MIN_PINGS).map(ClockComparison::round_trip)
    }

    /// Sends a request, and returns what `take` finds in the reply, or the reason why the host refused.
    fn ask_for<T>(
        &self,
        request: &Request,
        patience: Duration,
        take: impl FnOnce(Reply) -> Result<T, Reply>,
    ) -> Result<Result<T, String>, ControlError> {
        match self.ask(request, patience)? {
            Reply::Refused(why) | Reply::Failed(why) => Ok(Err(why)),
            reply => take(reply).map(Ok).map_err(|other| ControlError::Malformed(unexpected_reply(&other))),
        }
    }

    /// Returns the sysctls of the host that affect the measurement if it can run a scenario, or the reason why it
    /// cannot.
    pub(crate) fn check(
        &self,
        scenario: &Scenario,
    ) -> Result<Result<BTreeMap<String, String>, String>, ControlError> {
        self.ask_for(&Request::Check(Box::new(scenario.clone())), REPLY_TIMEOUT, |reply| match reply {
            Reply::Supported(settings) => Ok(settings),
            other => Err(other),
        })
    }

    /// Makes the host's servers listen for a run; returns their ports, by flow.
    pub(crate) fn prepare_run(&self, plan: RunDescription) -> Result<Result<Vec<u16>, String>, ControlError> {
        self.ask_for(&Request::Plan(Box::new(plan)), REPLY_TIMEOUT, |reply| match reply {
            Reply::Ready { ports } => Ok(ports),
            other => Err(other),
        })
    }

    /// Starts the clients on the host.
    pub(crate) fn start(&self, ports: Vec<u16>) -> Result<(), ControlError> {
        self.send(&Request::Start { ports })
    }

    /// Ends the clients on the host.
    pub(crate) fn end_clients(&self) -> Result<Result<(), String>, ControlError> {
        self.ask_for(&Request::EndClients, RESULTS_TIMEOUT, |reply| match reply {
            Reply::ClientsEnded => Ok(()),
            other => Err(other),
        })
    }

    /// Ends all clients and servers on the host, and returns their results.
    pub(crate) fn end(&self) -> Result<Result<Vec<(usize, EndResult)>, String>, ControlError> {
        self.send(&Request::End)?;
        let mut seen = Vec::new();
        loop {
            match self.receive(RESULTS_TIMEOUT)?.0 {
                // No part is empty, so the number of parts is limited.
                Reply::Samples(part) if !part.is_empty() && seen.len() + part.len() <= MAX_SAMPLES => {
                    seen.extend(part);
                }
                Reply::Results(halves) => return with_samples(halves, seen).map(Ok),
                Reply::Refused(why) | Reply::Failed(why) => return Ok(Err(why)),
                other => return Err(ControlError::Malformed(unexpected_reply(&other))),
            }
        }
    }

    /// Returns the interfaces of a router towards the client and the server, or the reason why the router is not
    /// between them.
    pub(crate) fn router_interfaces(
        &self,
        client: IpAddr,
        server: IpAddr,
    ) -> Result<Result<[String; 2], String>, ControlError> {
        self.ask_for(&Request::Between { client, server }, REPLY_TIMEOUT, |reply| match reply {
            Reply::Interfaces(interfaces) => Ok(interfaces),
            other => Err(other),
        })
    }

    /// Makes a router emulate the path.
    pub(crate) fn shape(
        &self,
        network: &NetworkSpec,
        seed: Seed,
    ) -> Result<Result<(), String>, ControlError> {
        let shape = Request::Shape { network: Box::new(network.clone()), seed: seed.0 };
        self.ask_for(&shape, REPLY_TIMEOUT, |reply| match reply {
            Reply::Shaped => Ok(()),
            other => Err(other),
        })
    }

    /// Makes a router restore the path; returns its packet counters.
    pub(crate) fn restore(&self) -> Result<Result<[LinkCounters; 2], String>, ControlError> {
        self.ask_for(&Request::Restore, REPLY_TIMEOUT, |reply| match reply {
            Reply::LinkCounters(passed) => Ok(passed),
            other => Err(other),
        })
    }

    /// Returns a function that sends the reports of local servers to the host.
    pub(crate) fn report_sender(&self) -> Arc<FlowReportCallback> {
        let outbox = Arc::clone(&self.outbox);
        // An error is ignored here: the thread that receives will notice it, too.
        Arc::new(move |flow: usize, news: PeerReport| drop(send(&outbox, &Request::ServerReport(flow, news))))
    }
}

impl Drop for ControlConnection {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Adds samples to the results of the ends to which they belong.
fn with_samples(
    results: Vec<(usize, EndResult)>,
    samples: Vec<(usize, CompactSenderSample)>,
) -> Result<Vec<(usize, EndResult)>, ControlError> {
    let mut results: BTreeMap<usize, EndResult> = results.into_iter().collect();
    for (flow, sample) in samples {
        let result = results.get_mut(&flow);
        let unknown_flow = || {
            ControlError::Malformed(format!(
                "the peer sent a sample of flow {flow}, which has no end on that host"
            ))
        };
        result.ok_or_else(unknown_flow)?.add_sender_sample(sample);
    }
    Ok(results.into_iter().collect())
}

/// Sends a message through an outbox shared by several threads.
pub(crate) fn send<M: serde::Serialize>(
    outbox: &Mutex<Outbox<TcpStream>>,
    message: &M,
) -> Result<(), ControlError> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner).send(message)
}

/// Calls `alive`, which sends a keepalive, at a regular interval until it returns false.
pub(crate) fn send_keepalives(mut alive: impl FnMut() -> bool) {
    // No message arrives on this channel: its timeouts are the ticks of a clock.
    let (_never, ticks) = channel::<()>();
    while alive() {
        let _ = ticks.recv_timeout(HEARTBEAT_INTERVAL);
    }
}

/// Sets timeouts and returns both halves of a stream.
pub(crate) fn split_stream(stream: &TcpStream) -> std::io::Result<(TcpStream, TcpStream)> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(MAX_SILENCE))?;
    stream.set_write_timeout(Some(MAX_SILENCE))?;
    Ok((stream.try_clone()?, stream.try_clone()?))
}

/// Receives messages until the stream ends, and passes them on as replies or reports.
fn listen(mut inbox: Inbox<TcpStream>, replies: &Sender<Result<(Reply, u64), ControlError>>, relay: &Relay) {
    loop {
        let heard = inbox.receive();
        let now = monotonic();
        let (heard, goes_on) = match heard {
            Ok(Reply::Alive) => continue,
            Ok(Reply::ServerReport(flow, news)) => {
                relay.deliver(flow, news);
                continue;
            }
            Ok(reply) => (Ok((reply, now)), true),
            Err(problem) => (Err(problem), false),
        };
        if replies.send(heard).is_err() || !goes_on {
            return;
        }
    }
}

/// Returns the address of a host. Prefers an IPv4 address, because by default a host listens on IPv4.
fn resolve(role: HostRole, place: &HostAndPort) -> Result<SocketAddr, String> {
    let all = (place.host.as_str(), place.port).to_socket_addrs().map_err(|problem| {
        format!("the address of the host was not found: {problem}; use --{} HOST or HOST:PORT", role.name())
    })?;
    all.min_by_key(SocketAddr::is_ipv6)
        .ok_or_else(|| format!("the name has no IP address; use --{} HOST or HOST:PORT", role.name()))
}

fn connect_error(problem: &std::io::Error, role: HostRole, place: &HostAndPort) -> String {
    let (port, command) = (place.port, role.command());
    match problem.kind() {
        std::io::ErrorKind::ConnectionRefused => {
            format!("no program listens on port {port}; start `{command}` there")
        }
        std::io::ErrorKind::TimedOut => format!(
            "no answer within 10 s; check that the host is up, that `{command}` runs there, and that a firewall lets TCP port {port} pass"
        ),
        _ => format!("cannot connect to port {port}: {problem}"),
    }
}

fn unexpected_reply(reply: &Reply) -> String {
    let text = format!("{reply:?}");
    let name = text.split([' ', '(', '{']).next().unwrap_or_default();
    format!("the other host sent an unexpected message: {name:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_flow_without_an_end_on_the_host_are_refused() {
        let seen = |flow: usize| {
            let seen = r#"[9,0,"192.0.2.7",[1,null,null,null,null,null]]"#;
            vec![(flow, serde_json::from_str::<CompactSenderSample>(seen).unwrap())]
        };
        assert!(with_samples(Vec::new(), Vec::new()).unwrap().is_empty());
        for flow in [0, usize::MAX] {
            let problem = with_samples(Vec::new(), seen(flow)).unwrap_err().to_string();
            assert!(problem.contains(&format!("flow {flow}")), "{problem}");
        }
    }
}
