//! Runs workloads over the operating system's sockets: TCP, MPTCP, SCTP, UDP, UNIX sockets, and QUIC over
//! UDP.
//!
//! [`run`] drives both ends of one flow in one thread and event loop; [`FlowRuns`] runs all flows of a
//! scenario, [`LocalEnds`] those ends that are on one of several hosts. The caller's `enter` moves the thread
//! to the network in which an end's sockets are created, so the ends may be in two network namespaces.
//! [`sysctls`] returns the settings that a transport needs in those namespaces; options that the kernel does
//! not support are rejected before any socket is opened. The kernel's routing socket reports changes of a
//! client's addresses (`host_addresses`), which its connections then use.
//!
//! Sockets do not report when a message left the sender or was complete at the receiver. So records have
//! written = first sent = last sent and arrived = delivered, and all delay except the time behind schedule
//! counts as `network`.

mod clock;
mod compact_sample;
mod datagrams;
mod end_result;
mod error;
mod event_loop;
mod event_loop_setup;
mod event_source;
mod filter;
mod flow_parameters;
mod flow_side;
mod flow_supervisor;
mod flows;
mod host_addresses;
mod ip_options;
mod local_ends;
mod mobile_association;
mod mptcp;
mod one_to_many;
mod over_udp;
mod peer_report;
mod quic;
mod read_delays;
mod receive_timestamps;
mod run_links;
mod run_start;
mod sample_timer;
mod sctp;
mod sctp_structures;
mod setting;
mod stop;
mod stream;
mod tcp;
mod transceiver;
mod tuning;
mod turns;
mod udp;
mod unix;
mod userspace_sctp;
mod wake_signal;
mod wall_clock_offset;

use std::io;

use event_loop_setup::LocalEnd;
use hol_scenario::Side;

pub use clock::{clocksource, monotonic};
pub use compact_sample::CompactSenderSample;
pub use end_result::{EndResult, FlowOutcome};
pub use error::{SocketsError, Unsupported};
pub use flow_parameters::{EndAddresses, Ending, FlowParameters, FlowRun, PathChange, SocketCounters};
pub use flows::{FlowRuns, flow_parameters};
pub use local_ends::{FlowReportCallback, LocalEnds, ReportRouter, join_ends};
pub use peer_report::{PeerReport, ReportCallback, ReportReceiver, ReportSender};
pub use run_links::RunLinks;
pub use run_start::RunStart;
pub use setting::{kernel_setting, kernel_version, setting_path};
pub use stop::StopSignal;
pub use tuning::{Sysctl, check_workload, requested_sysctls, sysctls};
pub use wake_signal::WakeSignal;

/// Runs the flow with these `parameters` on this machine's kernel and clock. `enter` moves the calling thread to the
/// network namespace of the client or of the server; after the run the thread is in the client's namespace.
pub fn run(
    parameters: &FlowParameters,
    enter: &mut dyn FnMut(Side) -> io::Result<()>,
) -> Result<FlowRun, SocketsError> {
    run_linked(parameters, RunLinks::default(), enter)
}

/// Runs the flow with these `parameters` as [`run`] does, connected to other runs by `links`.
pub fn run_linked(
    parameters: &FlowParameters,
    links: RunLinks<'_>,
    enter: &mut dyn FnMut(Side) -> io::Result<()>,
) -> Result<FlowRun, SocketsError> {
    parameters.check()?;
    let mut event_loop = event_loop_setup::event_loop(parameters, LocalEnd::Both, links, enter)?;
    let ended = event_loop.run()?;
    event_loop.finish(ended)
}

/// Runs only the client's end of a flow whose server listens on another host. The client receives the server's reports
/// from `reports`; `secret` is known only to the two hosts.
pub fn run_client(
    parameters: &FlowParameters,
    (reports, secret): (ReportReceiver, &[u8; 32]),
    links: RunLinks<'_>,
) -> Result<EndResult, SocketsError> {
    parameters.check()?;
    run_one_end(parameters, LocalEnd::Client(reports, secret), links, &mut |_| ())
}

/// Runs only the server's end of a flow until it is stopped. Calls `listens` with the server's port once the server
/// listens, and `send_report` with each report for the client's host.
pub fn run_server(
    parameters: &FlowParameters,
    (send_report, secret): (ReportCallback<'_>, &[u8; 32]),
    links: RunLinks<'_>,
    listens: &mut dyn FnMut(u16),
) -> Result<EndResult, SocketsError> {
    parameters.check()?;
    run_one_end(parameters, LocalEnd::Server(send_report, secret), links, listens)
}

fn run_one_end(
    parameters: &FlowParameters,
    here: LocalEnd<'_>,
    links: RunLinks<'_>,
    listens: &mut dyn FnMut(u16),
) -> Result<EndResult, SocketsError> {
    let stay = &mut |_| Ok(());
    let mut event_loop = event_loop_setup::event_loop(parameters, here, links, stay)?;
    listens(event_loop.server_site.port);
    let ended = event_loop.run()?;
    let end_result = event_loop.end_result(ended)?;
    event_loop.end_connections()?;
    Ok(end_result)
}

impl FlowParameters {
    /// Checks that the kernel of this host supports the protocol.
    pub fn probe(&self) -> Result<(), SocketsError> {
        event_loop_setup::probe(self)
    }

    /// Returns an error if the parameters contradict each other, or if the kernel does not support an option.
    pub fn check(&self) -> Result<(), SocketsError> {
        for (end, site) in [("client", &self.client), ("server", &self.server)] {
            if site.addresses.is_empty() {
                return Err(SocketsError::NoAddress(end));
            }
        }
        if self.messages == 0 {
            return Err(SocketsError::NoMessages);
        }
        self.workload.check()?;
        sysctls(&self.transport, &kernel_version())?;
        Ok(check_workload(&self.transport, &self.workload)?)
    }
}
