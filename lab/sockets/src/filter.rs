//! The kernel's packet filter behind the middlebox, in the network of the server.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use hol_base::{Duration, Time};
use hol_filter::{Config, Corrections, FilterError, Nftables, PacketFilter};
use hol_scenario::FilterReport;
use hol_simco::{Change, Rule};
use hol_workloads::RuleEnforcer;

/// The longest time by which the kernel ends a rule's lifetime early: the kernel's longest tick (CONFIG_HZ=100).
const KERNEL_TICK: Duration = Duration::from_millis(10);

/// A packet filter. The middlebox uses it during the run, the event loop afterwards.
#[derive(Clone)]
pub(crate) struct Filter(Rc<RefCell<Inner>>);

/// The packet filter of a run, and its final report.
struct Inner {
    nftables: Nftables,
    /// The comparison of the rules in the filter at the end with those that the middlebox granted.
    report: Option<Result<FilterReport, FilterError>>,
}

impl Filter {
    /// Creates a table without rules in the network of this thread; from now on only packets that a rule
    /// allows are forwarded.
    pub(crate) fn new() -> Result<Self, FilterError> {
        let mut nftables = Nftables::open(Config::new())?;
        nftables.reconcile(Time::ZERO, &[])?;
        Ok(Self(Rc::new(RefCell::new(Inner { nftables, report: None }))))
    }

    /// Returns a comparison of the rules in the kernel with the rules that the middlebox granted; `None`
    /// before the end.
    pub(crate) fn report(&self) -> Result<Option<FilterReport>, FilterError> {
        self.0.borrow_mut().report.take().transpose()
    }
}

impl RuleEnforcer for Filter {
    fn apply(&mut self, now: Time, changes: &[Change]) -> bool {
        self.0.borrow_mut().nftables.apply(now, changes).is_ok()
    }

    fn verify_rules(&mut self, now: Time, rules: &[Rule]) {
        let Inner { nftables, report } = &mut *self.0.borrow_mut();
        let world_report = |Corrections { missing, surplus }| {
            let ending = rules.iter().filter(|rule| rule.expires <= now + KERNEL_TICK).count();
            FilterReport { rules: rules.len(), ending, missing, surplus }
        };
        *report = Some(nftables.reconcile(now, rules).map(world_report));
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Filter(nftables)")
    }
}
