//! The points of a claim that none of its checks uses. Each needs a reason, so that no point is omitted because it
//! contradicts the claim.

use std::slice::from_ref;

use serde::Deserialize;

use super::{Check, Claim, ComparedWith, View};
use crate::data::{Cell, Filter};

/// Points that a claim omits, with the reason.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Omission {
    /// The points to which the reason applies; by default all that no check uses.
    #[serde(default)]
    pub at: Filter,
    /// The reason, as the end of a sentence: `the claim is about …`.
    #[serde(rename = "why")]
    pub reason: String,
}

/// The points that a check uses.
pub(super) struct Scope<'a> {
    transports: &'a [String],
    pub(super) at: &'a Filter,
    /// The axis values at which the same transports are used for comparison.
    reference: Option<&'a ComparedWith>,
}

impl Claim {
    /// Returns the points that no check uses although a check uses their transport and their experiment. Each comes
    /// with the reason; `None` if no reason is given.
    pub fn left_out<'a>(&self, view: &View<'a>) -> Vec<(&'a Cell, Option<&str>)> {
        let scopes: Vec<Scope<'_>> = self.checks.iter().filter_map(Check::scope).collect();
        let near = |cell: &&Cell| scopes.iter().any(|scope| scope.covers(view, cell));
        let taken = |cell: &&Cell| scopes.iter().any(|scope| scope.covers(view, cell) && scope.selects(cell));
        let why = |cell: &Cell| {
            self.left_out.iter().find(|left| left.at.selects(cell)).map(|left| left.reason.as_str())
        };
        let left = view.data.cells.iter().filter(|cell| near(cell) && !taken(cell));
        left.map(|cell| (cell, why(cell))).collect()
    }

    /// Describes how many points are omitted for each reason.
    pub(super) fn describe_omissions(&self, view: &View<'_>) -> Vec<String> {
        let left = self.left_out(view);
        let reasons = self.left_out.iter().map(|left| Some(left.reason.as_str())).chain([None]);
        let of = |why: Option<&str>| {
            let count = left.iter().filter(|(_, reason)| *reason == why).count();
            let points = if count == 1 { "point" } else { "points" };
            (count > 0).then(|| format!("{count} {points} left out: {}", why.unwrap_or("no reason is given")))
        };
        reasons.filter_map(of).collect()
    }
}

impl Scope<'_> {
    /// Returns whether a point belongs to the check's transports and experiments.
    fn covers(&self, view: &View<'_>, cell: &Cell) -> bool {
        let experiments = &self.at.experiments;
        let transport = cell.transport.strip_suffix(view.stack.suffix.as_str());
        transport.is_some_and(|transport| self.transports.iter().any(|named| named == transport))
            && (experiments.is_empty() || experiments.contains(&cell.experiment))
    }

    fn selects(&self, cell: &Cell) -> bool {
        let compared = match self.reference {
            Some(ComparedWith::Axes(values)) => {
                values.iter().all(|(key, value)| cell.conditions.axis_value(key) == Some(value.as_str()))
            }
            _ => false,
        };
        self.at.selects(cell) || compared
    }
}

impl Check {
    /// Returns the points that the check uses; `None` if it uses none.
    pub(super) fn scope(&self) -> Option<Scope<'_>> {
        const fn scope<'a>(transports: &'a [String], at: &'a Filter) -> Option<Scope<'a>> {
            Some(Scope { transports, at, reference: None })
        }
        match self {
            Self::Faster(check) => Some(Scope {
                transports: &check.transports,
                at: &check.at,
                reference: Some(&check.reference),
            }),
            Self::Same(check) => Some(Scope {
                transports: &check.transports,
                at: &check.at,
                reference: Some(&check.reference),
            }),
            Self::Ratio(check) => Some(Scope {
                transports: &check.transports,
                at: &check.at,
                reference: Some(&check.reference),
            }),
            Self::Dip(check) => Some(Scope {
                transports: &check.transports,
                at: &check.at,
                reference: Some(&check.reference),
            }),
            Self::WiderInterval(check) => Some(Scope {
                transports: &check.transports,
                at: &check.at,
                reference: Some(&check.reference),
            }),
            Self::Differ(check) => scope(from_ref(&check.left), &check.at),
            Self::Reported(check) => scope(from_ref(&check.transport), &check.at),
            Self::Tail(check) => scope(from_ref(&check.transport), &check.at),
            Self::Crossover(check) => scope(from_ref(&check.transport), &check.at),
            Self::SameWorkloads(check) => scope(&check.transports, &check.at),
            Self::Inside(check) => scope(&check.transports, &check.at),
            Self::Area(check) => scope(&check.transports, &check.at),
            Self::Ceiling(check) => scope(&check.transports, &check.at),
            Self::Floor(check) => scope(&check.transports, &check.at),
            Self::Monotone(check) => scope(&check.transports, &check.at),
            Self::QuantileOrder(check) => scope(&check.transports, &check.at),
            Self::EnoughStreams(check) => scope(&check.transports, &check.at),
            Self::Explained(check) => scope(&check.transports, &check.at),
            Self::Samples(check) => scope(&check.transports, &check.at),
            Self::Sustained(check) => scope(&check.transports, &check.at),
            Self::Aborts(check) => scope(&check.transports, &check.at),
            Self::Completes(check) => scope(&check.transports, &check.at),
            Self::Covers(check) => scope(&check.transports, &check.at),
            Self::MattersMore(check) => scope(&check.transports, &check.at),
            Self::ConnectsLate(check) => scope(&check.transports, &check.at),
            Self::Lasts(check) => scope(&check.transports, &check.at),
            Self::Streams(_)
            | Self::Blocking(_)
            | Self::Lines(_)
            | Self::Product(_)
            | Self::Reading(_)
            | Self::WorldsAgree(_)
            | Self::NotHere(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, view};

    const CLAIM: &str = r#"
        id = "x-1"
        quote = "SCTP is faster"
        kind = "finding"
        refuted_by = "it is not"
        left_out = [{ at = { loss = [0, 0] }, why = "nothing is lost" }]
        [[check]]
        kind = "faster"
        transports = ["SCTP-8"]
        than = "TCP"
        at = { experiments = ["exp1"], loss = [1, 5] }
    "#;

    #[test]
    fn unchecked_point_needs_a_reason() {
        let claim: Claim = toml::from_str(CLAIM).unwrap();
        let point = |transport, loss| cell(transport, loss, 100.0, &[20.0, 20.0]);
        let mut elsewhere = point("SCTP-8", 10.0);
        elsewhere.experiment = "exp2".into();
        let data = dataset(vec![
            point("SCTP-8", 0.0),
            point("SCTP-8", 1.0),
            point("SCTP-8", 10.0),
            point("TCP", 10.0),
            elsewhere,
        ]);
        let left: Vec<(f64, Option<&str>)> =
            claim.left_out(&view(&data)).iter().map(|(cell, why)| (cell.conditions.loss, *why)).collect();
        assert_eq!(left, [(0.0, Some("nothing is lost")), (10.0, None)]);
        assert_eq!(
            claim.describe_omissions(&view(&data)),
            ["1 point left out: nothing is lost", "1 point left out: no reason is given"]
        );
    }
}
