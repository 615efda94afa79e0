//! The packet filter of Linux, controlled by netlink messages.

mod change_detection;
mod element_changes;
mod endpoint_mappings;
mod expression;
mod kernel;
mod listing;
mod lookup;
mod ownership;
mod reconciliation;
mod ruleset;
mod sets;
mod surplus_search;
mod transaction;

use hol_base::Time;
use hol_simco::{Change, Rule};

use self::change_detection::Watch;
use self::element_changes::Steps;
use self::kernel::{EEXIST, ENOENT, Kernel, RejectedMessage};
use self::ownership::Ownership;
use self::reconciliation::PendingAddition;
use self::sets::Sets;
use self::surplus_search::SurplusSearch;
use self::transaction::Transaction;
use crate::required_elements::RequiredElements;
use crate::{Config, Corrections, FilterError, PacketFilter, Progress};

/// A packet filter with nftables: rules are elements of sets, in a table of their own. The kernel ends their lifetimes,
/// even without this process.
#[derive(Debug)]
pub struct Nftables {
    config: Config,
    kernel: Kernel,
    ownership: Ownership,
    watch: Option<Watch>,
    /// The elements that the table should contain.
    required: RequiredElements,
    /// The sets of the table.
    sets: Sets,
    /// Whether the kernel's table is known to contain the required elements, except for those in `missing`.
    is_known: bool,
    /// Elements that the reconciliation in progress has not added yet.
    missing: Vec<PendingAddition>,
    /// The search for surplus elements in a large table; `None` if none is in progress.
    survey: Option<SurplusSearch>,
}

impl Nftables {
    /// Maximum number of attempts to apply the same changes. A rejected transaction costs the kernel a grace period of
    /// several milliseconds (net/netfilter/nf_tables_api.c `__nf_tables_abort`).
    const MAX_ATTEMPTS: usize = 2;

    /// Opens nftables in this thread's network namespace. The table stays unchanged until
    /// [`reconcile`](PacketFilter::reconcile) is called, or until the first change, which then empties the table first.
    /// From then on the table belongs to this filter.
    pub fn open(config: Config) -> Result<Self, FilterError> {
        let kernel = Kernel::open()?;
        let ownership = if config.is_protected() { Ownership::detect(&kernel)? } else { Ownership::Shared };
        ownership.check(&kernel, config.table())?;
        Ok(Self {
            config,
            kernel,
            ownership,
            watch: None,
            required: RequiredElements::default(),
            sets: Sets::default(),
            is_known: false,
            missing: Vec::new(),
            survey: None,
        })
    }

    /// Enables [`has_foreign_change`](PacketFilter::has_foreign_change) to detect changes by other programs, if the
    /// table is not protected.
    pub fn watch(&mut self) -> Result<(), FilterError> {
        self.watch = Some(Watch::open(self.config.table(), self.kernel.port()?)?);
        Ok(())
    }

    /// Returns the tables of other middleboxes, whether these run or not. If several tables filter a packet, it passes
    /// only if all of them accept it.
    pub fn other_tables(&self) -> Result<Vec<String>, FilterError> {
        self.kernel.tables_with(&ruleset::COMMON_CHAINS, self.config.table())
    }

    /// Removes the table, so that no rule has any effect.
    pub fn remove(self) -> Result<(), FilterError> {
        let mut transaction = Transaction::new(self.config.table());
        transaction.ensure_table();
        transaction.delete_table();
        match self.kernel.commit(&transaction.finish())?.first() {
            None => Ok(()),
            Some(refusal) => Err(refusal.reason(self.config.table())),
        }
    }

    /// Applies the steps in one transaction; the messages that `begin` adds come first.
    fn commit(
        &self,
        now: Time,
        sets: &Sets,
        mut steps: Steps,
        begin: impl Fn(&mut Transaction<'_>),
    ) -> Result<(), FilterError> {
        let mut refusals = Vec::new();
        for _ in 0..Self::MAX_ATTEMPTS {
            let mut transaction = Transaction::new(self.config.table());
            begin(&mut transaction);
            steps.add_to(now, sets, self.kernel.abilities(), &mut transaction);
            refusals = self.kernel.commit(&transaction.finish())?;
            self.watch.iter().for_each(Watch::read_events);
            if refusals.is_empty() {
                return Ok(());
            }
            let adjusted = steps.adjust(&refusals);
            if self.is_known && !self.kernel.has_table(self.config.table())? {
                return Err(self.table_changed_error());
            }
            if let Err(refusal) = adjusted {
                return Err(self.reason(refusal, &refusals, &steps));
            }
        }
        match refusals.iter().find(|refusal| refusal.is_transient()) {
            Some(&refusal) => Err(self.reason(refusal, &refusals, &steps)),
            None => Err(self.table_changed_error()),
        }
    }

    /// Tells the search for surplus elements which elements are added meanwhile.
    fn note_added(&self, sets: &Sets, steps: &Steps) {
        if let Some(survey) = &self.survey {
            let named = steps.additions().filter_map(|(shape, key)| Some((sets.name(shape)?, key)));
            named.for_each(|(set, key)| survey.note_added(set, key));
        }
    }

    /// Returns the error for the rejected message `refusal`, which is one of `all` and would be rejected again.
    fn reason(&self, refusal: RejectedMessage, all: &[RejectedMessage], steps: &Steps) -> FilterError {
        let is_avoidable = |one: &RejectedMessage| *one != refusal && matches!(one.error, ENOENT | EEXIST);
        let unavoidable: Vec<RejectedMessage> =
            all.iter().copied().filter(|one| !is_avoidable(one)).collect();
        match (steps.changes_of(&unavoidable), refusal.reason(self.config.table())) {
            (Some(_), _) if refusal.error == ENOENT => self.table_changed_error(),
            (Some(changes), FilterError::MissingFeature(source) | FilterError::Busy(source)) => {
                FilterError::Refused { changes, is_transient: refusal.is_transient(), source }
            }
            (_, reason) => reason,
        }
    }

    fn table_changed_error(&self) -> FilterError {
        FilterError::TableChanged { table: self.config.table().into() }
    }
}

impl PacketFilter for Nftables {
    fn apply(&mut self, now: Time, changes: &[Change]) -> Result<(), FilterError> {
        if !self.is_known {
            let required = std::mem::take(&mut self.required);
            self.repair(now, required)?;
        }
        let changed = self.required.apply(changes)?;
        let steps = Steps::of(now, &changed, &self.required);
        if steps.is_empty() {
            return Ok(());
        }
        let made = self.sets.with_sets_for(&steps, &self.required).and_then(|sets| {
            self.note_added(&sets, &steps);
            self.commit(now, &sets, steps, |transaction| self.sets.change(&sets, transaction, &self.config))?;
            Ok(sets)
        });
        match made {
            Ok(sets) => self.sets = sets,
            Err(error) => {
                self.required.undo(changes);
                // It is unknown whether the kernel has made the changes.
                self.is_known = !matches!(error, FilterError::Socket(_));
                return Err(error);
            }
        }
        Ok(())
    }

    fn reconcile(&mut self, now: Time, rules: &[Rule]) -> Result<Corrections, FilterError> {
        self.repair(now, RequiredElements::of(rules.iter().filter(|rule| rule.is_in_force(now)))?)
    }

    fn continue_reconciliation(&mut self, now: Time) -> Result<Progress, FilterError> {
        if self.is_known && !self.missing.is_empty() {
            self.add_missing(now)?;
        }
        if !self.missing.is_empty() {
            Ok(Progress::AddingMissing)
        } else if self.survey.is_none() || self.finish_surplus_search(now)? {
            Ok(Progress::Done)
        } else {
            Ok(Progress::SearchingSurplus)
        }
    }

    fn is_protected(&self) -> bool {
        self.ownership == Ownership::Exclusive
    }

    fn has_foreign_change(&mut self) -> bool {
        self.watch.as_ref().is_some_and(Watch::has_foreign_change)
    }
}
