//! Small multiples of runs over time.

use super::choices;
use crate::over_time::{OverTime, Run};
use crate::plot::{Svg, escape, number};
use crate::report::Report;

pub fn html(report: &Report) -> String {
    let figures: Vec<(String, String)> =
        report.over_time.iter().map(|drawn| (drawn.place.clone(), figure(drawn))).collect();
    if figures.is_empty() {
        return String::new();
    }
    format!(
        "<p>One run of each transport, its first repetition, at all multiples of {} ms. The thin line beside cwnd is ssthresh, the dashed one \
         the limit of the queue. Red marks: below cwnd when data was sent again, below the queue when it or its line dropped packets. \
         Where a column of pixels has several samples, the least and the greatest are drawn.</p>{}",
        number(report.over_time[0].interval_s * 1e3),
        choices(&figures)
    )
}

fn figure(drawn: &OverTime) -> String {
    let svgs: String = drawn.draw().iter().map(Svg::inline).collect();
    let files = (1..=drawn.runs.len())
        .map(|count| format!("<a href=\"figures/{0}-{count}.svg\">SVG {count}</a>", drawn.id));
    format!(
        "<figure id=\"{}\"><div class=\"multiples\">{svgs}</div><figcaption>{} <span class=\"soft\">{}</span></figcaption></figure>",
        drawn.id,
        escape(&caption(drawn)),
        files.collect::<Vec<_>>().join(" ")
    )
}

/// Whose numbers these are.
fn caption(drawn: &OverTime) -> String {
    let at = if drawn.place.is_empty() { String::new() } else { format!(" at {}", drawn.place) };
    let queue =
        drawn.queue.as_ref().map_or(String::new(), |(name, _)| format!(" The queue is that of {name}."));
    format!("Runs over time{at}. {}{queue}", senders(&drawn.runs))
}

/// Which senders are drawn, once where they are alike.
fn senders(runs: &[Run]) -> String {
    let of = |run: &Run| {
        let flow = match run.flow {
            0 => "the measured flow".to_owned(),
            other => format!("flow {other}, which delivered more than what is measured"),
        };
        let sender = run
            .sender
            .as_ref()
            .map_or("no sender with a window".to_owned(), |sender| format!("its sender is {sender}"));
        format!("{flow}; {sender}")
    };
    let said: Vec<String> = runs.iter().map(of).collect();
    match said.first() {
        Some(first) if said.iter().all(|one| one == first) => format!("Drawn is {first}."),
        _ => runs
            .iter()
            .zip(said)
            .map(|(run, said)| format!("{}: {said}.", run.transport))
            .collect::<Vec<_>>()
            .join(" "),
    }
}
