//! Reads the results of other tools, the JSON of iperf3 and of flent, for a comparison with the points.

use serde_json::Value;

use hol_measure::quantile;

/// The measurements of another tool.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherMeasurement {
    /// The name of the file with the results.
    pub file: String,
    /// The name of the tool: `iperf3` or `flent`.
    pub tool: &'static str,
    /// The measured quantities, with the names that the tool gives them.
    pub series: Vec<OtherSeries>,
}

/// A quantity that another tool has measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OtherSeries {
    /// The tool's name of the quantity.
    pub name: String,
    /// Mean of the series in kbit/s, if it is a throughput.
    pub kbps: Option<f64>,
    /// Mean of the series in ms, if it is a delay.
    pub mean_ms: Option<f64>,
    /// Median and 99th percentile of the series in ms, if it is a delay whose values are in the file.
    pub quantiles_ms: Option<[f64; 2]>,
}

impl OtherMeasurement {
    /// Parses the text of a file called `file`; an error says why it is not a result of iperf3 or flent.
    pub fn read(file: &str, text: &str) -> Result<Self, String> {
        let json: Value = serde_json::from_str(text)
            .map_err(|error| format!("the file is not JSON, which iperf3 --json and flent write: {error}"))?;
        if let Some(problem) = json["error"].as_str() {
            return Err(format!("iperf3 reports an error: {problem}"));
        }
        let (tool, series) = match (&json["end"], &json["results"]) {
            (Value::Object(_), _) => ("iperf3", iperf3(&json["end"])),
            (_, Value::Object(_)) => ("flent", flent(&json)),
            _ => {
                return Err(
                    "the file is not a result of iperf3 (iperf3 --json) or of flent (*.flent.gz)".to_owned()
                );
            }
        };
        if series.is_empty() {
            return Err(format!(
                "the result of {tool} contains neither throughputs nor delays; measure one of them"
            ));
        }
        Ok(Self { file: file.to_owned(), tool, series })
    }
}

/// Returns the throughput over all streams, and the round-trip time that the senders' TCP has estimated.
fn iperf3(end: &Value) -> Vec<OtherSeries> {
    let streams = end["streams"].as_array().map_or(&[][..], Vec::as_slice);
    let received = |key: &str, name: &str| {
        let kbps = end[key]["bits_per_second"].as_f64()? / 1000.0;
        Some(OtherSeries { name: name.to_owned(), kbps: Some(kbps), ..OtherSeries::default() })
    };
    // The client writes 0 for streams that it receives.
    let trip = |stream: &Value| Some(stream["sender"]["mean_rtt"].as_f64()? / 1000.0).filter(|ms| *ms > 0.0);
    let trips: Vec<f64> = streams.iter().filter_map(trip).collect();
    let round_trip = mean(&trips).map(|ms| OtherSeries {
        name: "RTT estimated by TCP".to_owned(),
        mean_ms: Some(ms),
        ..OtherSeries::default()
    });
    // --bidir adds a sum for the reverse direction, and its streams, which the client does not send.
    let is_bidirectional = end.get("sum_received_bidir_reverse").is_some();
    let is_counted = |stream: &&Value| !is_bidirectional || stream["sender"]["sender"] == true;
    let count = match streams.iter().filter(is_counted).count() {
        1 => "1 stream".to_owned(),
        count => format!("{count} streams"),
    };
    let there = received("sum_received", &format!("received, {count}"));
    let back = received("sum_received_bidir_reverse", "received by the client");
    [there, back, round_trip].into_iter().flatten().collect()
}

/// Returns each series with a unit of throughput or delay. Its values are those at the steps of flent's plots, idle times included.
fn flent(json: &Value) -> Vec<OtherSeries> {
    let series = |(name, values): (&String, &Value)| {
        let about = &json["metadata"]["SERIES_META"][name];
        let mut values: Vec<f64> = values.as_array()?.iter().filter_map(Value::as_f64).collect();
        let mean = about["MEAN_VALUE"].as_f64().or_else(|| mean(&values))?;
        let named = OtherSeries { name: name.clone(), ..OtherSeries::default() };
        match about["UNITS"].as_str()? {
            "Mbits/s" => Some(OtherSeries { kbps: Some(mean * 1000.0), ..named }),
            "bits/s" => Some(OtherSeries { kbps: Some(mean / 1000.0), ..named }),
            "ms" => {
                values.sort_by(f64::total_cmp);
                let quantiles_ms = quantile(&values, 0.5).zip(quantile(&values, 0.99)).map(Into::into);
                Some(OtherSeries { mean_ms: Some(mean), quantiles_ms, ..named })
            }
            _ => None,
        }
    };
    json["results"].as_object().into_iter().flatten().filter_map(series).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> OtherMeasurement {
        OtherMeasurement::read("x.json", text).unwrap()
    }

    #[test]
    fn iperf3_result_has_throughput_and_rtt() {
        let of = read(
            r#"{"start": {}, "intervals": [], "end": {"streams": [{"sender": {"mean_rtt": 41000}}, {"sender": {"mean_rtt": 43000}}],
            "sum_received": {"bits_per_second": 9.4e6}}}"#,
        );
        assert_eq!(
            (of.tool, of.series[0].name.as_str(), of.series[0].kbps),
            ("iperf3", "received, 2 streams", Some(9400.0))
        );
        assert_eq!(of.series[1].mean_ms, Some(42.0));
    }

    /// `iperf3 -c HOST --bidir -J` of iperf 3.12, shortened.
    #[test]
    fn streams_of_each_direction_of_iperf3_are_counted_apart() {
        let of = read(
            r#"{"start": {}, "intervals": [], "end": {"streams": [{"sender": {"sender": true, "mean_rtt": 41000}}, {"sender": {"sender": false}}],
            "sum_received": {"bits_per_second": 9.4e6}, "sum_received_bidir_reverse": {"bits_per_second": 8e6}}}"#,
        );
        let names: Vec<_> = of.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["received, 1 stream", "received by the client", "RTT estimated by TCP"]);
    }

    #[test]
    fn flent_series_are_read_by_their_unit() {
        let of = read(
            r#"{"version": 4, "x_values": [0, 1, 2], "metadata": {"SERIES_META": {"Ping (ms) ICMP": {"UNITS": "ms"},
            "TCP upload": {"UNITS": "Mbits/s", "MEAN_VALUE": 88.0}, "TCP upload::tcp_cwnd": {}}},
            "results": {"Ping (ms) ICMP": [20.0, null, 24.0], "TCP upload": [80.0, 90.0, 94.0], "TCP upload::tcp_cwnd": [10, 20, 30]}}"#,
        );
        assert_eq!(of.series.len(), 2);
        assert_eq!((of.series[0].mean_ms, of.series[1].kbps), (Some(22.0), Some(88_000.0)));
        assert!(of.series[0].quantiles_ms.is_some_and(|[median, p99]| median >= 20.0 && p99 <= 24.0));
    }

    #[test]
    fn other_files_are_rejected_with_the_reason() {
        for (text, why) in [
            ("{}", "not a result of iperf3"),
            ("x", "not JSON"),
            (r#"{"error": "unable to connect to server"}"#, "unable to connect"),
            (r#"{"results": {}}"#, "neither throughputs nor delays"),
        ] {
            let problem = OtherMeasurement::read("x", text).unwrap_err();
            assert!(problem.contains(why), "{text}: {problem}");
        }
    }
}
