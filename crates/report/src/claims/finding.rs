//! What one check says on one stack.

/// The answer with the numbers behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Whether the claim holds; `None` where the data do not tell.
    pub holds: Option<bool>,
    /// One sentence with the deciding numbers.
    pub text: String,
    /// Further numbers, one line each.
    pub rows: Vec<String>,
}

impl Finding {
    /// An answer.
    pub fn new(holds: bool, text: impl Into<String>) -> Self {
        Self { holds: Some(holds), text: text.into(), rows: Vec::new() }
    }

    /// No answer, and why.
    pub fn unknown(text: impl Into<String>) -> Self {
        Self { holds: None, text: text.into(), rows: Vec::new() }
    }

    /// No answer, for there is nothing measured that the check asks for.
    pub fn no_points() -> Self {
        Self::unknown("no measured point to judge")
    }

    /// With what is not in its means: of `all` repetitions only `used` have a value.
    pub fn of_repetitions(mut self, used: u64, all: u64) -> Self {
        if used < all {
            self.text += &format!(" ({} of {all} repetitions did not end and are in no mean)", all - used);
        }
        self
    }

    /// With the lines behind it.
    pub fn with_rows(mut self, rows: Vec<String>) -> Self {
        self.rows = rows;
        self
    }

    /// All together: fails if one fails, holds if all do.
    pub fn all(findings: impl Iterator<Item = Self>) -> Self {
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
