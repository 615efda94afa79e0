//! Measurements of other tools, to be laid beside a run: the JSON of iperf3 and of flent.

use serde_json::Value;

use hol_measure::quantile;

/// What another tool has measured.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherMeasurement {
    /// The name of its file.
    pub file: String,
    /// The tool.
    pub tool: &'static str,
    /// What it has measured, as it calls it.
    pub series: Vec<OtherSeries>,
}

/// One of the quantities that another tool has measured.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherSeries {
    /// What the tool calls it.
    pub name: String,
    /// Its mean, in kbit/s, if it is a throughput.
    pub kbps: Option<f64>,
    /// Its mean in ms, if it is a delay.
    pub mean_ms: Option<f64>,
    /// Its median and its 99th percentile in ms, if it is a delay with several values.
    pub quantiles_ms: Option<[f64; 2]>,
}

impl OtherMeasurement {
    /// Reads the text of a file called `file`; an error says what it is not.
    pub fn read(file: &str, text: &str) -> Result<Self, String> {
        let json: Value =
            serde_json::from_str(text).map_err(|error| format!("no JSON of iperf3 or flent: {error}"))?;
        if let Some(problem) = json["error"].as_str() {
            return Err(format!("iperf3 has measured nothing: {problem}"));
        }
        let (tool, series) = match (&json["end"], &json["results"]) {
            (Value::Object(_), _) => ("iperf3", iperf3(&json["end"])),
            (_, Value::Object(_)) => ("flent", flent(&json)),
            _ => {
                return Err(
                    "neither the JSON of iperf3 (iperf3 --json) nor that of flent (*.flent.gz)".to_owned()
                );
            }
        };
        if series.is_empty() {
            return Err(format!("this file of {tool} has neither throughputs nor delays"));
        }
        Ok(Self { file: file.to_owned(), tool, series })
    }
}

/// Its sums over all streams, and the round trip that TCP has estimated, of each sender.
fn iperf3(end: &Value) -> Vec<OtherSeries> {
    let count = end["streams"].as_array().map_or(0, Vec::len);
    let streams = if count == 1 { "1 stream".to_owned() } else { format!("{count} streams") };
    let sums = [("sum_received", "received"), ("sum_received_bidir_reverse", "received by the client")];
    let mut series: Vec<OtherSeries> = sums
        .iter()
        .filter_map(|(key, name)| {
            let kbps = end[*key]["bits_per_second"].as_f64()? / 1000.0;
            Some(OtherSeries {
                name: format!("{name}, {streams}"),
                kbps: Some(kbps),
                mean_ms: None,
                quantiles_ms: None,
            })
        })
        .collect();
    let senders = end["streams"].as_array().into_iter().flatten();
    // The client writes 0 of streams that it receives.
    let trip = |stream: &Value| Some(stream["sender"]["mean_rtt"].as_f64()? / 1000.0).filter(|ms| *ms > 0.0);
    let trips: Vec<f64> = senders.filter_map(trip).collect();
    if !trips.is_empty() {
        let mean = trips.iter().sum::<f64>() / trips.len() as f64;
        let name = "round trip by TCP's estimate".to_owned();
        series.push(OtherSeries { name, kbps: None, mean_ms: Some(mean), quantiles_ms: None });
    }
    series
}

/// Each series with a unit of throughput or delay. The values are those at the steps of its plots, idle times included.
fn flent(json: &Value) -> Vec<OtherSeries> {
    let of = |(name, values): (&String, &Value)| {
        let about = &json["metadata"]["SERIES_META"][name];
        let mut values: Vec<f64> = values.as_array()?.iter().filter_map(Value::as_f64).collect();
        let own = || (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let mean = about["MEAN_VALUE"].as_f64().or_else(own)?;
        let (name, plain) = (
            name.clone(),
            OtherSeries { name: String::new(), kbps: None, mean_ms: None, quantiles_ms: None },
        );
        match about["UNITS"].as_str()? {
            "Mbits/s" => Some(OtherSeries { name, kbps: Some(mean * 1000.0), ..plain }),
            "bits/s" => Some(OtherSeries { name, kbps: Some(mean / 1000.0), ..plain }),
            "ms" => {
                values.sort_by(f64::total_cmp);
                let quantiles_ms =
                    Some([quantile(&values, 0.5)?, quantile(&values, 0.99)?]).filter(|_| values.len() > 1);
                Some(OtherSeries { name, mean_ms: Some(mean), quantiles_ms, ..plain })
            }
            _ => None,
        }
    };
    json["results"].as_object().into_iter().flatten().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> OtherMeasurement {
        OtherMeasurement::read("x.json", text).unwrap()
    }

    #[test]
    fn iperf3_tells_the_sum_and_the_round_trip() {
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

    #[test]
    fn flent_tells_each_series_by_its_unit() {
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
    fn what_is_none_of_both_is_said() {
        for (text, why) in [
            ("{}", "neither"),
            ("x", "no JSON"),
            (r#"{"error": "unable to connect to server"}"#, "unable to connect"),
            (r#"{"results": {}}"#, "neither throughputs nor delays"),
        ] {
            let problem = OtherMeasurement::read("x", text).unwrap_err();
            assert!(problem.contains(why), "{text}: {problem}");
        }
    }
}
