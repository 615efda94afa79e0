//! The packet filter behind the middlebox: the one of the kernel, in the network of the server.

use std::cell::RefCell;
use std::rc::Rc;

use hol_base::Time;
use hol_filter::{Config, FilterError, Nftables, PacketFilter};
use hol_workloads::{Enforce, Server};

use crate::plan::Enforced;

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
    pub(crate) fn holds(&self, now: Time, server: &Server) -> Result<Enforced, FilterError> {
        let rules = server.rules(now);
        let mended = self.0.borrow_mut().reconcile(now, &rules)?;
        Ok(Enforced { rules: rules.len(), missing: mended.missing, surplus: mended.surplus })
    }
}
