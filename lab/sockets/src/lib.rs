//! The workloads over the operating system's sockets: TCP, MPTCP, SCTP, UDP, UNIX sockets, and QUIC over UDP.
//!
//! [`run`] drives both ends of one flow in one thread and event loop; [`FlowRuns`] runs all flows of a
//! scenario, [`LocalEnds`] those ends that are on one of several hosts. The caller's `enter` moves the thread to
//! the network in which an end's sockets are created, so the ends may be in two network namespaces.
//! [`sysctls`] returns the settings that a transport needs in those namespaces; what the kernel cannot do is
//! rejected before anything is opened. The kernel's routing socket reports changes of a client's addresses
//! (`presence`), and its connections follow.
//!
//! Sockets do not report when a message left the sender or was complete at the receiver. So records have
//! written = first sent = last sent and arrived = delivered, and all delay except the slip counts as
//! `network`.

mod assignment;
mod beginning;
mod bell;
mod clock;
mod datagrams;
mod error;
mod event_loop;
mod far;
mod filter;
mod flow_side;
mod flows;
mod half;
mod halves;
mod ip_options;
mod moving;
mod mptcp;
mod one_to_many;
mod open;
mod over_udp;
mod own_sctp;
mod presence;
mod quic;
mod referee;
mod sctp;
mod sctp_structures;
mod seen;
mod setting;
mod stamps;
mod stop;
mod stream;
mod tcp;
mod ticks;
mod ties;
mod token;
mod transceiver;
mod tuning;
mod turns;
mod udp;
mod unix;
mod waits;
mod wall;

use std::io;

use hol_scenario::Side;
use open::Here;

pub use assignment::{Assignment, Counts, EndAddresses, Ending, FlowRun, PathChange};
pub use beginning::Beginning;
pub use bell::Bell;
pub use clock::{clocksource, monotonic};
pub use error::{SocketsError, Unsupported};
pub use far::{PeerReport, ReportReceiver, ReportSender, Tell};
pub use flows::{FlowRuns, assignments};
pub use half::{EndResult, Verdict};
pub use halves::{LocalEnds, ReportRouter, TellOf, joined};
pub use seen::Seen;
pub use setting::{kernel_version, setting, setting_path};
pub use stop::Stop;
pub use ties::Ties;
pub use tuning::{Sysctl, asked, sysctls};

/// Runs `assignment` on this machine's kernel and clock. `enter` moves the calling thread to the network of
/// an end's sockets; the thread is left in the client's.
pub fn run(
    assignment: &Assignment,
    enter: &mut dyn FnMut(Side) -> io::Result<()>,
) -> Result<FlowRun, SocketsError> {
    run_tied(assignment, Ties::default(), enter)
}

/// As [`run`], tied to other runs.
pub fn run_tied(
    assignment: &Assignment,
    ties: Ties<'_>,
    enter: &mut dyn FnMut(Side) -> io::Result<()>,
) -> Result<FlowRun, SocketsError> {
    assignment.check()?;
    let mut event_loop = open::event_loop(assignment, Here::Both, ties, enter)?;
    let ended = event_loop.run()?;
    event_loop.finish(ended)
}

/// Runs only the client's end of a flow whose server listens on another host. `mail` delivers its news; only
/// both hosts know `secret`.
pub fn run_client(
    assignment: &Assignment,
    (mail, secret): (ReportReceiver, &[u8; 32]),
    ties: Ties<'_>,
) -> Result<EndResult, SocketsError> {
    assignment.check()?;
    run_half(assignment, Here::Client(mail, secret), ties, &mut |_| ())
}

/// Runs only the server's end of a flow until it is stopped. `listens` gets the port; `tell` reports to the
/// client's host.
pub fn run_server(
    assignment: &Assignment,
    (tell, secret): (Tell<'_>, &[u8; 32]),
    ties: Ties<'_>,
    listens: &mut dyn FnMut(u16),
) -> Result<EndResult, SocketsError> {
    assignment.check()?;
    run_half(assignment, Here::Server(tell, secret), ties, listens)
}

fn run_half(
    assignment: &Assignment,
    here: Here<'_>,
    ties: Ties<'_>,
    listens: &mut dyn FnMut(u16),
) -> Result<EndResult, SocketsError> {
    let stay = &mut |_| Ok(());
    let mut event_loop = open::event_loop(assignment, here, ties, stay)?;
    listens(event_loop.server_site.port);
    let ended = event_loop.run()?;
    let half = event_loop.half(ended)?;
    event_loop.let_go()?;
    Ok(half)
}

impl Assignment {
    /// Checks that this kernel has the protocol.
    pub fn probe(&self) -> Result<(), SocketsError> {
        open::probe(self)
    }

    /// Rejects contradictions and what the kernel cannot honour.
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
        Ok(tuning::check(self)?)
    }
}
