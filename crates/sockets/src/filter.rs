//! The packet filter behind the middlebox: the one of the kernel, in the network of the server.

use std::cell::RefCell;
use std::rc::Rc;

use hol_base::{Duration, Time};
use hol_filter::{Config, FilterError, Mended, Nftables, PacketFilter};
use hol_workloads::{Enforce, Server};

use crate::clock::Clock;
use crate::plan::Enforced;

/// Lifetimes end earlier by this, at most: the kernel's longest tick (CONFIG_HZ=100).
const TICK: Duration = Duration::from_millis(10);

/// One filter in two hands: the middlebox's during the run, ours when it is over.
#[derive(Clone)]
pub(crate) struct Filter(Rc<RefCell<Nftables>>);

impl Filter {
    /// Makes a table without rules in the network of this thread: what they do not allow is not forwarded from now on.
    pub(crate) fn new() -> Result<Self, FilterError> {
        let mut filter = Nftables::open(Config::new())?;
        filter.reconcile(Time::ZERO, &[])?;
        Ok(Self(Rc::new(RefCell::new(filter))))
    }

    /// What the middlebox is given.
    pub(crate) fn enforce(&self) -> Enforce {
        let Self(filter) = self.clone();
        Box::new(move |now, changes| filter.borrow_mut().apply(now, changes).is_ok())
    }

    /// Whether the kernel holds what the middlebox granted.
    pub(crate) fn holds(&self, clock: &Clock, server: &Server) -> Result<Enforced, FilterError> {
        let now = clock.now();
        let rules = server.rules(now);
        let Mended { missing, surplus } = self.0.borrow_mut().reconcile(now, &rules)?;
        let over = clock.now() + TICK;
        let ending = rules.iter().filter(|rule| rule.expires <= over).count();
        Ok(Enforced { rules: rules.len(), ending, missing, surplus })
    }
}
