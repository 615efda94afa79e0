//! Tables of results with one row for each point, as CSV and JSON.

use std::borrow::Cow;

use hol_measure::{CONFIDENCE, Interval, MeanDelayBreakdown, quantile};
use serde_json::{Map, Value, json};

use crate::metric::{Metric, TABLE};
use crate::point_result::PointResult;
use crate::quantity::Quantity;

/// A row: name and value of each column, in order.
pub type Row = Vec<(String, Value)>;

/// Returns the table of the points of a result directory.
pub(crate) fn rows(points: &[PointResult]) -> Vec<Row> {
    points.iter().map(row).collect()
}

/// Returns the row of a point as a JSON object, as in points.json.
pub fn row_as_json(result: &PointResult) -> Map<String, Value> {
    row(result).into_iter().collect()
}

fn row(result: &PointResult) -> Row {
    let PointResult { point, runs, complete } = result;
    let latency = result.latency();
    let steady = result.is_steady();
    let mean = result.mean_ms().filter(|_| steady);
    let shaped = result.skew_adjusted_mean_ms().filter(|_| steady);
    let of_runs = result.sorted_means_ms();
    let run = |p| json!(quantile(&of_runs, p));
    let of_messages = |p| json!(latency.quantile(p).map(|d| d.as_millis_f64()));
    // Empty if the world does not observe it: zero would look like a measurement.
    let seen = runs.iter().all(|run| run.has_delivery_times);
    let split = result.mean_delay_breakdown().filter(|_| seen);
    let part = |of: fn(&MeanDelayBreakdown) -> f64| json!(split.as_ref().map(of));
    let axes = point.axes.iter().flat_map(|(key, value)| {
        let number =
            Quantity::numeric_cell(value).map(|(ending, number)| (format!("{key}{ending}"), json!(number)));
        [Some((key.clone(), json!(value))), number].into_iter().flatten()
    });
    let mut row = vec![
        ("experiment".to_owned(), json!(point.experiment)),
        ("transport".to_owned(), json!(point.transport.to_string())),
        ("label".to_owned(), json!(point.label)),
        ("stack".to_owned(), json!(point.transport.stack())),
    ];
    row.extend(axes);
    row.extend(
        [
            ("point", json!(point.id)),
            ("complete", json!(complete)),
            ("repetitions", json!(runs.len())),
            ("precise", json!(result.is_precise())),
            ("offered", json!(result.offered())),
            ("completed", json!(result.completed())),
            ("failed", json!(result.failed())),
            ("mean_ms", json!(mean.map(|m| m.mean))),
            ("ci95_ms", json!(mean.map(|m| m.half_width))),
            ("mean_low_ms", json!(shaped.map(|bounds| bounds.low))),
            ("mean_high_ms", json!(shaped.map(|bounds| bounds.high))),
            ("steady", json!(steady)),
            ("runs_collapsed", json!(result.collapsed_runs())),
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
            ("service_ms", part(|split| split.service)),
            ("sender_ms", part(|split| split.sender)),
            ("recovery_ms", part(|split| split.recovery)),
            ("network_ms", part(|split| split.network)),
            ("head_of_line_ms", part(|split| split.head_of_line)),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    let measured = TABLE.iter().flat_map(|info| info.columns);
    row.extend(measured.map(|column| (column.name.to_owned(), (column.value_of)(result))));
    row.extend(result.classes().into_iter().flat_map(|(name, of_class)| {
        let cell = |column: &str, value: Value| (format!("size.{}.{column}", name.replace(' ', "_")), value);
        let mean = Interval::of(&of_class.means_ms, CONFIDENCE);
        let of_messages = |p| json!(of_class.latency.quantile(p).map(|d| d.as_millis_f64()));
        [
            cell("offered", json!(of_class.latency.offered())),
            cell("mean_ms", json!(mean.map(|m| m.mean))),
            cell("ci95_ms", json!(mean.map(|m| m.half_width))),
            cell("p50_ms", of_messages(0.5)),
            cell("p99_ms", of_messages(0.99)),
        ]
    }));
    row.push(("stopped".to_owned(), json!(result.stop_reason())));
    row.push(("digest".to_owned(), json!(result.digest().to_string())));
    row.extend(result.program_metrics().flat_map(|defined| {
        let (name, mean) = (defined.name, result.mean_of(Metric::Defined(defined)));
        let cell = |column: &str, value: Option<f64>| (format!("metric.{name}{column}"), json!(value));
        [cell("", mean.map(|m| m.mean)), cell(".ci95", mean.map(|m| m.half_width))]
    }));
    row
}

/// Returns rows as a JSON array of objects, one object per line.
pub fn json(rows: Vec<Row>) -> String {
    let rows = rows.into_iter().map(|row| Value::Object(row.into_iter().collect::<Map<_, _>>()).to_string());
    format!("[\n{}\n]\n", rows.collect::<Vec<_>>().join(",\n"))
}

/// Returns rows as CSV: a header, and one line per row. If a row lacks a column, its cell is empty.
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
    let octets = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(octets).expect("cells are text")
}

/// Returns the text of a CSV cell before quoting.
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
    fn a_missing_cell_is_empty_at_the_position_of_its_column() {
        let rows = [
            row(&[("label", json!("TCP")), ("mean_ms", json!(20.5)), ("complete", json!(true))]),
            row(&[("label", json!("SCTP-8")), ("loss", json!("1%")), ("mean_ms", Value::Null)]),
        ];
        assert_eq!(csv(&rows), "label,loss,mean_ms,complete\nTCP,,20.5,true\nSCTP-8,1%,,\n");
        assert_eq!(csv(&[]), "");
    }

    /// RFC 4180 section 2, rules 6 and 7.
    #[test]
    fn commas_quotes_and_line_breaks_survive_csv() {
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
