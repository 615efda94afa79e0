//! The workloads on the operating system's own sockets: TCP, MPTCP, SCTP, UDP.
//!
//! [`run`] drives both ends of one flow from one thread and one event loop. Each end's sockets are made in the
//! network that the caller's `enter` moves the thread to, so the two ends may live in two network namespaces.
//! What a transport's options need of those namespaces, [`sysctls`] says; what the kernel cannot do at all is
//! refused before anything is opened.
//!
//! Sockets do not tell when a message left the sender or when it was complete at the receiver. The records
//! say written = first sent = last sent and arrived = delivered, so all of the delay but the slip is `network`.

mod clock;
mod filter;
mod mptcp;
mod open;
mod plan;
mod progress;
mod sctp;
mod sctp_structures;
mod side;
mod stop;
mod tcp;
mod token;
mod transceiver;
mod tuning;
mod udp;
mod world;

use std::io;

pub use plan::{Counts, End, Ending, Enforced, PathChange, Plan, Run, Site, SocketsError};
pub use stop::Stop;
pub use tuning::{Sysctl, Unsupported, sysctls};

/// Runs `plan` on this machine's kernel, in its time. `enter` moves the calling thread to the network where
/// the sockets of an end are to live, first the server's, then the client's, and the thread is left there.
pub fn run(plan: &Plan, enter: &mut dyn FnMut(End) -> io::Result<()>) -> Result<Run, SocketsError> {
    run_until(plan, None, enter)
}

/// As [`run`], but another thread may end it by raising `stop`: then the run has finished.
pub fn run_until(
    plan: &Plan,
    stop: Option<&Stop>,
    enter: &mut dyn FnMut(End) -> io::Result<()>,
) -> Result<Run, SocketsError> {
    plan.check()?;
    let mut world = open::world(plan, enter)?;
    stop.map_or(Ok(()), |stop| world.heed(stop))?;
    let ended = world.run()?;
    world.finish(ended, open::gives_up(plan))
}

impl Plan {
    /// Refuses a plan that contradicts itself or that the kernel cannot honour.
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
