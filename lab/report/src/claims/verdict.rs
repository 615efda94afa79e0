//! The verdict on a claim.

use super::Finding;

/// The verdict on a claim: whether it holds on the current stack, and with the settings of the paper's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The claim holds on the current stack.
    Reproduced,
    /// The claim holds with the settings of the paper's time, but not on the current stack.
    PeriodOnly,
    /// The claim holds with the settings of the paper's time; on the current stack it is undecided.
    OpenToday,
    /// The claim does not hold on the current stack; with the settings of the paper's time it is undecided or cannot be
    /// measured.
    NotToday,
    /// The claim holds on no stack.
    NotReproduced,
    /// Neither the paper's text nor this world decides the claim.
    NotDecidable,
}

impl Verdict {
    /// All verdicts, best first.
    pub const ALL: [Self; 6] = [
        Self::Reproduced,
        Self::PeriodOnly,
        Self::OpenToday,
        Self::NotToday,
        Self::NotReproduced,
        Self::NotDecidable,
    ];

    /// Derives the verdict from the results, the current stack first; `all_measured` says that no stack is
    /// missing.
    pub(super) fn of(findings: &[(String, Finding)], all_measured: bool) -> Self {
        let mut holds = findings.iter().map(|(_, finding)| finding.holds);
        let today = holds.next().flatten();
        let period: Vec<Option<bool>> = holds.collect();
        let rescued = period.contains(&Some(true));
        let refuted = all_measured && period.iter().all(|holds| *holds == Some(false));
        match today {
            Some(true) => Self::Reproduced,
            Some(false) if rescued => Self::PeriodOnly,
            Some(false) if refuted => Self::NotReproduced,
            Some(false) => Self::NotToday,
            None if rescued => Self::OpenToday,
            None => Self::NotDecidable,
        }
    }

    /// Returns the verdict as text.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::PeriodOnly => "reproduced only with the settings of the paper's time",
            Self::OpenToday => "holds with the settings of the paper's time, undecided today",
            Self::NotToday => "not reproduced today",
            Self::NotReproduced => "not reproduced",
            Self::NotDecidable => "not decided",
        }
    }

    /// Returns the verdict in a word or two, for a column.
    pub const fn short(self) -> &'static str {
        match self {
            Self::PeriodOnly => "paper's time only",
            Self::OpenToday => "paper's time; undecided today",
            other => other.text(),
        }
    }

    /// Returns the CSS class of its colour.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Reproduced => "v-good",
            Self::PeriodOnly | Self::OpenToday => "v-period",
            Self::NotToday | Self::NotReproduced => "v-bad",
            Self::NotDecidable => "v-unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(holds: &[Option<bool>]) -> Verdict {
        among(holds, true)
    }

    fn among(holds: &[Option<bool>], all_measured: bool) -> Verdict {
        let finding =
            |holds: &Option<bool>| (String::new(), Finding { holds: *holds, ..Finding::no_points() });
        Verdict::of(&holds.iter().map(finding).collect::<Vec<_>>(), all_measured)
    }

    #[test]
    fn verdict_without_the_period_stack_is_about_today_only() {
        assert_eq!(among(&[Some(true)], false), Verdict::Reproduced);
        assert_eq!(among(&[Some(false)], false), Verdict::NotToday);
        assert_eq!(among(&[None], false), Verdict::NotDecidable);
    }

    #[test]
    fn first_stack_decides_and_the_period_stack_can_soften_a_refutation() {
        for period in [Some(true), Some(false), None] {
            assert_eq!(of(&[Some(true), period]), Verdict::Reproduced);
        }
        assert_eq!(of(&[Some(false), Some(true)]), Verdict::PeriodOnly);
        assert_eq!(of(&[Some(false), Some(false)]), Verdict::NotReproduced);
        assert_eq!(of(&[Some(false)]), Verdict::NotReproduced, "asked once");
    }

    #[test]
    fn undecided_stack_leaves_the_verdict_open() {
        assert_eq!(of(&[None, Some(true)]), Verdict::OpenToday, "not refuted today");
        assert_eq!(of(&[None, Some(false)]), Verdict::NotDecidable, "not refuted today either");
        assert_eq!(of(&[Some(false), None]), Verdict::NotToday);
        assert_eq!(of(&[None, None]), Verdict::NotDecidable);
    }
}
