//! A waterfall: the delay components of each file of a page, for every transport on a common time axis. All lengths are
//! in px.

use std::fmt::Write;

use hol_measure::DelayComponent;
use hol_measure::waterfall::{Waterfall, WaterfallFile};

use super::selected_points::{selected_points, side_by_side};
use crate::data::Cell;
use crate::plot::{Anchor, Scale, Svg, draw_component_key, escape, number};
use crate::report::Report;

/// The width of a drawing, in px.
const WIDTH: f64 = 880.0;
/// The left margin, in px.
const LEFT_MARGIN: f64 = 150.0;
/// The width, in px, of the web page that takes longest to load; all pages share its time scale.
const MAX_PAGE_WIDTH: f64 = 640.0;
/// The position of the first page, below the legend, in px.
const TOP_MARGIN: f64 = 36.0;
/// The gap between two pages, in px.
const PAGE_GAP: f64 = 14.0;
/// The height of all bars of a page together, in px, as long as the bars stay distinguishable.
const PAGE_HEIGHT: f64 = 130.0;
/// The minimum height of a bar, in px.
const MIN_BAR_HEIGHT: f64 = 2.0;
/// The maximum height of a bar, in px.
const MAX_BAR_HEIGHT: f64 = 9.0;

/// Returns this section of the page as HTML; empty if it has no content.
pub fn html(report: &Report) -> String {
    let drawn = selected_points(report, &report.study_figures.waterfalls).into_iter().enumerate();
    let figures: Vec<(String, String)> = drawn
        .filter_map(|(index, (conditions, filter))| {
            let cells = report.data.cells.iter().filter(|cell| filter.selects(cell));
            let pages: Vec<_> = cells.filter_map(|cell| Some((cell, cell.waterfall.as_ref()?))).collect();
            Some((conditions.clone(), figure(index, &conditions, &pages)?))
        })
        .collect();
    if figures.is_empty() {
        return String::new();
    }
    format!(
        "<p>Each bar is a file of a page, from the time at which the browser learns of it until its last octet arrives; the colours show what the file waits for. The page is \
         the one with the median time among the first 64 pages of the first repetition.</p>{}",
        side_by_side(report, &figures)
    )
}

fn figure(index: usize, conditions: &str, pages: &[(&Cell, &Waterfall)]) -> Option<String> {
    if pages.is_empty() {
        return None;
    }
    let at = if conditions.is_empty() { String::new() } else { format!(": {conditions}") };
    let title = format!("A page over each transport{at}");
    let id = format!("waterfall-{index}");
    let (svg, table, caption) = (draw(&id, &title, pages).inline(), table(pages), escape(&title));
    Some(format!(
        "<figure id=\"{id}\">{svg}<figcaption>{caption}</figcaption><details><summary>numbers</summary>\
         <div class=\"scroll\">{table}</div></details></figure>"
    ))
}

fn draw(id: &str, title: &str, pages: &[(&Cell, &Waterfall)]) -> Svg {
    let height = |page: &Waterfall| bar_height(page) * page.files.len() as f64;
    let bottom =
        pages.iter().fold(TOP_MARGIN, |bottom, (_, page)| bottom + height(page).max(22.0) + PAGE_GAP);
    let end = pages.iter().map(|(_, page)| page.end().as_millis_f64()).fold(1.0, f64::max);
    let x = |ms: f64| LEFT_MARGIN + MAX_PAGE_WIDTH * ms / end;
    let mut svg = Svg::new(id, WIDTH, bottom + 26.0, title);
    draw_component_key(&mut svg, WIDTH, DelayComponent::waterfall_label);
    for tick in (Scale::Linear { min: 0.0, max: end }).ticks() {
        svg.line("grid", (x(tick.value), TOP_MARGIN - 6.0), (x(tick.value), bottom));
        svg.text("tick", (x(tick.value), bottom + 13.0), Anchor::Middle, &tick.label);
    }
    svg.text("axis", (WIDTH - 4.0, bottom + 13.0), Anchor::End, "ms since the click");
    let mut top = TOP_MARGIN;
    for (cell, page) in pages {
        svg.text("label", (LEFT_MARGIN - 10.0, top + 10.0), Anchor::End, &cell.transport);
        svg.text("note", (LEFT_MARGIN - 10.0, top + 23.0), Anchor::End, &duration_text(page));
        for (file, bar) in page.files.iter().enumerate() {
            draw_file(&mut svg, (file, bar), top + bar_height(page) * file as f64, bar_height(page), x);
        }
        top += height(page).max(22.0) + PAGE_GAP;
    }
    svg
}

fn bar_height(page: &Waterfall) -> f64 {
    (PAGE_HEIGHT / page.files.len().max(1) as f64).clamp(MIN_BAR_HEIGHT, MAX_BAR_HEIGHT)
}

fn draw_file(
    svg: &mut Svg,
    (file, bar): (usize, &WaterfallFile),
    y: f64,
    height: f64,
    x: impl Fn(f64) -> f64,
) {
    svg.group("", &file_tooltip(file, bar), |svg| {
        let mut at = bar.known_after;
        if bar.spans.is_empty() {
            svg.line("lost", (x(at.as_millis_f64()), y), (x(at.as_millis_f64()) + 6.0, y + height - 1.0));
        }
        for span in &bar.spans {
            let (from, to) = (x(at.as_millis_f64()), x((at + span.duration).as_millis_f64()));
            let class = format!("split-{}", span.cause.name());
            svg.rect(&class, (from, y), to - from, height - if height > 4.0 { 1.5 } else { 0.5 });
            at += span.duration;
        }
    });
}

/// Returns the tooltip of a file.
fn file_tooltip(file: usize, bar: &WaterfallFile) -> String {
    let name = if file == 0 { "document".to_owned() } else { format!("object {file}") };
    let mut text = format!("{name}, {} octets, stream {}", number(bar.octets.into()), bar.stream);
    for span in &bar.spans {
        let _ = write!(text, "; {} {:.1} ms", span.cause.waterfall_label(), span.duration.as_millis_f64());
    }
    if bar.spans.is_empty() { text + ": never arrived" } else { text }
}

fn duration_text(page: &Waterfall) -> String {
    page.took.map_or("never arrived".to_owned(), |took| format!("{:.0} ms", took.as_millis_f64()))
}

fn table(pages: &[(&Cell, &Waterfall)]) -> String {
    let heads =
        DelayComponent::ALL.map(|component| format!("<th>{}</th>", component.waterfall_label())).concat();
    let rows: String = pages
        .iter()
        .flat_map(|(cell, page)| {
            page.files.iter().enumerate().map(|(file, bar)| row(&cell.transport, file, bar))
        })
        .collect();
    format!(
        "<table><tr><th>ms</th><th>file</th><th>octets</th><th>stream</th><th>known at</th>{heads}<th>complete at</th></tr>{rows}</table>"
    )
}

fn row(transport: &str, file: usize, bar: &WaterfallFile) -> String {
    let ms = |ms: f64| format!("<td>{ms:.2}</td>");
    let of = |component| {
        let spans = bar.spans.iter().filter(|span| span.cause == component);
        spans.fold(0.0, |ms, span| ms + span.duration.as_millis_f64())
    };
    let components = DelayComponent::ALL.map(|component| ms(of(component))).concat();
    let complete =
        if bar.spans.is_empty() { "<td>never</td>".to_owned() } else { ms(bar.end().as_millis_f64()) };
    let WaterfallFile { octets, stream, .. } = bar;
    let known = ms(bar.known_after.as_millis_f64());
    format!(
        "<tr><td>{}</td><td>{file}</td><td>{octets}</td><td>{stream}</td>{known}{components}{complete}</tr>",
        escape(transport)
    )
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;
    use hol_measure::waterfall::Span;

    use super::*;
    use crate::testing::cell;

    fn page() -> Waterfall {
        let ms = Duration::from_millis;
        let span = |cause, lasts| Span { cause, duration: ms(lasts) };
        let bar = |known, spans| WaterfallFile { stream: 1, octets: 13_500, known_after: ms(known), spans };
        let files = vec![
            bar(0, vec![span(DelayComponent::Slip, 20), span(DelayComponent::Network, 40)]),
            bar(60, vec![span(DelayComponent::Network, 30), span(DelayComponent::HeadOfLine, 10)]),
            bar(60, Vec::new()),
        ];
        Waterfall { page: 3, took: None, files }
    }

    #[test]
    fn each_file_has_a_bar_and_a_lost_file_a_mark() {
        let (cell, page) = (cell("TCP", 1.0, 0.0, &[100.0]), page());
        let svg = draw("w", "A page", &[(&cell, &page)]).inline();
        assert_eq!(svg.matches("<rect class=\"split-").count(), 5 + 4, "the colours' key, and four spans");
        assert_eq!(svg.matches("class=\"lost\"").count(), 1);
        assert!(
            svg.contains("object 1, 13,500 octets, stream 1; network 30.0 ms; head-of-line wait 10.0 ms"),
            "{svg}"
        );
        assert!(svg.contains("never arrived"));
    }

    #[test]
    fn the_longest_page_fills_the_drawing() {
        let (cell, page) = (cell("TCP", 1.0, 0.0, &[100.0]), page());
        let svg = draw("w", "A page", &[(&cell, &page)]).inline();
        let last = format!(
            "x=\"{}\" y=\"{}\" width=\"{}\"",
            LEFT_MARGIN + 0.9 * MAX_PAGE_WIDTH,
            TOP_MARGIN + 9.0,
            0.1 * MAX_PAGE_WIDTH
        );
        assert!(svg.contains(&last), "{last} {svg}");
        let table = table(&[(&cell, &page)]);
        assert!(table.contains("<td>60.00</td><td>0.00</td><td>0.00</td><td>0.00</td><td>30.00</td><td>10.00</td><td>100.00</td>"), "{table}");
    }
}
