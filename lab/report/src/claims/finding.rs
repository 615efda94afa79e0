//! The result of one check on one stack.

/// The result of a check, with the numbers behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Whether the claim holds; `None` if the data do not decide it.
    pub holds: Option<bool>,
    /// One sentence with the decisive numbers.
    pub text: String,
    /// Further results, one line each.
    pub rows: Vec<String>,
    /// The numbers of points that were not checked, with the reasons.
    pub left_out: Vec<String>,
}

impl Finding {
    /// Creates the finding that a claim holds or does not hold.
    pub fn new(holds: bool, text: impl Into<String>) -> Self {
        Self { holds: Some(holds), text: text.into(), rows: Vec::new(), left_out: Vec::new() }
    }

    /// Creates an undecided result with the reason.
    pub fn unknown(text: impl Into<String>) -> Self {
        Self { holds: None, text: text.into(), rows: Vec::new(), left_out: Vec::new() }
    }

    /// Creates the undecided result of a check without any measured points.
    pub fn no_points() -> Self {
        Self::unknown("no point was measured")
    }

    /// Returns whether no point of the check was measured.
    pub fn has_no_points(&self) -> bool {
        self.holds.is_none() && self.text == Self::no_points().text
    }

    /// Notes how many repetitions are not in the means: of `all` repetitions, only `used` have a value.
    pub fn with_used_repetitions(mut self, used: u64, all: u64) -> Self {
        if used < all {
            self.text += &format!(
                " ({} of {all} repetitions did not finish and are not included in the means)",
                all - used
            );
        }
        self
    }

    /// Sets the further results, one line each.
    pub fn with_rows(mut self, rows: Vec<String>) -> Self {
        self.rows = rows;
        self
    }

    /// Appends the text and the lines of another check, unless it has no points; `holds` stays unchanged.
    pub fn with_side_check(mut self, what: &str, other: Self) -> Self {
        if other != Self::no_points() {
            self.text = format!("{}. {what}: {}", self.text, other.text);
            self.rows.extend(other.rows);
        }
        self
    }

    /// Combines results: the claim fails if one of the results fails, and holds if all results hold.
    pub fn combine(findings: impl Iterator<Item = Self>) -> Self {
        findings
            .reduce(|mut one, other| {
                one.holds = match (one.holds, other.holds) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (None, _) | (_, None) => None,
                    _ => Some(true),
                };
                if !one.text.ends_with(&other.text) {
                    one.text = format!("{}; {}", one.text, other.text);
                }
                one.rows.extend(other.rows);
                one
            })
            .unwrap_or_else(Self::no_points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn side_check_is_reported_and_decides_nothing() {
        let finding = Finding::new(true, "all are alike");
        let other = Finding::new(false, "one differs").with_rows(vec!["by 1 ms".to_owned()]);
        let told = finding.clone().with_side_check("With a filter", other);
        assert_eq!((told.holds, told.rows.len()), (Some(true), 1));
        assert_eq!(told.text, "all are alike. With a filter: one differs");
        assert_eq!(finding.clone().with_side_check("With a filter", Finding::no_points()), finding);
    }
}
