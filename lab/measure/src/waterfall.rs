//! The waterfall of one page: when each file became known, for what it waited, and when it arrived.

use hol_base::{Duration, Time};
use serde::{Deserialize, Serialize};

use crate::nanoseconds;
use crate::{DelayComponent, Record, RecordKind, TransferTimes};

/// The waterfall of a page: its files, in the order in which the client learned of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waterfall {
    /// Number of the page in its run, from 1.
    pub page: u64,
    /// Time from the click to the last octet; `None` if it never arrived.
    #[serde(rename = "took_ns", with = "nanoseconds::optional")]
    pub took: Option<Duration>,
    /// The files of the page, the document first.
    pub files: Vec<WaterfallFile>,
}

/// One file of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaterfallFile {
    /// Stream or connection that carried the file.
    pub stream: u16,
    /// Size of the file in octets.
    pub octets: u32,
    /// Time from the click until the client learned of the file.
    #[serde(rename = "known_ns", with = "nanoseconds")]
    pub known_after: Duration,
    /// The parts of the file's delay after the client learned of it: first those of the request, then those of the
    /// reply with the file. Empty if the file never arrived.
    pub spans: Vec<Span>,
}

/// A part of a file's delay, with one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The cause of this part of the delay.
    pub cause: DelayComponent,
    /// The length of this part of the delay.
    #[serde(rename = "ns", with = "nanoseconds")]
    pub duration: Duration,
}

/// Collects the records from which a waterfall is drawn.
#[derive(Debug, Default)]
pub struct WaterfallBuilder {
    /// The pages of the run, each with its files.
    pages: Vec<(Record, Vec<Record>)>,
}

impl WaterfallBuilder {
    /// Number of pages at the start of a run among which the page to draw is chosen.
    const MAX_PAGES: usize = 64;
    /// Maximum number of files of a page that can be drawn; more bars would be unreadable.
    pub const MAX_FILES: usize = 256;

    /// Adds the next record. The record of a page must come before those of its files.
    pub fn add(&mut self, record: &Record) {
        match record.kind {
            RecordKind::Page if self.pages.len() < Self::MAX_PAGES => self.pages.push((*record, Vec::new())),
            RecordKind::Object => {
                let is_its_page = |page: &Record| record.parent.map(u64::from) == Some(page.id);
                if let Some((_, files)) = self.pages.last_mut().filter(|(page, _)| is_its_page(page)) {
                    files.push(*record);
                }
            }
            _ => (),
        }
    }

    /// Returns the page with the median time among the first 64 pages of the run; pages that never arrived count
    /// as the longest. Returns `None` if there is no page, or if the chosen page has too many files to draw.
    pub fn finish(mut self) -> Option<Waterfall> {
        let time = |page: &Record| page.latency().unwrap_or(Duration::MAX);
        self.pages.sort_by_key(|(page, _)| (time(page), page.id));
        let middle = self.pages.len().saturating_sub(1) / 2;
        let place =
            |page: &Record| self.pages.iter().filter(|(other, _)| other.id < page.id).count() as u64 + 1;
        let (page, files) = self.pages.get(middle)?;
        (files.len() <= Self::MAX_FILES).then(|| Waterfall::new(place(page), page, files))
    }
}

impl Waterfall {
    /// Returns the waterfall of the page with this number, of which `page` and `files` are the records.
    pub fn new(number: u64, page: &Record, files: &[Record]) -> Self {
        let bars = files.iter().map(|file| WaterfallFile::new(file, page.scheduled)).collect();
        Self { page: number, took: page.latency(), files: bars }
    }

    /// Returns the time from the click to the end of the last file.
    pub fn end(&self) -> Duration {
        let last = self.files.iter().map(WaterfallFile::end).max().unwrap_or(Duration::ZERO);
        self.took.unwrap_or(Duration::ZERO).max(last)
    }
}

impl WaterfallFile {
    fn new(file: &Record, click: Time) -> Self {
        let Record { stream, size: octets, .. } = *file;
        let came = file.latency().and(file.request.zip(file.reply));
        let spans = came.map_or_else(Vec::new, |(request, reply)| spans(file.scheduled, request, reply));
        Self { stream, octets, known_after: file.scheduled.since(click), spans }
    }

    /// Returns the time from the click to the end of the file.
    pub fn end(&self) -> Duration {
        self.spans.iter().fold(self.known_after, |end, span| end + span.duration)
    }
}

/// Returns the parts of a file's delay after the client learned of it; parts of zero length are left out.
fn spans(known: Time, request: TransferTimes, reply: TransferTimes) -> Vec<Span> {
    let of = |leg: TransferTimes, before: Time| {
        let TransferTimes { written, first_sent, last_sent, arrived, delivered } = leg;
        let ends = [written, first_sent, last_sent, arrived, delivered];
        let begins = [before, written, first_sent, last_sent, arrived];
        let span = |((cause, end), begin): ((DelayComponent, Time), Time)| Span {
            cause,
            duration: end.since(begin),
        };
        DelayComponent::ALL.into_iter().zip(ends).zip(begins).map(span)
    };
    let all = of(request, known).chain(of(reply, request.delivered));
    all.filter(|span| !span.duration.is_zero()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    fn leg(times: [u64; 5]) -> TransferTimes {
        let [written, first_sent, last_sent, arrived, delivered] = times.map(Time::from_millis);
        TransferTimes { written, first_sent, last_sent, arrived, delivered }
    }

    fn record(id: u64, kind: RecordKind, parent: Option<u32>, known: u64, end: Option<u64>) -> Record {
        let request = Some(leg([known + 1, known + 1, known + 1, known + 6, known + 6]));
        let reply = end.map(|end| leg([known + 8, known + 9, end - 7, end - 2, end]));
        let outcome = if end.is_some() { Outcome::Completed } else { Outcome::Unfinished };
        let scheduled = Time::from_millis(known);
        Record { id, kind, parent, stream: 3, size: 900, reply_size: 0, scheduled, request, reply, outcome }
    }

    fn run(ends: &[Option<u64>]) -> Option<Waterfall> {
        let mut waterfall = WaterfallBuilder::default();
        for (page, end) in (0..).zip(ends) {
            let (id, click) = (3 * page, 1000 * page);
            let end = end.map(|end| click + end);
            waterfall.add(&record(id, RecordKind::Page, None, click, end));
            waterfall.add(&record(id + 1, RecordKind::Head, Some(id as u32), click, end));
            waterfall.add(&record(id + 2, RecordKind::Object, Some(id as u32), click, end));
        }
        waterfall.finish()
    }

    #[test]
    fn spans_of_a_file_are_in_order_and_add_up_to_its_time() {
        let waterfall = run(&[Some(100)]).unwrap();
        let [file] = &waterfall.files[..] else { panic!("one file") };
        let spans: Vec<_> =
            file.spans.iter().map(|span| (span.cause.name(), span.duration.as_millis())).collect();
        let expected =
            [("slip", 1), ("network", 5), ("slip", 2), ("sender", 1), ("recovery", 84), ("network", 5)];
        assert_eq!(spans[..6], expected);
        assert_eq!(spans[6..], [("head-of-line", 2)]);
        assert_eq!(
            (file.end(), waterfall.took),
            (Duration::from_millis(100), Some(Duration::from_millis(100)))
        );
        assert_eq!((file.stream, file.octets, waterfall.end()), (3, 900, file.end()));
    }

    #[test]
    fn median_page_is_shown_and_incomplete_pages_count_as_longest() {
        let page = |ends: &[Option<u64>]| run(ends).map(|waterfall| waterfall.page);
        assert_eq!(page(&[Some(300), Some(100), Some(200)]), Some(3));
        assert_eq!(page(&[None, Some(100), Some(200)]), Some(3));
        assert_eq!(page(&[None, None, Some(200)]), Some(1));
        assert_eq!(page(&[]), None);
    }

    #[test]
    fn incomplete_file_has_a_start_and_no_end() {
        let waterfall = run(&[None]).unwrap();
        assert_eq!((waterfall.took, waterfall.files[0].spans.len()), (None, 0));
        let text = serde_json::to_string(&waterfall).unwrap();
        assert_eq!(serde_json::from_str::<Waterfall>(&text).unwrap(), waterfall);
    }

    #[test]
    fn page_with_too_many_files_has_no_waterfall() {
        let mut waterfall = WaterfallBuilder::default();
        waterfall.add(&record(0, RecordKind::Page, None, 0, Some(50)));
        (1..=257).for_each(|id| waterfall.add(&record(id, RecordKind::Object, Some(0), 0, Some(50))));
        assert_eq!(waterfall.finish(), None);
    }
}
