//! What is to be said about a claim in the end.

use super::Finding;

/// What is to be said about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It holds on the first stack, today's.
    Reproduced,
    /// It holds only with the settings of the paper's time.
    PeriodOnly,
    /// It does not hold today; the stack of the paper's time is not in this world.
    NotToday,
    /// It does not hold.
    NotReproduced,
    /// The paper's text, or this world, does not tell.
    NotDecidable,
}

impl Verdict {
    /// All verdicts, best first.
    pub const ALL: [Self; 5] =
        [Self::Reproduced, Self::PeriodOnly, Self::NotToday, Self::NotReproduced, Self::NotDecidable];

    /// What follows from the findings, today's stack first; `whole`: every stack was asked.
    pub(super) fn of(findings: &[(String, Finding)], whole: bool) -> Self {
        let mut holds = findings.iter().map(|(_, finding)| finding.holds);
        match holds.next().flatten() {
            Some(true) => Self::Reproduced,
            modern if holds.clone().any(|period| period == Some(true)) => {
                debug_assert!(modern != Some(true));
                Self::PeriodOnly
            }
            None if holds.all(|period| period.is_none()) => Self::NotDecidable,
            _ if !whole => Self::NotToday,
            _ => Self::NotReproduced,
        }
    }

    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::PeriodOnly => "reproduced only with period stack settings",
            Self::NotToday => "not reproduced today",
            Self::NotReproduced => "not reproduced",
            Self::NotDecidable => "not decidable",
        }
    }

    /// In a word or two, for a column.
    pub const fn short(self) -> &'static str {
        match self {
            Self::PeriodOnly => "period stack only",
            other => other.text(),
        }
    }

    /// The CSS class that colours it.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Reproduced => "v-good",
            Self::PeriodOnly => "v-period",
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

    fn among(holds: &[Option<bool>], whole: bool) -> Verdict {
        let finding = |holds: &Option<bool>| {
            (String::new(), Finding { holds: *holds, text: String::new(), rows: Vec::new() })
        };
        Verdict::of(&holds.iter().map(finding).collect::<Vec<_>>(), whole)
    }

    #[test]
    fn without_the_period_stack_nothing_is_said_about_it() {
        assert_eq!(among(&[Some(true)], false), Verdict::Reproduced);
        assert_eq!(among(&[Some(false)], false), Verdict::NotToday);
        assert_eq!(among(&[None], false), Verdict::NotDecidable);
    }

    #[test]
    fn the_first_stack_decides_and_the_period_stack_may_rescue() {
        assert_eq!(of(&[Some(true), Some(false)]), Verdict::Reproduced);
        assert_eq!(of(&[Some(false), Some(true)]), Verdict::PeriodOnly);
        assert_eq!(of(&[None, Some(true)]), Verdict::PeriodOnly);
        assert_eq!(of(&[Some(false), Some(false)]), Verdict::NotReproduced);
        assert_eq!(of(&[Some(false), None]), Verdict::NotReproduced);
        assert_eq!(of(&[None, Some(false)]), Verdict::NotReproduced);
        assert_eq!(of(&[None, None]), Verdict::NotDecidable);
    }
}
