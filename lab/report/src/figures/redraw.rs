//! A Python script that draws a figure again from its CSV file, in sizes for papers.

use serde_json::json;

use super::draw::legend_entries;
use super::{Curves, Figure};
use crate::plot::{Axis, Marker, Scale, literal_colour};

/// The part of the script that is the same for all figures.
const COMMON_SCRIPT: &str = include_str!("redraw.py");

/// Returns the script that draws `figure`.
pub fn python(figure: &Figure) -> String {
    let styles: serde_json::Map<_, _> = legend_entries(figure)
        .into_iter()
        .map(|(label, style)| {
            let dashes: Vec<f64> = style.dash.split(' ').filter_map(|part| part.parse().ok()).collect();
            (label, json!([literal_colour(style.class), marker(style.marker), dashes]))
        })
        .collect();
    let is_of = |is_kind: fn(&Curves) -> bool| figure.panels.iter().any(|panel| is_kind(&panel.curves));
    let kind = match () {
        () if is_of(|curves| matches!(curves, Curves::OverTime { .. })) => "courses",
        () if figure.is_ccdf => "ccdf",
        () => "means",
    };
    let [x, y] = [&figure.x, &figure.y].map(range);
    let facts = json!({
        "kind": kind,
        "looks": styles,
        "x_label": figure.x.label, "x_scale": x.0, "x_min": x.1, "x_max": x.2, "x_unit": figure.x.unit,
        "y_label": figure.y.label, "y_scale": y.0, "y_min": y.1, "y_max": y.2, "y_unit": figure.y.unit,
    });
    let facts = serde_json::to_string_pretty(&facts).expect("figure metadata is plain JSON");
    let caption = format!("{}: {}.", figure.name, figure.caption).replace(['"', '\\'], "'");
    let id = &figure.id;
    format!(
        "\"\"\"{caption}\n\nDraws {id}.csv from the same directory as PDF and PNG for one and for two columns of a paper: python3 {id}.py\n\
         It needs matplotlib 3.7 or newer.\n\"\"\"\n\nimport csv\nfrom pathlib import Path\n\nimport matplotlib\n\n\
         matplotlib.use(\"Agg\")\nimport matplotlib.pyplot as plt\nfrom matplotlib import ticker\n\nFIGURE = {facts}\n{COMMON_SCRIPT}"
    )
}

const fn marker(marker: Marker) -> &'static str {
    match marker {
        Marker::Disc => "disc",
        Marker::Ring => "ring",
        Marker::Square => "square",
        Marker::Diamond => "diamond",
        Marker::Up => "up",
        Marker::Down => "down",
        Marker::Cross => "cross",
    }
}

/// Returns the scale of an axis, and its ends in the unit of its label.
fn range(axis: &Axis) -> (&'static str, f64, f64) {
    let (name, min, max) = match &axis.scale {
        Scale::Linear { min, max } => ("linear", *min, *max),
        Scale::Log { min, max } => ("log", *min, *max),
        Scale::LogFromZero { min, max } => ("from zero", *min, *max),
        Scale::Names(_) | Scale::Steps(_) => ("names", 0.0, 0.0),
    };
    (name, min / axis.unit, max / axis.unit)
}

#[cfg(test)]
mod tests {
    use crate::figures::{StudyFigures, gather};
    use crate::testing::{cell, dataset};

    /// The script finds each series of the CSV file by its name, and has no value that Python does not know.
    #[test]
    fn script_draws_every_series_of_its_table() {
        let text = "[[view]]\ntitle = 'today'\n[[figure]]\nnumber = 4\ncaption = 'a \"b\"'\nexperiment = 'exp1'\nkind = 'loss'\n\
                    x = [0.1, 10]\ny = [20, 120]\n[[figure]]\nnumber = 8\ncaption = ''\nexperiment = 'exp1'\nkind = 'ccdf'\n\
                    loss = [1]\nx = [10, 10000]\ny = [0.001, 1]";
        let study: StudyFigures = toml::from_str(text).unwrap();
        let data = dataset(vec![cell("TCP", 1.0, 100.0, &[23.0]), cell("SCTP-8", 1.0, 100.0, &[21.0])]);
        for figure in gather(&study, &data) {
            let script = figure.python();
            let facts =
                script.split_once("FIGURE = ").unwrap().1.split_once("\n}\n").unwrap().0.to_owned() + "}";
            let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
            assert!(
                !facts.to_string().contains("null") && script.matches("\"\"\"").count() % 2 == 0,
                "{script}"
            );
            let table = figure.csv();
            for row in csv::Reader::from_reader(table.as_bytes()).records().map(Result::unwrap) {
                assert!(facts["looks"][&row[1]][0].as_str().is_some_and(|colour| colour.starts_with('#')));
            }
            assert_eq!(facts["kind"], if figure.is_ccdf { "ccdf" } else { "means" });
        }
    }
}
