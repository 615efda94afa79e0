//! Passes the records of flows to the observer while the run continues.

use hol_base::Duration;
use hol_measure::{BackgroundTransfer, Record, TransferBuilder};
use hol_scenario::{Observer, RunError, Sample};

use crate::running_flow::RunningFlow;

/// Passes records on to an observer, and computes totals from them.
pub(crate) struct RecordSink<'o> {
    observer: &'o mut dyn Observer,
    /// The transfer of the measured flow so far.
    transfer: TransferBuilder,
    /// For each background flow, counts the octets that it delivers during the measured flow's transfer.
    background: Vec<BackgroundTransfer>,
}

impl<'o> RecordSink<'o> {
    /// Creates a sink for the measured flow and the background flows.
    pub(crate) fn new(observer: &'o mut dyn Observer, flows: &[RunningFlow]) -> Self {
        let (measured, background) = flows.split_first().expect("a flow is measured");
        let background = vec![BackgroundTransfer::new(measured.flow.start_time()); background.len()];
        Self { observer, transfer: TransferBuilder::default(), background }
    }

    /// Passes on the records of settled messages.
    pub(crate) fn pass_on_settled(&mut self, flows: &mut [RunningFlow]) -> Result<(), RunError> {
        for (number, flow) in flows.iter_mut().enumerate() {
            flow.take_settled(|record| self.pass_on(number, &record));
        }
        self.go_on()
    }

    /// Passes on all remaining records of the flows that have ended.
    pub(crate) fn pass_on_rest(&mut self, flows: &mut [RunningFlow]) -> Result<(), RunError> {
        for (number, flow) in flows.iter_mut().enumerate() {
            flow.take_rest(|record| self.pass_on(number, &record));
        }
        self.go_on()
    }

    /// Returns how many octets each background flow delivered during the transfer of the measured flow.
    pub(crate) fn background_octets(&self) -> impl Iterator<Item = u64> {
        self.background.iter().map(BackgroundTransfer::octets)
    }

    /// Returns the sampling interval that the observer requests; `None` if it requests no samples.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.observer.interval()
    }

    /// Passes a sample on to the observer.
    pub(crate) fn sample(&mut self, sample: &Sample) {
        self.observer.sample(sample);
    }

    fn pass_on(&mut self, number: usize, record: &Record) {
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
