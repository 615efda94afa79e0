//! The local ends of a scenario's flows, each on its own thread, when the other ends are on other hosts.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::{io, thread};

use hol_base::Duration;
use hol_scenario::{OnwardLinks, Scenario, Side};

use crate::end_result::EndResult;
use crate::flows::{FlowRuns, SharedRequests, shared_requests};
use crate::peer_report::{PeerReport, ReportReceiver, ReportSender};
use crate::{FlowParameters, RunLinks, SocketsError, StopSignal, run_client, run_server};

/// A function that sends a report about the local server of a flow, given by its number, to the other host.
pub type FlowReportCallback = dyn Fn(usize, PeerReport) + Send + Sync;

/// Delivers reports about servers on other hosts to their clients on this host.
#[derive(Debug, Clone, Default)]
pub struct ReportRouter(Arc<Mutex<Vec<(usize, ReportSender)>>>);

impl ReportRouter {
    /// Delivers a report about the server of a flow to the flow's client on this host.
    pub fn deliver(&self, flow: usize, report: PeerReport) {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, report_sender)) = senders.iter().find(|(own, _)| *own == flow) {
            report_sender.send(report);
        }
    }

    fn add(&self, flow: usize, report_sender: ReportSender) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((flow, report_sender));
    }

    fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The running clients and servers of this host; dropping the value ends their runs.
pub struct LocalEnds {
    secret: [u8; 32],
    interval: Option<Duration>,
    /// Clients that have not yet started.
    waiting: Vec<(usize, FlowParameters, SharedRequests)>,
    /// Delivers the reports of servers to the clients that have started.
    report_router: ReportRouter,
    clients: Ends,
    servers: Ends,
    /// The channel with the numbers of flows whose clients have ended.
    ended_clients: (Sender<usize>, Receiver<usize>),
}

/// When dropped, reports that the client of a flow has ended, even after a failure.
struct EndNotifier(usize, Sender<usize>);

impl Drop for EndNotifier {
    fn drop(&mut self) {
        // The receiver may be gone.
        let _ = self.1.send(self.0);
    }
}

/// The threads of this host's clients or servers, and the signal that stops them.
struct Ends {
    stop: Arc<StopSignal>,
    threads: Vec<(usize, JoinHandle<Result<EndResult, SocketsError>>)>,
}

impl LocalEnds {
    /// Starts the servers of this host; `here` says which end of each flow runs on this host. Returns a port per flow,
    /// which is 0 for a server on another host.
    pub fn listen(
        scenario: &Scenario,
        flow_parameters: Vec<FlowParameters>,
        here: &[Option<Side>],
        secret: [u8; 32],
        (send_report, report_router): (&Arc<FlowReportCallback>, &ReportRouter),
        interval: Option<Duration>,
    ) -> Result<(Self, Vec<u16>), SocketsError> {
        let flows = flow_parameters.len();
        let (clients, servers) = (Ends::new()?, Ends::new()?);
        let (waiting, ended_clients) = (Vec::new(), channel());
        report_router.forget();
        let mut local_ends = Self {
            secret,
            interval,
            waiting,
            report_router: report_router.clone(),
            clients,
            servers,
            ended_clients,
        };
        let shared_requests = shared_requests(scenario, flows)?;
        let (listens, listening) = channel();
        for (flow, ((parameters, shared), end)) in
            flow_parameters.into_iter().zip(shared_requests).zip(here).enumerate()
        {
            match end {
                None => {}
                Some(Side::Client) => local_ends.waiting.push((flow, parameters, shared)),
                Some(Side::Server) => {
                    local_ends.serve(flow, parameters, shared, Arc::clone(send_report), listens.clone());
                }
            }
        }
        drop(listens);
        let mut ports = vec![0; flows];
        listening.into_iter().for_each(|(flow, port): (usize, u16)| ports[flow] = port);
        if local_ends.servers.threads.iter().any(|(flow, _)| ports[*flow] == 0) {
            local_ends.servers.end()?;
        }
        Ok((local_ends, ports))
    }

    fn serve(
        &mut self,
        flow: usize,
        parameters: FlowParameters,
        shared: SharedRequests,
        send_report: Arc<FlowReportCallback>,
        listens: Sender<(usize, u16)>,
    ) {
        let (secret, interval) = (self.secret, self.interval);
        self.servers.spawn(flow, move |stop| {
            let mut listens = Some(listens);
            let SharedRequests { links: OnwardLinks { pending_requests, .. }, wake_signal } = shared;
            let links = RunLinks {
                stop: Some(stop),
                onward_client: None,
                pending_requests,
                wake_signal,
                beginning: None,
                interval,
            };
            let send_report = Box::new(move |report| send_report(flow, report));
            // If a server fails, the wait for the ports must end too.
            run_server(&parameters, (send_report, &secret), links, &mut |port| {
                if let Some(listens) = listens.take() {
                    let _ = listens.send((flow, port));
                }
            })
        });
    }

    /// Starts the clients of this host; `ports` has the port of each flow's server.
    pub fn start(&mut self, ports: &[u16]) -> Result<(), SocketsError> {
        for (flow, mut parameters, shared) in std::mem::take(&mut self.waiting) {
            parameters.server.port = ports.get(flow).copied().unwrap_or_default();
            let (peer_reports, report_sender) = ReportReceiver::new()?;
            self.report_router.add(flow, report_sender);
            let (secret, interval, ended_clients) =
                (self.secret, self.interval, self.ended_clients.0.clone());
            self.clients.spawn(flow, move |stop| {
                let SharedRequests { links: OnwardLinks { onward_client, .. }, wake_signal } = shared;
                let links = RunLinks {
                    stop: Some(stop),
                    onward_client,
                    pending_requests: None,
                    wake_signal,
                    beginning: None,
                    interval,
                };
                let _notifier = EndNotifier(flow, ended_clients);
                stop.wait(parameters.workload.start)?;
                run_client(&parameters, (peer_reports, &secret), links)
            });
        }
        Ok(())
    }

    /// Waits until the client of `flow` has ended, at most for `within`; returns whether it has ended.
    pub fn wait_for_client_end(&self, flow: usize, within: std::time::Duration) -> bool {
        match self.ended_clients.1.recv_timeout(within) {
            Ok(own) => own == flow,
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => {
                unreachable!("`LocalEnds` itself has a sender of this channel")
            }
        }
    }

    /// Ends the clients of this host and returns their results; servers on the other host keep connections that are
    /// still open.
    pub fn end_clients(&mut self) -> Result<Vec<(usize, EndResult)>, SocketsError> {
        self.clients.end()
    }

    /// Ends the servers on this host and returns their results.
    pub fn end_servers(&mut self) -> Result<Vec<(usize, EndResult)>, SocketsError> {
        self.servers.end()
    }
}

impl Ends {
    fn new() -> io::Result<Self> {
        Ok(Self { stop: Arc::new(StopSignal::new()?), threads: Vec::new() })
    }

    fn spawn(
        &mut self,
        flow: usize,
        work: impl FnOnce(&StopSignal) -> Result<EndResult, SocketsError> + Send + 'static,
    ) {
        let stop = Arc::clone(&self.stop);
        self.threads.push((flow, thread::spawn(move || work(&stop))));
    }

    /// Stops the clients or servers, waits for their threads and returns their results.
    fn end(&mut self) -> Result<Vec<(usize, EndResult)>, SocketsError> {
        self.stop.raise()?;
        let all = self.threads.drain(..);
        let ended: Vec<_> =
            all.map(|(flow, thread)| (flow, thread.join().expect("a run does not panic"))).collect();
        ended.into_iter().map(|(flow, half)| Ok((flow, half?))).collect()
    }
}

impl Drop for LocalEnds {
    fn drop(&mut self) {
        self.report_router.forget();
        // The results are not needed.
        let _ = self.clients.end();
        let _ = self.servers.end();
    }
}

/// Joins the results of this host's ends (`here`) with those of the other host (`there`), whose times have been
/// converted to this host's clock. Returns `None` if they do not match. Also returns the number of timestamps that were
/// out of order according to the clocks.
pub fn join_ends(
    flow_parameters: &[FlowParameters],
    here: Vec<(usize, EndResult)>,
    there: Vec<(usize, EndResult)>,
) -> Option<(FlowRuns, u64)> {
    let mut local_ends: Vec<[Option<EndResult>; 2]> = flow_parameters.iter().map(|_| [None, None]).collect();
    // Local data take precedence.
    for (flow, half) in there.into_iter().chain(here) {
        let end = usize::from(half.verdict.is_none());
        local_ends.get_mut(flow)?[end] = Some(half);
    }
    let (mut flows, mut wrong) = (Vec::new(), 0);
    for (parameters, [client, server]) in flow_parameters.iter().zip(local_ends) {
        let reading = parameters.workload.ledger_join(parameters.transport.may_lose_messages());
        let (run, more) = client?.join(server?, reading)?;
        flows.push(run);
        wrong += more;
    }
    Some((FlowRuns::with_times_of_run(flows, flow_parameters), wrong))
}
