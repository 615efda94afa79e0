//! `hol trace --waterfall`: draws a page of a run file by file, as bars of letters.

use hol_base::Duration;
use hol_measure::waterfall::WaterfallFile;
use hol_measure::{DelayComponent, Record, RecordKind, Waterfall, WaterfallBuilder};

use crate::terminal::aligned_table;

/// Width of the drawing in characters, which represents the loading time of the whole page.
const WIDTH: f64 = 60.0;

/// Returns the page with this number, counted from 1, or, without a number, the page with the median time. Returns
/// `None` if there is no such page, or if the page with the median time has too many files.
pub fn select_page(records: &[Record], number: Option<u64>) -> Option<Waterfall> {
    let Some(number) = number else {
        let mut waterfall = WaterfallBuilder::default();
        records.iter().for_each(|record| waterfall.add(record));
        return waterfall.finish();
    };
    let mut pages = records.iter().filter(|record| record.kind == RecordKind::Page);
    let page = pages.nth(usize::try_from(number.checked_sub(1)?).ok()?)?;
    let is_of_it =
        |record: &&Record| record.kind == RecordKind::Object && record.parent.map(u64::from) == Some(page.id);
    let files: Vec<Record> = records.iter().filter(is_of_it).copied().collect();
    Some(Waterfall::new(number, page, &files))
}

/// Returns the waterfall as text: the bars, and an explanation of their letters.
pub fn draw(page: &Waterfall) -> String {
    let took =
        page.took.map_or("never completed".to_owned(), |took| format!("in {:.1} ms", took.as_millis_f64()));
    let heads = ["file", "octets", "stream", "", "ms"].map(str::to_owned).to_vec();
    let rows = page.files.iter().enumerate().map(|(file, bar)| row(file, bar, page.end()));
    let table = aligned_table(&std::iter::once(heads).chain(rows).collect::<Vec<_>>(), |column| column != 3);
    let meanings =
        DelayComponent::ALL.map(|cause| format!("{} {}", letter(cause), cause.waterfall_label())).join("   ");
    format!("page {}, {} files, {took}\n\n{table}\n{meanings}\n", page.page, page.files.len())
}

fn row(file: usize, bar: &WaterfallFile, end: Duration) -> Vec<String> {
    let column =
        |at: Duration| (WIDTH * at.as_nanos() as f64 / end.as_nanos().max(1) as f64).round() as usize;
    let mut line = " ".repeat(column(bar.known_after));
    let mut at = bar.known_after;
    for span in &bar.spans {
        at += span.duration;
        let letters = column(at).saturating_sub(line.len());
        line.extend(std::iter::repeat_n(letter(span.cause), letters));
    }
    let complete =
        if bar.spans.is_empty() { "never".to_owned() } else { format!("{:.1}", at.as_millis_f64()) };
    vec![file.to_string(), bar.octets.to_string(), bar.stream.to_string(), line, complete]
}

const fn letter(cause: DelayComponent) -> char {
    match cause {
        DelayComponent::Slip => '.',
        DelayComponent::Sender => 's',
        DelayComponent::Recovery => 'R',
        DelayComponent::Network => '=',
        DelayComponent::HeadOfLine => 'H',
    }
}
