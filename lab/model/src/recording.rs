//! What leaves a run while it goes on: the records of its flows, to whoever observes it.

use hol_base::Duration;
use hol_measure::{Meanwhile, Record, TransferSoFar};
use hol_scenario::{Observer, RunError, Sample};

use crate::dialogue::Dialogue;

/// The records that have left, as far as the rest of the run depends on them.
pub(crate) struct Recording<'o> {
    observer: &'o mut dyn Observer,
    /// Of the measured flow.
    transfer: TransferSoFar,
    /// By flow of the background.
    meanwhile: Vec<Meanwhile>,
}

impl<'o> Recording<'o> {
    /// Of the flow that is measured, and those beside it.
    pub(crate) fn new(observer: &'o mut dyn Observer, flows: &[Dialogue]) -> Self {
        let (measured, background) = flows.split_first().expect("a flow is measured");
        let meanwhile = vec![Meanwhile::new(measured.flow.start()); background.len()];
        Self { observer, transfer: TransferSoFar::default(), meanwhile }
    }

    /// Takes the records of what is settled.
    pub(crate) fn settle(&mut self, flows: &mut [Dialogue]) -> Result<(), RunError> {
        for (number, flow) in flows.iter_mut().enumerate() {
            flow.settle(|record| self.take(number, &record));
        }
        self.go_on()
    }

    /// Takes all records of flows that are over.
    pub(crate) fn settle_all(&mut self, flows: &mut [Dialogue]) -> Result<(), RunError> {
        for (number, flow) in flows.iter_mut().enumerate() {
            flow.settle_all(|record| self.take(number, &record));
        }
        self.go_on()
    }

    /// Octets that each flow of the background delivered while the measured one was carried.
    pub(crate) fn octets(&self) -> impl Iterator<Item = u64> {
        self.meanwhile.iter().map(Meanwhile::octets)
    }

    /// How often the observer wants to see how the run stands.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.observer.interval()
    }

    pub(crate) fn sample(&mut self, sample: &Sample) {
        self.observer.sample(sample);
    }

    fn take(&mut self, number: usize, record: &Record) {
        match number.checked_sub(1) {
            None => self.transfer.add(record),
            Some(background) => self.meanwhile[background].add(record),
        }
        self.observer.record(number, record);
    }

    fn go_on(&mut self) -> Result<(), RunError> {
        if let Some(transfer) = self.transfer.transfer() {
            self.meanwhile.iter_mut().for_each(|meanwhile| meanwhile.count(transfer));
        }
        if self.observer.goes_on() { Ok(()) } else { Err(RunError::Interrupted) }
    }
}
