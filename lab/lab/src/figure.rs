//! `[[figure]]`: a figure that an experiment asks for instead of those that its axes determine.

use std::collections::BTreeSet;
use std::ops::Range;

use hol_base::nearest_word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::metric::{METRICS, Metric};
use crate::point::Point;

/// A figure that an experiment requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureRequest {
    /// Swept key along the horizontal axis.
    pub over: String,
    /// Swept key for which the figure has one panel per value; `None`: a single panel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panels: Option<String>,
    /// Name of the metric to draw, which may be one of `[program.metrics]`.
    pub metric: String,
}

/// A figure of the report.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Figure")]
pub(crate) struct FigureTable {
    /// Swept key along the horizontal axis.
    #[schemars(with = "String")]
    over: Spanned<String>,
    /// Swept key; the figure has a panel for each of its values.
    #[schemars(with = "Option<String>")]
    panels: Option<Spanned<String>>,
    /// Metric to draw, which may be one of `[program.metrics]`. Default `response-time`.
    #[schemars(with = "Option<String>", extend("examples" = METRICS))]
    metric: Option<Spanned<String>>,
}

impl FigureTable {
    /// Returns the figure, or an error if its keys are not swept or no point has its metric.
    pub(crate) fn resolve(
        &self,
        swept: &[&str],
        points: &[Point],
    ) -> Result<FigureRequest, (Range<usize>, String)> {
        let key = |key: &Spanned<String>| match swept.contains(&key.get_ref().as_str()) {
            true => Ok(key.get_ref().clone()),
            false => Err((key.span(), unswept(key.get_ref(), swept))),
        };
        let metric = match &self.metric {
            Some(metric) if is_reported(metric.get_ref(), points) => metric.get_ref().clone(),
            Some(metric) if !METRICS.contains(&metric.get_ref().as_str()) => {
                let problem =
                    format!("unknown metric {:?}; use one of {}", metric.get_ref(), METRICS.join(", "));
                return Err((metric.span(), problem));
            }
            Some(metric) => match missing_need(metric.get_ref(), points) {
                Some(cure) => {
                    return Err((
                        metric.span(),
                        format!("no point has the metric {}: {cure}", metric.get_ref()),
                    ));
                }
                None => metric.get_ref().clone(),
            },
            None => METRICS[0].to_owned(),
        };
        let panels = self.panels.as_ref().map(key).transpose()?;
        let over = key(&self.over)?;
        if let Some(panels) = self.panels.as_ref().filter(|panels| panels.get_ref() == self.over.get_ref()) {
            return Err((
                panels.span(),
                "`panels` names the key of the horizontal axis; choose another swept key".to_owned(),
            ));
        }
        if let Some(panels) =
            self.panels.as_ref().filter(|panels| advance_together(&over, panels.get_ref(), points))
        {
            let problem = format!(
                "{:?} is swept together with {over:?} ([[zip]]), so each panel would have a single point; choose another key",
                panels.get_ref()
            );
            return Err((panels.span(), problem));
        }
        Ok(FigureRequest { over, panels, metric })
    }
}

/// Returns whether a program reports the metric.
fn is_reported(metric: &str, points: &[Point]) -> bool {
    points.iter().any(|point| point.metrics().any(|(name, _)| name == metric))
}

/// Returns what an experiment must have so that its points have the metric; `None` if a point has it.
fn missing_need(metric: &str, points: &[Point]) -> Option<&'static str> {
    let need = Metric::from_name(metric)?.info().needs?;
    (!points.iter().any(need.is_met)).then_some(need.cure)
}

/// Returns whether two keys are in the same zip, so that not all combinations of their values exist.
fn advance_together(one: &str, other: &str, points: &[Point]) -> bool {
    let value = |point: &Point, key: &str| {
        point.axes.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    };
    // A point without one of the keys shows nothing: the key is an option of another transport.
    let with_both =
        || points.iter().filter(|point| value(point, one).is_some() && value(point, other).is_some());
    let distinct = |keys: &[&str]| {
        let values = with_both().map(|point| keys.iter().map(|key| value(point, key)).collect::<Vec<_>>());
        values.collect::<BTreeSet<_>>().len()
    };
    distinct(&[one, other]) < distinct(&[one]) * distinct(&[other])
}

fn unswept(key: &str, swept: &[&str]) -> String {
    let hint = match (nearest_word(key, swept.iter().copied()), swept) {
        (Some(near), _) => format!("; did you mean {near:?}?"),
        (None, []) => "; add this key to [sweep]".to_owned(),
        (None, _) => format!("; use one of {}", swept.join(", ")),
    };
    format!("{key:?} is not swept{hint}")
}
