//! Tables: one row a point, as CSV and JSON.

use std::borrow::Cow;

use hol_measure::{SplitMean, quantile};
use serde_json::{Map, Value, json};

use crate::results::PointResult;

/// One row: the columns in order, each with its name.
pub type Row = Vec<(String, Value)>;

/// The table of the points of a result directory.
pub(crate) fn rows(points: &[PointResult]) -> Vec<Row> {
    points.iter().map(row).collect()
}

/// The row of a point as an object, as points.json has it.
pub fn object(result: &PointResult) -> Map<String, Value> {
    row(result).into_iter().collect()
}

fn row(result: &PointResult) -> Row {
    let PointResult { point, runs, complete } = result;
    let latency = result.latency();
    let steady = result.is_steady();
    let mean = result.mean_ms().filter(|_| steady);
    let shaped = result.shaped_mean_ms().filter(|_| steady);
    let of_runs = result.sorted_means_ms();
    let run = |p| json!(quantile(&of_runs, p));
    let [throughput, background] = [result.throughput_kbps(), result.background_kbps()];
    let [first, objects, lost] = [result.first_octets_ms(), result.objects_ms(), result.packets_lost_each()];
    let [playable, glitches] = [result.playable_percent(), result.glitches_per_minute()];
    let (messages, connect) = (result.messages_per_s(), result.connect_ms());
    let of_messages = |p| json!(latency.quantile(p).map(|d| d.as_millis_f64()));
    // Empty where the world does not see it: zero would be a measurement.
    let seen = runs.iter().all(|run| run.sees_passage);
    let split = result.split_ms().filter(|_| seen);
    let part = |of: fn(&SplitMean) -> f64| json!(split.as_ref().map(of));
    let axes = point.axes.iter().map(|(key, value)| (key.clone(), json!(value)));
    let mut row = vec![
        ("experiment".to_owned(), json!(point.experiment)),
        ("transport".to_owned(), json!(point.transport.to_string())),
        ("label".to_owned(), json!(point.label)),
        ("stack".to_owned(), json!(point.transport.stack())),
    ];
    row.extend(axes);
    let told = point.metrics().map(|(name, _)| name).flat_map(|name| {
        let mean = result.told_mean(name);
        let cell = |column: &str, value: Option<f64>| (format!("metric.{name}{column}"), json!(value));
        [cell("", mean.map(|m| m.mean)), cell(".ci95", mean.map(|m| m.half_width))]
    });
    let told: Vec<_> = told.collect();
    row.extend(
        [
            ("point", json!(point.id)),
            ("complete", json!(complete)),
            ("repetitions", json!(runs.len())),
            ("precise", json!(result.precise())),
            ("offered", json!(result.offered())),
            ("completed", json!(result.completed())),
            ("failed", json!(result.failed())),
            ("mean_ms", json!(mean.map(|m| m.mean))),
            ("ci95_ms", json!(mean.map(|m| m.half_width))),
            ("mean_low_ms", json!(shaped.map(|bounds| bounds.low))),
            ("mean_high_ms", json!(shaped.map(|bounds| bounds.high))),
            ("steady", json!(steady)),
            ("runs_collapsed", json!(result.collapsed())),
            ("run_min_ms", run(0.0)),
            ("run_p25_ms", run(0.25)),
            ("run_median_ms", run(0.5)),
            ("run_p75_ms", run(0.75)),
            ("run_max_ms", run(1.0)),
            ("p50_ms", of_messages(0.5)),
            ("p90_ms", of_messages(0.9)),
            ("p99_ms", of_messages(0.99)),
            ("p999_ms", of_messages(0.999)),
            ("max_ms", json!(latency.max().map(|d| d.as_millis_f64()))),
            ("slip_ms", part(|split| split.slip)),
            ("sender_ms", part(|split| split.sender)),
            ("recovery_ms", part(|split| split.recovery)),
            ("network_ms", part(|split| split.network)),
            ("head_of_line_ms", part(|split| split.head_of_line)),
            ("throughput_kbps", json!(throughput.map(|t| t.mean))),
            ("throughput_ci95_kbps", json!(throughput.map(|t| t.half_width))),
            ("messages_per_s", json!(messages.map(|m| m.mean))),
            ("messages_ci95_per_s", json!(messages.map(|m| m.half_width))),
            ("connect_ms", json!(connect.map(|c| c.mean))),
            ("connect_ci95_ms", json!(connect.map(|c| c.half_width))),
            ("unconnected", json!(result.unconnected())),
            ("background_kbps", json!(background.map(|b| b.mean))),
            ("background_ci95_kbps", json!(background.map(|b| b.half_width))),
            ("fairness", json!(result.fairness().map(|f| f.mean))),
            ("fairness_ci95", json!(result.fairness().map(|f| f.half_width))),
            ("first_octets_ms", json!(first.map(|f| f.mean))),
            ("first_octets_ci95_ms", json!(first.map(|f| f.half_width))),
            ("objects_ms", json!(objects.map(|o| o.mean))),
            ("objects_ci95_ms", json!(objects.map(|o| o.half_width))),
            ("playable_percent", json!(playable.map(|p| p.mean))),
            ("playable_ci95_percent", json!(playable.map(|p| p.half_width))),
            ("glitches_per_minute", json!(glitches.map(|g| g.mean))),
            ("glitches_ci95_per_minute", json!(glitches.map(|g| g.half_width))),
            ("packets", json!(result.packets())),
            ("packets_lost_each", json!(lost.map(|l| l.mean))),
            ("packets_lost_each_ci95", json!(lost.map(|l| l.half_width))),
            ("stopped", json!(result.stopped())),
            ("digest", json!(result.digest().to_string())),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    row.extend(told);
    row
}

/// One array of objects, one line each.
pub fn json(rows: Vec<Row>) -> String {
    let rows = rows.into_iter().map(|row| Value::Object(row.into_iter().collect::<Map<_, _>>()).to_string());
    format!("[\n{}\n]\n", rows.collect::<Vec<_>>().join(",\n"))
}

/// A header and one line a row; a column that a row has not is empty.
pub fn csv(rows: &[Row]) -> String {
    let mut columns: Vec<&str> = Vec::new();
    for (at, name) in rows.iter().flat_map(|row| row.iter().map(|(name, _)| name.as_str()).enumerate()) {
        if !columns.contains(&name) {
            columns.insert(at.min(columns.len()), name);
        }
    }
    if columns.is_empty() {
        return String::new();
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write =
        |record: Vec<&str>| writer.write_record(record).expect("a row has a cell for each column");
    write(columns.clone());
    for row in rows {
        let cell = |column: &&str| row.iter().find(|(name, _)| name == column).map(|(_, value)| cell(value));
        let cells: Vec<_> = columns.iter().map(|column| cell(column).unwrap_or_default()).collect();
        write(cells.iter().map(AsRef::as_ref).collect());
    }
    let octets = writer.into_inner().expect("memory takes what is written");
    String::from_utf8(octets).expect("cells are text")
}

/// What a cell says, before it is quoted.
fn cell(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[(&str, Value)]) -> Row {
        cells.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn a_column_that_a_row_has_not_is_empty_and_stands_where_the_other_row_has_it() {
        let rows = [
            row(&[("label", json!("TCP")), ("mean_ms", json!(20.5)), ("complete", json!(true))]),
            row(&[("label", json!("SCTP-8")), ("loss", json!("1%")), ("mean_ms", Value::Null)]),
        ];
        assert_eq!(csv(&rows), "label,loss,mean_ms,complete\nTCP,,20.5,true\nSCTP-8,1%,,\n");
        assert_eq!(csv(&[]), "");
    }

    /// RFC 4180 section 2, rules 6 and 7.
    #[test]
    fn commas_quotes_and_ends_of_lines_come_back() {
        let texts =
            ["sctp:streams=8,stack=rfc", "called \"fast\"", "two\nlines", "two\r\nlines", " spaced ", ""];
        let rows: Vec<Row> =
            texts.iter().map(|text| row(&[("label", json!(text)), ("n", json!(7))])).collect();
        let text = csv(&rows);
        assert!(
            text.starts_with("label,n\n\"sctp:streams=8,stack=rfc\",7\n\"called \"\"fast\"\"\",7\n"),
            "{text}"
        );
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let read: Vec<String> = reader.records().map(|record| record.unwrap()[0].to_owned()).collect();
        assert_eq!(read, texts);
    }
}
