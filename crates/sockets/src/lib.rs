//! The workloads on the operating system's own sockets: TCP, MPTCP, SCTP, UDP, those of UNIX, and QUIC over UDP's.
//!
//! [`run`] drives both ends of one flow from one thread and one event loop; [`FlowRuns`] all flows of a scenario. Each end's sockets are made in the
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
mod event_loop;
mod filter;
mod flows;
mod moving;
mod mptcp;
mod one_to_many;
mod open;
mod own_sctp;
mod presence;
mod quic;
mod sctp;
mod sctp_structures;
mod setting;
mod side;
mod stop;
mod tcp;
mod ticks;
mod ties;
mod token;
mod transceiver;
mod tuning;
mod udp;
mod unix;

use std::io;

pub use assignment::{Assignment, Counts, End, Ending, FlowRun, PathChange, Site, SocketsError};
pub use beginning::Beginning;
pub use bell::Bell;
pub use clock::clocksource;
pub use flows::{FlowRuns, assignments};
pub use setting::{kernel_version, setting, setting_path};
pub use stop::Stop;
pub use ties::Ties;
pub use tuning::{Sysctl, Unsupported, sysctls};

/// Does what `assignment` says on this machine's kernel, in its time. `enter` moves the calling thread to the network where
/// the sockets of an end are to live; the thread is left in the client's.
pub fn run(
    assignment: &Assignment,
    enter: &mut dyn FnMut(End) -> io::Result<()>,
) -> Result<FlowRun, SocketsError> {
    run_tied(assignment, Ties::default(), enter)
}

/// As [`run`], tied to others.
pub fn run_tied(
    assignment: &Assignment,
    ties: Ties<'_>,
    enter: &mut dyn FnMut(End) -> io::Result<()>,
) -> Result<FlowRun, SocketsError> {
    assignment.check()?;
    let mut event_loop = open::event_loop(assignment, ties, enter)?;
    let ended = event_loop.run()?;
    event_loop.finish(ended)
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
