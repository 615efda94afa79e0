//! Processes the records and samples of a run while it continues.

use std::collections::BTreeMap;

use hol_base::{Duration, Time};
use hol_measure::{
    Outage, OutageCurve, OutagesBuilder, Record, RecordKind, Summarizer, Summary, Timeline, TimelineBuilder,
    TransferBuilder, Waterfall, WaterfallBuilder,
};
use hol_scenario::{Observer, Sample};
use hol_workloads::SizeClass;

use crate::error::LabError;
use crate::records::RecordsFile;
use crate::series::SeriesFile;

/// The observer of a run: summarises the measured flow's records, writes the records of all flows, and reports progress.
pub(crate) struct RunObserver<'a> {
    kinds: Vec<Kind>,
    /// The length of the intervals in which deliveries are counted; `None` if they are not counted.
    part_length: Option<Duration>,
    /// The times at which the path is disrupted.
    disruptions: Vec<Time>,
    /// The waterfall of a page; `None` if none is to be drawn.
    waterfall: Option<WaterfallBuilder>,
    /// The classes of message sizes. Each has a summary of its records, if these are of the kind by which the workload
    /// is measured.
    classes: Vec<(SizeClass, Summarizer)>,
    /// The kind of records by which the workload is measured.
    measured: RecordKind,
    file: Option<RecordsFile>,
    series: Option<SeriesFile>,
    interval: Option<Duration>,
    /// The error that occurred while records were written, if there was one.
    problem: Option<LabError>,
    /// Function that is called from time to time with the number of newly settled messages, and returns whether
    /// the run continues.
    report_progress: &'a mut dyn FnMut(u64) -> bool,
    unreported: u64,
}

/// The summary of the records of one kind, and what is derived from them.
struct Kind {
    kind: RecordKind,
    summarizer: Summarizer,
    transfer: TransferBuilder,
    timeline: Option<TimelineBuilder>,
    outages: OutagesBuilder,
}

/// The summaries of a run's records.
pub(crate) struct RecordSummaries {
    /// Summary of the records that measure the workload.
    pub(crate) summary: Summary,
    /// Time from when the first measured message was sent until the last one was delivered.
    pub(crate) span: Duration,
    /// Deliveries of the measured messages over time.
    pub(crate) timeline: Option<Timeline>,
    /// Effect of each disruption of the path on the measured messages.
    pub(crate) outages: Vec<Outage>,
    /// Response times around the first disruption.
    pub(crate) outage_curve: OutageCurve,
    /// Summaries of the classes of message sizes.
    pub(crate) classes: Vec<Summary>,
    /// Summaries of the other kinds of records.
    pub(crate) other: BTreeMap<RecordKind, Summary>,
    /// Waterfall of one page, if one is drawn.
    pub(crate) waterfall: Option<Waterfall>,
}

impl<'a> RunObserver<'a> {
    /// Creates an observer of a run that writes the records to `file`, if there is one.
    pub(crate) fn new(
        part: Option<Duration>,
        file: Option<RecordsFile>,
        report_progress: &'a mut dyn FnMut(u64) -> bool,
    ) -> Self {
        Self {
            kinds: Vec::new(),
            part_length: part,
            disruptions: Vec::new(),
            waterfall: None,
            classes: Vec::new(),
            measured: RecordKind::Message,
            file,
            series: None,
            interval: None,
            problem: None,
            report_progress,
            unreported: 0,
        }
    }

    /// Makes the observer also build the waterfall of one page.
    pub(crate) fn with_waterfall(self) -> Self {
        Self { waterfall: Some(WaterfallBuilder::default()), ..self }
    }

    /// Makes the observer also summarise the records of `kind`, separately for each of these classes.
    pub(crate) fn with_classes(self, kind: RecordKind, classes: Vec<SizeClass>) -> Self {
        let classes = classes.into_iter().map(|class| (class, Summarizer::default())).collect();
        Self { measured: kind, classes, ..self }
    }

    /// Makes the observer also measure the effect of disruptions of the path at these times.
    pub(crate) fn with_disruptions(self, disruptions: Vec<Time>) -> Self {
        Self { disruptions, ..self }
    }

    /// Makes the observer also take samples at an `interval` and write them to `series`.
    pub(crate) fn with_series(self, interval: Option<Duration>, series: Option<SeriesFile>) -> Self {
        Self { interval, series, ..self }
    }

    /// Finishes a run that ended at time `ended`, and returns the summaries. The workload is measured by records
    /// of `kind`.
    pub(crate) fn finish(self, kind: RecordKind, ended: Time) -> Result<RecordSummaries, LabError> {
        self.problem.map_or(Ok(()), Err)?;
        self.file.map_or(Ok(()), RecordsFile::finish)?;
        self.series.map_or(Ok(()), |series| series.finish(ended))?;
        let waterfall = self.waterfall.and_then(WaterfallBuilder::finish);
        let classes = self.classes.into_iter().map(|(_, summarizer)| summarizer.finish()).collect();
        Ok(RecordSummaries { waterfall, classes, ..RecordSummaries::of(self.kinds, kind, ended) })
    }

    /// Returns the error that ended the run because records could not be written, if there was one.
    pub(crate) fn into_problem(self) -> Option<LabError> {
        self.problem
    }

    fn summarize(&mut self, record: &Record) {
        let at = self.kinds.iter().position(|of| of.kind == record.kind).unwrap_or_else(|| {
            self.kinds.push(Kind::new(record.kind, self.part_length, self.disruptions.clone()));
            self.kinds.len() - 1
        });
        self.kinds[at].add(record);
        for (_, summarizer) in self
            .classes
            .iter_mut()
            .filter(|(class, _)| record.kind == self.measured && class.contains(record))
        {
            summarizer.add(record);
        }
        if let Some(waterfall) = &mut self.waterfall {
            waterfall.add(record);
        }
    }
}

impl Kind {
    fn new(kind: RecordKind, part: Option<Duration>, disruptions: Vec<Time>) -> Self {
        let (summarizer, transfer) = (Summarizer::default(), TransferBuilder::default());
        let (timeline, outages) = (part.map(TimelineBuilder::new), OutagesBuilder::new(disruptions));
        Self { kind, summarizer, transfer, timeline, outages }
    }

    fn add(&mut self, record: &Record) {
        self.summarizer.add(record);
        self.transfer.add(record);
        self.outages.add(record);
        if let Some(timeline) = &mut self.timeline {
            timeline.add(record);
        }
    }
}

impl Observer for RunObserver<'_> {
    fn record(&mut self, flow: usize, record: &Record) {
        if flow == 0 {
            self.summarize(record);
            self.unreported += 1;
        }
        let written = self.file.as_mut().map_or(Ok(()), |file| file.add(flow, record));
        let counted = self.series.as_mut().map_or(Ok(()), |series| series.add_record(flow, record));
        if let Err(problem) = written.and(counted) {
            self.problem.get_or_insert(problem);
        }
    }

    fn interval(&self) -> Option<Duration> {
        self.interval
    }

    fn sample(&mut self, sample: &Sample) {
        if let Some(Err(problem)) = self.series.as_mut().map(|series| series.add(sample)) {
            self.problem.get_or_insert(problem);
        }
    }

    fn goes_on(&mut self) -> bool {
        self.problem.is_none() && (self.report_progress)(std::mem::take(&mut self.unreported))
    }
}

impl RecordSummaries {
    fn of(mut kinds: Vec<Kind>, kind: RecordKind, ended: Time) -> Self {
        let at = kinds.iter().position(|of| of.kind == kind);
        let own = at.map_or_else(|| Kind::new(kind, None, Vec::new()), |at| kinds.swap_remove(at));
        let (outages, outage_curve) = own.outages.finish(ended);
        Self {
            outages,
            outage_curve,
            span: own.transfer.transfer().map_or(Duration::ZERO, |transfer| transfer.span()),
            timeline: own.timeline.map(TimelineBuilder::finish),
            summary: own.summarizer.finish(),
            other: kinds.into_iter().map(|of| (of.kind, of.summarizer.finish())).collect(),
            waterfall: None,
            classes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_measure::Outcome;

    #[test]
    fn kinds_are_summarised_separately() {
        let record = |id, kind, parent| Record {
            id,
            kind,
            parent,
            stream: 0,
            size: 100,
            reply_size: 0,
            scheduled: Time::ZERO,
            request: None,
            reply: None,
            outcome: Outcome::Unfinished,
        };
        let mut told = 0;
        let mut report_progress = |messages| {
            told += messages;
            true
        };
        let mut following = RunObserver::new(None, None, &mut report_progress);
        following.record(0, &record(0, RecordKind::Page, None));
        (1..4).for_each(|id| following.record(0, &record(id, RecordKind::Object, Some(0))));
        following.record(1, &record(0, RecordKind::Object, None));
        assert!(following.goes_on());
        let said = following.finish(RecordKind::Page, Time::ZERO).unwrap();
        let other: Vec<_> = said.other.iter().map(|(kind, summary)| (kind.name(), summary.offered)).collect();
        assert_eq!((said.summary.offered, other, told), (1, vec![("object", 3)], 4));
    }

    #[test]
    fn size_classes_summarise_only_the_measured_kind() {
        let class = |name: &str, min, max| SizeClass { name: name.to_owned(), is_reply_size: true, min, max };
        let classes = vec![class("short", 0, 999), class("long", 1000, u64::MAX)];
        let record = |kind, reply_size| Record {
            id: 0,
            kind,
            parent: None,
            stream: 0,
            size: 100,
            reply_size,
            scheduled: Time::ZERO,
            request: None,
            reply: None,
            outcome: Outcome::Unfinished,
        };
        let mut report_progress = |_| true;
        let mut following =
            RunObserver::new(None, None, &mut report_progress).with_classes(RecordKind::Transaction, classes);
        for reply_size in [8, 999, 1000] {
            following.record(0, &record(RecordKind::Transaction, reply_size));
        }
        following.record(0, &record(RecordKind::Batch, 1000));
        following.record(1, &record(RecordKind::Transaction, 1000));
        let said = following.finish(RecordKind::Transaction, Time::ZERO).unwrap();
        let offered: Vec<u64> = said.classes.iter().map(|class| class.offered).collect();
        assert_eq!(offered, [2, 1]);
    }
}
