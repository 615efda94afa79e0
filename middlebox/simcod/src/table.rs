//! Rules as a table.

use crate::lifetime_text;
use crate::rule::{End, Rule};
use hol_terminal::json;
use hol_terminal::{aligned_table, print};

/// Prints rules as a table, or each as a JSON object.
pub fn show(rules: &[Rule], as_json: bool) {
    if as_json {
        print(&rules.iter().map(json).collect::<String>());
    } else {
        print_table(rules);
    }
}

/// Prints a table, without the columns that would be empty.
pub fn print_table(rules: &[Rule]) {
    const HEADS: [&str; 11] =
        ["PID", "GID", "STATE", "PROTOCOL", "INTERNAL", "", "EXTERNAL", "OUTSIDE", "INSIDE", "LEFT", "OWNER"];
    const NUMERIC_COLUMNS: [&str; 3] = ["PID", "GID", "LEFT"];
    let cells: Vec<[String; 11]> = rules.iter().map(Rule::cells).collect();
    let used: Vec<usize> =
        (0..HEADS.len()).filter(|at| cells.iter().any(|row| !row[*at].is_empty())).collect();
    let heads = used.iter().map(|at| HEADS[*at].to_owned()).collect();
    let rows = cells.iter().map(|row| used.iter().map(|at| row[*at].clone()).collect());
    let rows: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
    print(&if used.is_empty() {
        String::new()
    } else {
        aligned_table(&rows, |at| NUMERIC_COLUMNS.contains(&HEADS[used[at]]))
    });
}

impl Rule {
    /// Returns the state of the rule, its protocol and its flow, as text on one line.
    pub fn summary(&self) -> String {
        let [_, _, state, protocol, internal, way, external, ..] = self.cells();
        let cells = [state, protocol, internal, way, external];
        cells.into_iter().filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Returns the cells of the rule's row. A cell is empty if its value is unknown or redundant: an address
    /// that is not translated is shown once.
    fn cells(&self) -> [String; 11] {
        let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
        let end = |end: &Option<End>| end.as_ref().map(|end| end.text.clone()).unwrap_or_default();
        let other = |translated: &Option<End>, real: &Option<End>| {
            if translated == real { String::new() } else { end(translated) }
        };
        let way = match (self.direction, self.state) {
            (Some("inbound"), _) => "<-",
            (Some("outbound"), _) => "->",
            (Some(_), _) => "<->",
            (None, Some("disabled")) => "-x-",
            (None, _) => "",
        };
        [
            self.pid.to_string(),
            number(self.gid),
            self.state.unwrap_or_default().to_owned(),
            self.protocol.clone().unwrap_or_default(),
            end(&self.internal),
            way.to_owned(),
            end(&self.external),
            other(&self.outside, &self.internal),
            other(&self.inside, &self.external),
            self.lifetime_s.map(lifetime_text::format).unwrap_or_default(),
            // A name may contain any octets.
            self.owner.as_deref().unwrap_or_default().escape_debug().to_string(),
        ]
    }
}
