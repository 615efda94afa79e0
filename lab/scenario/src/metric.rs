//! Metrics of programs: numbers that an experiment extracts from the programs' output and files.

use std::fmt;

use regex_lite::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json_path::JsonPath;

/// Reads a metric from the output of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "MetricTable", into = "MetricTable")]
pub struct MetricReader {
    /// How the number is found in the text.
    pub find: MetricPattern,
    /// The output or file that is searched.
    pub from: MetricSource,
    /// How several numbers are combined.
    pub take: MetricAggregation,
    /// Unit of the metric; empty if it has none.
    pub unit: String,
    /// Which of two values is better.
    pub better: Better,
}

/// How a number is found in the output of a program.
#[derive(Debug, Clone)]
pub enum MetricPattern {
    /// The first group of a regular expression, or its whole match if it has no group.
    Regex(Regex),
    /// The numbers at a path of each JSON text. RFC 9535
    Json(JsonPath),
}

/// The text that is searched for a number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MetricSource {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
    /// A file of the node, by absolute path, after all programs have ended.
    File(String),
}

/// How several numbers are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricAggregation {
    /// The mean of the numbers.
    #[default]
    Mean,
    /// The sum of the numbers.
    Sum,
    /// The first number.
    First,
    /// The last number.
    Last,
    /// The smallest number; its former name `least` is accepted, too.
    #[serde(alias = "least")]
    Min,
    /// The largest number; its former name `most` is accepted, too.
    #[serde(alias = "most")]
    Max,
}

/// Which of two numbers is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The smaller number is better.
    Less,
    /// The larger number is better.
    More,
}

/// A metric read from a program's output or file.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Metric")]
pub(crate) struct MetricTable {
    /// Regular expression whose first group, or whole match, is the number: `"took ([0-9.]+) ms"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    regex: Option<String>,
    /// JSONPath of the number, such as `"$.all[*]"`; names, indices and wildcards of RFC 9535.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    json: Option<String>,
    /// Source: `"stdout"`, `"stderr"`, or an absolute path on the node. Default `stdout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// How to combine several matches. Default `mean`.
    #[serde(default)]
    take: MetricAggregation,
    /// Unit of the number, such as `"ms"`. Default none.
    #[serde(default)]
    unit: String,
    /// Whether less or more is better. Default: `"less"` for times, otherwise `"more"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    better: Option<Better>,
}

impl TryFrom<MetricTable> for MetricReader {
    type Error = String;

    fn try_from(written: MetricTable) -> Result<Self, String> {
        let MetricTable { regex, json, from, take, unit, better } = written;
        let find = match (regex, json) {
            (Some(regex), None) => {
                MetricPattern::Regex(Regex::new(&regex).map_err(|problem| regex_problem(&regex, &problem))?)
            }
            (None, Some(path)) => {
                let wrong = |problem| {
                    format!("json = {path:?}: {problem}; write as in \"$.end.sum_received.seconds\"")
                };
                MetricPattern::Json(JsonPath::parse(&path).map_err(wrong)?)
            }
            _ => return Err(
                "a metric needs a `regex`, as in \"took ([0-9.]+) ms\", or a `json`, as in \"$.end.seconds\""
                    .to_owned(),
            ),
        };
        let from = from.map_or(Ok(MetricSource::Stdout), |from| match from.as_str() {
            "stdout" => Ok(MetricSource::Stdout),
            "stderr" => Ok(MetricSource::Stderr),
            path if path.starts_with('/') => Ok(MetricSource::File(from)),
            _ => Err(format!(
                "from = {from:?}: write \"stdout\", \"stderr\", or the absolute path of a file on the node"
            )),
        })?;
        let better = better.unwrap_or_else(|| Better::default_for(&unit));
        Ok(Self { find, from, take, unit, better })
    }
}

impl From<MetricReader> for MetricTable {
    fn from(MetricReader { find, from, take, unit, better }: MetricReader) -> Self {
        let (regex, json) = match find {
            MetricPattern::Regex(regex) => (Some(regex.to_string()), None),
            MetricPattern::Json(path) => (None, Some(path.to_string())),
        };
        let from = match from {
            MetricSource::Stdout => None,
            MetricSource::Stderr => Some("stderr".to_owned()),
            MetricSource::File(path) => Some(path),
        };
        Self { regex, json, from, take, unit, better: Some(better) }
    }
}

/// Returns the last line of a regular expression's error, which describes the problem; the lines before it mark the
/// position.
fn regex_problem(regex: &str, problem: &regex_lite::Error) -> String {
    let problem = problem.to_string();
    let last = problem.lines().next_back().unwrap_or_default().trim_start_matches("error: ");
    format!("regex = {regex:?}: {last}")
}

impl Better {
    /// Returns the default for a unit: less for times, more for everything else.
    fn default_for(unit: &str) -> Self {
        if is_time(unit) { Self::Less } else { Self::More }
    }
}

fn is_time(unit: &str) -> bool {
    ["ns", "us", "µs", "ms", "s", "min", "h"].contains(&unit)
}

impl MetricReader {
    /// Returns whether the metric is a time.
    pub fn is_time(&self) -> bool {
        is_time(&self.unit)
    }

    /// Returns the number in `text`; `None` if there is none.
    pub fn read(&self, text: &str) -> Option<f64> {
        let found = match &self.find {
            MetricPattern::Regex(regex) => regex
                .captures_iter(text)
                .filter_map(|found| found.get(1).or_else(|| found.get(0))?.as_str().parse().ok())
                .collect(),
            MetricPattern::Json(path) => numbers(path, text),
        };
        self.take.aggregate(&found)
    }
}

impl MetricAggregation {
    fn aggregate(self, numbers: &[f64]) -> Option<f64> {
        let (first, last) = (*numbers.first()?, *numbers.last()?);
        let sum: f64 = numbers.iter().sum();
        Some(match self {
            Self::Mean => sum / numbers.len() as f64,
            Self::Sum => sum,
            Self::First => first,
            Self::Last => last,
            Self::Min => numbers.iter().copied().fold(first, f64::min),
            Self::Max => numbers.iter().copied().fold(first, f64::max),
        })
    }
}

/// Returns the numbers at `path` in each JSON text. Other lines before the first JSON text are skipped, because many programs print some.
fn numbers(path: &JsonPath, text: &str) -> Vec<f64> {
    let begins = |line: &&str| line.starts_with(['{', '[']);
    let Some(line) = text.lines().find(begins) else { return Vec::new() };
    let begin = line.as_ptr() as usize - text.as_ptr() as usize;
    let texts = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>();
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_f64(),
    };
    let all = texts.map_while(Result::ok);
    all.flat_map(|value| path.query(&value).into_iter().filter_map(number).collect::<Vec<_>>()).collect()
}

impl PartialEq for MetricPattern {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Regex(one), Self::Regex(other)) => one.as_str() == other.as_str(),
            (Self::Json(one), Self::Json(other)) => one == other,
            _ => false,
        }
    }
}

impl fmt::Display for MetricPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Regex(regex) => write!(f, "regex {:?}", regex.as_str()),
            Self::Json(path) => write!(f, "json {:?}", path.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> Result<MetricReader, String> {
        toml::from_str(toml).map_err(|e| e.to_string())
    }

    #[test]
    fn metric_is_the_matched_group_and_several_are_aggregated() {
        let text = "file 1 took 10.5 ms\nfile 2 took 20.5 ms\nfile 3 took long\n";
        let of = |more: &str| read(&format!("regex = 'took ([0-9.]+) ms'\n{more}")).unwrap().read(text);
        assert_eq!((of(""), of("take = 'sum'")), (Some(15.5), Some(31.0)));
        assert_eq!((of("take = 'first'"), of("take = 'last'")), (Some(10.5), Some(20.5)));
        assert_eq!((of("take = 'min'"), of("take = 'max'")), (Some(10.5), Some(20.5)));
        assert_eq!((of("take = 'least'"), of("take = 'most'")), (Some(10.5), Some(20.5)), "the former names");
        assert_eq!(read("regex = '[0-9]+$'").unwrap().read("exit 17"), Some(17.0));
        assert_eq!(read("regex = 'x([0-9]*)'").unwrap().read("x y"), None);
    }

    /// The paths are examples of RFC 9535 section 1.5.
    #[test]
    fn json_path_finds_numbers_in_each_json_text_after_other_lines() {
        let text = "warming up {…\n{\"end\": {\"bits\": 9.5e6, \"name\": \"x\"}, \"all\": [1, 2, 6]}\n{\"end\": {\"bits\": 10.5e6}}\nbye\n";
        let of = |path: &str| read(&format!("json = '{path}'")).unwrap().read(text);
        assert_eq!(of("$.end.bits"), Some(10e6));
        assert_eq!((of("$.all[*]"), of("$.all[-1]")), (Some(3.0), Some(6.0)));
        assert_eq!((of("$.end.name"), of("$.none")), (None, None));
        assert_eq!(read("json = '$.a'").unwrap().read("no JSON at all"), None);
    }

    #[test]
    fn metrics_survive_serialisation_and_shorter_times_are_better() {
        let reading = read("regex = 'a'\nunit = 'ms'\nfrom = '/out/x'").unwrap();
        assert_eq!((reading.better, &reading.from), (Better::Less, &MetricSource::File("/out/x".to_owned())));
        let text = serde_json::to_string(&reading).unwrap();
        assert_eq!(serde_json::from_str::<MetricReader>(&text).unwrap(), reading);
        assert_eq!(read("json = '$.a'\nunit = 'bit/s'").unwrap().better, Better::More);
        assert_eq!(read("json = '$.a'\nbetter = 'less'").unwrap().better, Better::Less);
    }

    #[test]
    fn invalid_metrics_are_refused_with_a_remedy() {
        let problem = |toml: &str| read(toml).unwrap_err();
        assert!(problem("unit = 'ms'").contains("a `regex`"));
        assert!(problem("regex = 'a'\njson = '$'").contains("a `regex`"));
        assert!(problem("regex = 'a('").contains("without closing ')'"));
        assert!(problem("json = 'end.x'").contains("$.end"));
        assert!(problem("regex = 'a'\nfrom = 'out.txt'").contains("absolute path"));
        assert!(problem("regex = 'a'\nunits = 'ms'").contains("unknown field `units`"));
    }
}
