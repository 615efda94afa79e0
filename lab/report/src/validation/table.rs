//! The points as CSV and JSON.

use hol_lab::table::{self, Row};
use hol_measure::ConfidenceInterval;
use serde_json::{Value, json};

use super::{ComparedPoint, PointMeasurements, Validation};

impl Validation {
    /// Returns an array of objects, one per line.
    pub fn json(&self) -> String {
        table::json(self.points.iter().map(columns).collect())
    }

    /// Returns a header and one line for each point.
    pub fn csv(&self) -> String {
        table::csv(&self.points.iter().map(columns).collect::<Vec<_>>())
    }
}

/// Returns the columns of a point, the same for every point.
fn columns(compared: &ComparedPoint) -> Row {
    let ComparedPoint { point, kernel, model, mean, p99, throughput, collapses, conditions, .. } = compared;
    let [kernel_trace, model_trace] = compared.trace_commands();
    let mut columns: Vec<(String, Value)> = [
        ("experiment", json!(point.experiment)),
        ("label", json!(point.label)),
        ("transport", json!(point.transport.to_string())),
        ("loss_percent", json!(conditions.loss)),
        ("rate_per_s", json!(conditions.rate)),
        ("delay_ms", json!(conditions.delay_ms)),
        ("agrees", json!(compared.agrees())),
        ("says_little", json!(compared.is_imprecise())),
        ("repetitions_needed", json!(compared.repetitions_needed())),
        ("collapses_p", json!(collapses.p_value())),
        ("closed_form_ms", json!(compared.closed_form)),
        ("ks_distance", json!(compared.ks)),
        ("wasserstein_ms", json!(compared.wasserstein_ms)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec();
    for (name, unit, check) in [("mean", "ms", mean), ("p99", "ms", p99), ("throughput", "kbps", throughput)]
    {
        let mut add = |column: &str, value: Option<f64>| {
            columns.push((format!("{name}_{column}"), json!(value.filter(|value| value.is_finite()))));
        };
        let check = check.as_ref();
        let [difference, percent] = [check.map(|check| check.difference), check.map(|check| check.percent())];
        for (share, bounds) in [(unit, difference), ("percent", percent)] {
            add(&format!("difference_{share}"), bounds.map(|bounds| bounds.value));
            add(&format!("difference_low_{share}"), bounds.map(|bounds| bounds.low));
            add(&format!("difference_high_{share}"), bounds.map(|bounds| bounds.high));
        }
        add(&format!("tolerance_{unit}"), check.map(|check| check.tolerance));
        add("kernel_superiority", check.map(|check| check.ranks.superiority));
        add("rank_p", check.map(|check| check.ranks.p));
    }
    columns.extend(world("kernel", kernel));
    columns.extend(world("model", model));
    columns.push(("kernel_trace".to_owned(), json!(kernel_trace)));
    columns.push(("model_trace".to_owned(), json!(model_trace)));
    columns
}

/// Returns the columns of one world.
fn world(name: &str, measured: &PointMeasurements) -> Row {
    let PointMeasurements {
        repetitions, offered, failed, collapsed, overall, retransmissions, wall_s, ..
    } = measured;
    let numbers = [
        ("mean", "ms", &measured.mean),
        ("median", "ms", &measured.median),
        ("p99", "ms", &measured.p99),
        ("p999", "ms", &measured.p999),
        ("throughput", "kbps", &measured.throughput),
    ];
    let mut columns = Vec::new();
    let mut add = |column: &str, value| columns.push((format!("{name}_{column}"), value));
    add("repetitions", json!(repetitions));
    add("offered", json!(offered));
    add("failed", json!(failed));
    add("collapsed", json!(collapsed));
    add("overall_mean_ms", json!(overall.map(|mean| mean.mean)));
    add("overall_mean_ci95_ms", json!(overall.map(|mean| mean.half_width).filter(|half| half.is_finite())));
    for (column, unit, runs) in numbers {
        let end =
            |of: fn(ConfidenceInterval) -> f64| json!(runs.median.map(of).filter(|end| end.is_finite()));
        add(&format!("{column}_{unit}"), end(|median| median.value));
        add(&format!("{column}_low_{unit}"), end(|median| median.low));
        add(&format!("{column}_high_{unit}"), end(|median| median.high));
    }
    add("sent_again_per_1000", json!(retransmissions));
    add("wall_s", json!(wall_s));
    columns
}

#[cfg(test)]
mod tests {
    use super::super::test_points::{compared, validation};

    #[test]
    fn the_csv_has_a_line_for_each_point_and_as_many_cells_as_heads() {
        let text = "transports = ['tcp']\nmessages = 2\nrepetitions = 2";
        let csv = validation(vec![compared(text, &[20, 21], &[20, 20])]).csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].split(',').count(), lines[1].split(',').count(), "{csv}");
        assert!(lines[1].starts_with("test,tcp,tcp,0"), "{csv}");
    }
}
