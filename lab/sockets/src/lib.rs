//! The workloads on the operating system's own sockets: TCP, MPTCP, SCTP, UDP, those of UNIX, and QUIC over UDP's.
//!
//! [`run`] drives both ends of one flow from one thread and one event loop; [`FlowRuns`] all flows of a scenario, [`Halves`] those ends
//! of them that are on one of several hosts. Each end's sockets are made in the
//! network that the caller's `enter` moves the thread to, so the two ends may live in two network namespaces.
//! What a transport's options need of those namespaces, [`sysctls`] says; what the kernel cannot do at all is
//! refused before anything is opened. A client whose addresses come and go hears of it from the kernel's routing (`presence`),
//! and its connections follow.
//!
//! Sockets do not tell when a message left the sender or when it was complete at the receiver. The records
//! say written = first sent = last sent and arrived = delivered, so all of the delay but the slip is `network`.

mod assignment;
mod beginning;
mod bell;
mod clock;
mod datagrams;
mod error;
mod event_loop;
mod far;
mod filter;
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
mod party;
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

pub use assignment::{Assignment, Counts, Ending, FlowRun, PathChange, Site};
pub use beginning::Beginning;
pub use bell::Bell;
pub use clock::{clocksource, monotonic};
pub use error::{SocketsError, Unsupported};
pub use far::{Letterbox, Mail, News, Tell};
pub use flows::{FlowRuns, assignments};
pub use half::{Half, Verdict};
pub use halves::{Halves, Post, TellOf, joined};
pub use seen::Seen;
pub use setting::{kernel_version, setting, setting_path};
pub use stop::Stop;
pub use ties::Ties;
pub use tuning::{Sysctl, asked, sysctls};

/// Does what `assignment` says on this machine's kernel, in its time. `enter` moves the calling thread to the network where
/// the sockets of an end are to live; the thread is left in the client's.
pub fn run(
    assignment: &Assignment,
    enter: &mut dyn FnMut(Side) -> io::Result<()>,
) -> Result<FlowRun, SocketsError> {
    run_tied(assignment, Ties::default(), enter)
}

/// As [`run`], tied to others.
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

/// Runs the client's end of a flow alone, whose server is on another host and listens; news of it come by `mail`, and `secret` is
/// known to both hosts and to nobody else.
pub fn run_client(
    assignment: &Assignment,
    (mail, secret): (Mail, &[u8; 32]),
    ties: Ties<'_>,
) -> Result<Half, SocketsError> {
    assignment.check()?;
    run_half(assignment, Here::Client(mail, secret), ties, &mut |_| ())
}

/// Runs the server's end of a flow alone until it is stopped; `listens` is told the port, and `tell` tells the client's host what
/// the rules of the flow need to know.
pub fn run_server(
    assignment: &Assignment,
    (tell, secret): (Tell<'_>, &[u8; 32]),
    ties: Ties<'_>,
    listens: &mut dyn FnMut(u16),
) -> Result<Half, SocketsError> {
    assignment.check()?;
    run_half(assignment, Here::Server(tell, secret), ties, listens)
}

fn run_half(
    assignment: &Assignment,
    here: Here<'_>,
    ties: Ties<'_>,
    listens: &mut dyn FnMut(u16),
) -> Result<Half, SocketsError> {
    let stay = &mut |_| Ok(());
    let mut event_loop = open::event_loop(assignment, here, ties, stay)?;
    listens(event_loop.server_site.port);
    let ended = event_loop.run()?;
    let half = event_loop.half(ended)?;
    event_loop.let_go()?;
    Ok(half)
}

impl Assignment {
    /// Whether this kernel has the protocol.
    pub fn probe(&self) -> Result<(), SocketsError> {
        open::probe(self)
    }

    /// Refuses what contradicts itself or the kernel cannot honour.
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
