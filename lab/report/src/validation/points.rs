//! The points of a validation as rows of a table.

use super::check_text::format_median;
use super::{ComparedPoint, MedianComparison, PointMeasurements, RunValues, Validation};
use crate::plot::escape;
use hol_lab::Metric;

/// Returns each point, the worst first.
pub(super) fn html(validation: &Validation) -> String {
    format!(
        "<div class=\"soft\">{}<p>The same as <a href=\"validation.csv\">CSV</a> and <a href=\"validation.json\">JSON</a>.</p></div>{}",
        legend(validation),
        table(validation)
    )
}

pub(super) fn table(validation: &Validation) -> String {
    let higher = describe_direction(validation);
    let judged: Vec<&str> = match validation.metric {
        Metric::Throughput => vec!["kbit/s, Linux", "model", "off", higher],
        _ => ["mean, Linux", "p99, Linux"].iter().flat_map(|name| [*name, "model", "off", higher]).collect(),
    };
    let others =
        ["collapsed", "closed form", "median", "p99.9", "failed", "resent ‰", "D", "W1 (ms)", "repetitions"];
    let heads = ["point", "verdict"].iter().chain(&judged).chain(&others);
    let head: String = heads.map(|head| format!("<th>{head}</th>")).collect();
    let rows: String = validation.points.iter().map(row).collect();
    format!("<div class=\"scroll\"><table><tr>{head}</tr>{rows}</table></div>")
}

fn row(compared: &ComparedPoint) -> String {
    let ComparedPoint { point, kernel, model, closed_form, ks, wasserstein_ms, .. } = compared;
    let [kernel_trace, model_trace] = compared.trace_commands();
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2}"));
    let pair = |of: fn(&PointMeasurements) -> &RunValues| {
        [kernel, model].map(|world| number(of(world).median.map(|median| median.value))).join(" / ")
    };
    let mut cells: Vec<String> = compared.judged_checks().iter().flat_map(check_cells).collect();
    cells.extend([
        format!("{} / {}", kernel.collapsed, model.collapsed),
        number(*closed_form),
        pair(|world| &world.median),
        pair(|world| &world.p999),
        format!("{} / {}", kernel.failed, model.failed),
        format!("{:.1} / {:.1}", kernel.retransmissions, model.retransmissions),
        number(*ks),
        number(*wasserstein_ms),
        repetitions(compared),
    ]);
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    format!(
        "<tr><td><details><summary>{}</summary><pre>{}\n{}</pre></details></td><td>{}</td>{cells}</tr>",
        escape(&point.to_string()),
        escape(&kernel_trace),
        escape(&model_trace),
        verdict_label(compared)
    )
}

/// Returns the cells of a check: kernel, model, difference and ranks.
fn check_cells(check: &Option<MedianComparison>) -> [String; 4] {
    let Some(check) = check else { return ["–"; 4].map(str::to_owned) };
    let off = format!("{} ({:.1}×)", check.format_difference(), check.excess());
    [format_median(check.kernel), format_median(check.model), off, check.format_ranks()]
}

/// Returns the number of repetitions, and how many would be needed.
fn repetitions(compared: &ComparedPoint) -> String {
    let done = compared.kernel.repetitions;
    match compared.repetitions_needed() {
        Some(needed) if needed > done as u64 => format!("{done}, {needed} needed"),
        Some(_) => done.to_string(),
        None => format!("{done}, too few"),
    }
}

/// Returns the heading of the column that counts how often a run of the kernel is slower (or faster) than one of the
/// model.
fn describe_direction(validation: &Validation) -> &'static str {
    if validation.metric == Metric::Throughput { "Linux faster" } else { "Linux slower" }
}

/// Explains the columns of the table.
pub(super) fn legend(validation: &Validation) -> String {
    format!(
        "<dl>\
         <dt>Values</dt><dd>Those of the median run, with the 95 % confidence interval over the runs; times are in ms.</dd>\
         <dt>a / b</dt><dd>The value of Linux, then of the model.</dd>\
         <dt>Off</dt><dd>The model's value minus Linux's, in percent with its interval, then as a multiple of the tolerance.</dd>\
         <dt>{}</dt><dd>The probability that this is true of a random run of Linux compared with a random run of the model (50 % if there is no difference), with the p-value.</dd>\
         <dt>Collapsed</dt><dd>Runs that did not carry their load: they ended early, fell more than 1 s behind schedule, or had a growing backlog.</dd>\
         <dt>Closed form</dt><dd>The mean that the closed form gives, where one applies.</dd>\
         <dt>Resent ‰</dt><dd>Packets with data sent again, per thousand messages.</dd>\
         <dt>D</dt><dd>Kolmogorov–Smirnov distance, which also grows if one distribution is only shifted.</dd>\
         <dt>W1</dt><dd>Wasserstein distance.</dd>\
         <dt>Repetitions</dt><dd>Runs of Linux; at an imprecise point also the number that would be enough.</dd>\
         </dl><p>Expand a point for the commands that show its packets in both worlds.</p>",
        describe_direction(validation)
    )
}

/// Returns the verdict on a point as a label.
pub(super) fn verdict_label(compared: &ComparedPoint) -> String {
    let class = match (compared.agrees(), compared.is_imprecise()) {
        (true, false) => "v-good",
        (_, true) => "v-unknown",
        (false, false) => "v-bad",
    };
    format!("<span class=\"chip {class}\">{}</span>", compared.verdict())
}
