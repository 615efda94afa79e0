//! Small multiples of runs over time.

use super::choices;
use crate::over_time::{Run, RunsOverTime};
use crate::plot::{Svg, escape, number};
use crate::report::Report;

/// Returns this section of the page as HTML; empty if it has no content.
pub fn html(report: &Report) -> String {
    let figures: Vec<(String, String)> =
        report.over_time.iter().map(|drawn| (drawn.conditions.clone(), figure(drawn))).collect();
    if figures.is_empty() {
        return String::new();
    }
    format!(
        "<p>The first repetition of each transport, sampled every {} ms. Next to cwnd the thin line is ssthresh. A dashed line is the limit of \
         the queue, a vertical dashed line the time at which a link goes down or a client moves. Marks at the lower edge show retransmissions (cwnd) and packets dropped by the queue or its link (queue). If one column of pixels \
         contains several samples, the smallest and the largest are drawn.</p>{}",
        number(report.over_time[0].interval_s * 1e3),
        choices(&figures)
    )
}

fn figure(drawn: &RunsOverTime) -> String {
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

/// Returns the caption, with the senders that are drawn.
fn caption(drawn: &RunsOverTime) -> String {
    let at = if drawn.conditions.is_empty() { String::new() } else { format!(" at {}", drawn.conditions) };
    let queue =
        drawn.queue.as_ref().map_or(String::new(), |(name, _)| format!(" The queue is that of {name}."));
    format!("Runs over time{at}. {}{queue}", senders(&drawn.runs))
}

/// Returns the names of the senders; a single name if all are the same.
fn senders(runs: &[Run]) -> String {
    let of = |run: &Run| {
        let flow = match run.flow {
            0 => "the measured flow".to_owned(),
            other => format!("flow {other}, which delivered more than the measured one"),
        };
        let sender = run
            .sender
            .as_ref()
            .map_or("its senders have no window".to_owned(), |sender| format!("its sender is {sender}"));
        format!("{flow}; {sender}")
    };
    let said: Vec<String> = runs.iter().map(of).collect();
    match said.first() {
        Some(first) if said.iter().all(|one| one == first) => format!("All figures show {first}."),
        _ => runs
            .iter()
            .zip(said)
            .map(|(run, said)| format!("{}: {said}.", run.transport))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::over_time::SampledLine;

    fn run(transport: &str, flow: u32, packets: f64) -> Run {
        let line = |value: f64| {
            let mut line = SampledLine::new(10.0, 0.01);
            (0..1000).for_each(|sample| line.add(f64::from(sample) / 100.0, value * f64::from(sample % 100)));
            line
        };
        Run {
            transport: transport.to_owned(),
            sender: Some("the client to 10.0.1.2".to_owned()),
            flow,
            ended_s: 10.0,
            goodput: vec![(0.0, 4000.0), (5.0, 5000.0)],
            cwnd: line(1500.0),
            ssthresh: SampledLine::new(10.0, 0.01),
            in_flight: line(1400.0),
            srtt: line(3.0),
            queued: line(packets),
            retransmissions: vec![1.0, 2.0],
            dropped: vec![0.5],
        }
    }

    #[test]
    fn runs_share_axes_and_name_their_transport() {
        let queue = Some(("client:1".to_owned(), Some(120)));
        let runs = vec![run("TCP & co", 0, 1.0), run("SCTP", 1, 0.1)];
        let drawn = RunsOverTime {
            id: "over-time-1".into(),
            conditions: "1% loss".into(),
            interval_s: 0.01,
            queue,
            events: vec![4.0],
            runs,
        };
        let marked =
            drawn.draw().iter().map(|svg| svg.inline().matches("class=\"event\"").count()).sum::<usize>();
        assert_eq!(marked, 2 * 5, "each panel shows the event");
        let html = figure(&drawn);
        assert_eq!(html.matches("<svg class=\"plot").count(), 2);
        for said in [
            "TCP &amp; co</text>",
            "goodput, Mbit/s",
            "cwnd and ssthresh, kB",
            "smoothed RTT, ms",
            "queue, packets",
        ] {
            assert!(html.contains(said), "{said}: {html}");
        }
        // Both drawings show the limit of 120 packets, and their maxima: 99 and 9.9 packets of 129.6.
        assert_eq!(html.matches("class=\"series-limit\"").count(), 2);
        assert_eq!(html.matches("class=\"series-lost\"").count(), 2 * 3);
        assert!(
            html.contains("TCP &amp; co: the measured flow; its sender is the client to 10.0.1.2."),
            "{html}"
        );
        assert!(html.contains("SCTP: flow 1, which delivered more than the measured one"), "{html}");
        assert!(
            html.contains("The queue is that of client:1.") && html.contains("figures/over-time-1-2.svg")
        );
        let max =
            html.split("points=\"").skip(1).map(|rest| rest.split('"').next().unwrap().split(' ').count());
        assert!(max.max().unwrap() <= 500, "two points a column of pixels");
    }
}
