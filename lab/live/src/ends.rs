//! The service of `hol live serve`: this host runs ends of flows whose other ends are on other hosts.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use hol_base::Seed;
use hol_scenario::Sample;
use hol_sockets::{CompactSenderSample, EndResult, FlowReportCallback, LocalEnds, PeerReport, ReportRouter};

use crate::check::{self, Path};
use crate::control::{ControlError, MAX_SAMPLES, Outbox, Reply, Request, RunDescription};
use crate::host_properties;
use crate::placement::AddressPair;
use crate::ports::Ports;
use crate::secret::Secret;
use crate::service::ClientService;
use crate::session::send;

const NO_RUN: &str = "a message about a run arrived, but no run is active";

/// Maximum number of samples in a control message.
const SAMPLES_PER_MESSAGE: usize = 1 << 16;

/// Runs the ends of flows on this host for one client: the host with the experiment.
pub(crate) struct EndsService {
    outbox: Arc<Mutex<Outbox<TcpStream>>>,
    secret: Secret,
    address_pair: AddressPair,
    ports: Option<Ports>,
    local_reports: ReportRouter,
    local_ends: Option<LocalEnds>,
    /// The results of the clients that have ended.
    ended: Vec<(usize, EndResult)>,
}

impl EndsService {
    /// Creates the service for the client at the other end of a stream.
    pub(crate) fn new(
        stream: &TcpStream,
        outbox: Arc<Mutex<Outbox<TcpStream>>>,
        secret: Secret,
        ports: Option<Ports>,
    ) -> Result<Self, ControlError> {
        let address = |address: io::Result<SocketAddr>| {
            // An IPv4 client may have connected to an IPv6 socket.
            address.map(|address| address.ip().to_canonical())
        };
        let address_pair =
            AddressPair { first: address(stream.peer_addr())?, other: address(stream.local_addr())? };
        Ok(Self {
            outbox,
            secret,
            address_pair,
            ports,
            local_reports: ReportRouter::default(),
            local_ends: None,
            ended: Vec::new(),
        })
    }

    /// Makes the local servers listen; returns their ports by flow.
    fn listen(&mut self, plan: RunDescription) -> Result<Vec<u16>, String> {
        let RunDescription { scenario, seed, interval, placement, run } = plan;
        // A new plan ends the previous run.
        (self.local_ends, self.ended) = (None, Vec::new());
        let shortest = Sample::SHORTEST_INTERVAL;
        if let Some(interval) = interval.filter(|interval| *interval < shortest) {
            return Err(format!("`series` = \"{interval}\" is too short; use at least {shortest}"));
        }
        check::check_supported(&scenario, Path::Between).map_err(|why| why.to_string())?;
        let placement =
            placement.seen_by(self.address_pair).ok_or("the plan refers to a host that it does not list")?;
        let mut flow_parameters = placement.flow_parameters(&scenario, Seed(seed))?;
        let here = placement.local_ends(&flow_parameters);
        self.ports.map_or(Ok(()), |ports| ports.assign(&mut flow_parameters, &here))?;
        let outbox = Arc::clone(&self.outbox);
        // An error is ignored here: the thread that receives will notice it, too.
        let tell: Arc<FlowReportCallback> = Arc::new(move |flow: usize, report: PeerReport| {
            drop(send(&outbox, &Reply::ServerReport(flow, report)));
        });
        let secret = self.secret.derive_for_run(&run);
        let listening = LocalEnds::listen(
            &scenario,
            flow_parameters,
            &here,
            secret,
            (&tell, &self.local_reports),
            interval,
        );
        let (ends, ports) = listening.map_err(|problem| problem.to_string())?;
        self.local_ends = Some(ends);
        Ok(ports)
    }

    fn end_clients(&mut self) -> Result<(), String> {
        let ends = self.local_ends.as_mut().ok_or(NO_RUN)?;
        self.ended.extend(ends.end_clients().map_err(|problem| problem.to_string())?);
        Ok(())
    }

    /// Ends all clients and servers on this host, and returns their results.
    fn end_all(&mut self) -> Result<Vec<(usize, EndResult)>, String> {
        self.end_clients()?;
        let mut ends = self.local_ends.take().ok_or(NO_RUN)?;
        let servers = ends.end_servers().map_err(|problem| problem.to_string())?;
        Ok([std::mem::take(&mut self.ended), servers].concat())
    }

    /// Sends the samples of the senders on this host, up to the maximum for a run.
    fn send_samples(&self, ends: &[(usize, EndResult)]) -> Result<(), ControlError> {
        let all = ends.iter().flat_map(|(flow, half)| half.sender_samples().map(|seen| (*flow, seen)));
        let mut all = all.take(MAX_SAMPLES);
        loop {
            let part: Vec<(usize, CompactSenderSample)> = all.by_ref().take(SAMPLES_PER_MESSAGE).collect();
            if part.is_empty() {
                return Ok(());
            }
            send(&self.outbox, &Reply::Samples(part))?;
        }
    }
}

impl ClientService for EndsService {
    fn answer(&mut self, request: Request) -> Option<Reply> {
        match request {
            Request::ServerReport(flow, report) => {
                self.local_reports.deliver(flow, report);
                None
            }
            Request::Check(scenario) => Some(match check::check_supported(&scenario, Path::Between) {
                Ok(()) => Reply::Supported(host_properties::settings(&scenario)),
                Err(why) => Reply::Refused(why.to_string()),
            }),
            Request::Plan(plan) => Some(match self.listen(*plan) {
                Ok(ports) => Reply::Ready { ports },
                Err(why) => Reply::Refused(why),
            }),
            Request::Start { ports } => {
                let started = self.local_ends.as_mut().map_or(Ok(()), |ends| ends.start(&ports));
                started.err().map(|problem| Reply::Failed(problem.to_string()))
            }
            Request::EndClients => Some(self.end_clients().map_or_else(Reply::Failed, |()| Reply::ClientsEnded)),
            Request::End => Some(self.end_all().map_or_else(Reply::Failed, |ends| {
                // An error is ignored here: the thread that receives will notice it, too.
                let _ = self.send_samples(&ends);
                Reply::Results(ends)
            })),
            Request::Between { .. } | Request::Shape { .. } | Request::Restore => Some(Reply::Refused(
                "this host runs servers (`hol live serve`) and is not a router; start `hol live route` on the router".to_owned(),
            )),
            Request::Alive | Request::Ping => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::MAX_MESSAGE;

    #[test]
    fn a_batch_of_samples_fits_into_a_message() {
        let (max, address) = (u64::MAX, "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255");
        let longest = serde_json::to_vec(&(max, (max, u32::MAX, address, [max; 6]))).unwrap();
        assert!(SAMPLES_PER_MESSAGE * (longest.len() + 1) < MAX_MESSAGE / 8);
    }
}
