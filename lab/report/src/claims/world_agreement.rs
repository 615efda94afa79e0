//! Claims that two worlds agree, point by point, by the rules of `hol validate`.

use serde::Deserialize;

use super::{Finding, View};
use crate::data::Filter;
use crate::validation::{ComparedPoint, Tally};

/// The claim that the model agrees with the kernel at every point measured in both; undecided with the
/// results of one world.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldAgreement {
    /// The points to which the claim applies.
    #[serde(default)]
    at: Filter,
    /// What is needed to decide the claim, if only one world was measured.
    needs: String,
}

impl WorldAgreement {
    /// Evaluates the claim: holds if all points agree with sufficient precision; fails if one differs with
    /// sufficient precision.
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let Some(compared) = &view.data.compared else { return Finding::unknown(self.needs.clone()) };
        let points: Vec<&ComparedPoint> = compared
            .iter()
            .filter(|compared| self.at.selects_conditions(&compared.point.experiment, &compared.conditions))
            .collect();
        if points.is_empty() {
            return Finding::unknown("no point was measured in both worlds");
        }
        let tally: Tally = points.iter().copied().collect();
        let refuted = points.iter().any(|point| !point.agrees() && !point.is_imprecise());
        let holds = match (refuted, tally.agree == tally.points, tally.imprecise) {
            (true, ..) => Some(false),
            (false, true, 0) => Some(true),
            _ => None,
        };
        let text = format!(
            "the model agrees with the kernel at {} of {} points that were measured in both; at {} points the uncertainty exceeds the tolerance, and {} of these agree",
            tally.agree, tally.points, tally.imprecise, tally.imprecise_and_agree
        );
        let differ = points.iter().filter(|point| !point.agrees());
        let rows = differ.flat_map(|point| {
            point.describe_checks().into_iter().map(|sentence| format!("{}. {sentence}", point.point))
        });
        Finding { holds, ..Finding::unknown(text).with_rows(rows.collect()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dataset, view};
    use crate::validation::test_points::compared;

    #[test]
    fn all_points_have_to_agree_with_sufficient_precision() {
        let point = |kernel: &[u64], model: &[u64]| {
            compared("transports = ['tcp']\nmessages = 8\nrepetitions = 8", kernel, model)
        };
        let same = point(&[20; 8], &[20; 80]);
        let differs = point(&[20; 8], &[30; 80]);
        let little = point(&[20, 20, 20, 20, 60, 60, 60, 60], &[40; 80]);
        assert!(little.is_imprecise() && differs.is_imprecise() == same.is_imprecise());
        let holds = |points: Option<Vec<ComparedPoint>>| {
            let mut data = dataset(Vec::new());
            data.compared = points;
            let check = WorldAgreement { at: Filter::default(), needs: "two worlds".to_owned() };
            check.evaluate(&view(&data))
        };
        assert_eq!(holds(None), Finding::unknown("two worlds"));
        assert_eq!(holds(Some(Vec::new())).holds, None);
        assert_eq!(holds(Some(vec![same.clone()])).holds, Some(true));
        assert_eq!(holds(Some(vec![same.clone(), little.clone()])).holds, None);
        let refuted = holds(Some(vec![same, little, differs]));
        assert_eq!(refuted.holds, Some(false));
        assert!(refuted.rows.iter().any(|row| row.contains("10.00 ms above that of Linux")), "{refuted:?}");
    }

    #[test]
    fn only_selected_points_are_checked() {
        let differs = compared("transports = ['tcp']\nmessages = 8\nrepetitions = 8", &[20; 8], &[30; 80]);
        let mut data = dataset(Vec::new());
        data.compared = Some(vec![differs]);
        let elsewhere = Filter { experiments: vec!["other".to_owned()], ..Filter::default() };
        let check = WorldAgreement { at: elsewhere, needs: String::new() };
        assert_eq!(check.evaluate(&view(&data)).holds, None);
    }
}
