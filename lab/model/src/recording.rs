//! What leaves a run while it goes on: the records of its flows, to whoever observes it.

use hol_base::Duration;
use hol_measure::{BackgroundTransfer, Record, TransferBuilder};
use hol_scenario::{Observer, RunError, Sample};

use crate::dialogue::Dialogue;

/// The records that have left, as far as the rest of the run depends on them.
pub(crate) struct Recording<'o> {
    observer: &'o mut dyn Observer,
    /// Of the measured flow.
    transfer: TransferBuilder,
    /// By flow of the background.
    background: Vec<BackgroundTransfer>,
}

impl<'o> Recording<'o> {
    /// Of the flow that is measured, and those beside it.
    pub(crate) fn new(observer: &'o mut dyn Observer, flows: &[Dialogue]) -> Self {
        let (measured, background) = flows.split_first().expect("a flow is measured");
        let background = vec![BackgroundTransfer::new(measured.flow.start()); background.len()];
        Self { observer, transfer: TransferBuilder::default(), background }
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
        self.background.iter().map(BackgroundTransfer::octets)
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
            Some(background) => self.background[background].add(record),
        }
        self.observer.record(number, record);
    }

    fn go_on(&mut self) -> Result<(), RunError> {
        if let Some(transfer) = self.transfer.transfer() {
            self.background.iter_mut().for_each(|background| background.count(transfer));
        }
        if self.observer.goes_on() { Ok(()) } else { Err(RunError::Interrupted) }
    }
}
