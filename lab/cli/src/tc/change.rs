//! Lines that change a discipline that an earlier line has set up. tc(8), `change` and `replace`.

use hol_base::BitRate;

use super::netem::keep_attributes;
use super::{Change, ShapedDirection};

/// Returns the disciplines after all changes.
pub(super) fn apply_changes(lines: &[ShapedDirection]) -> Result<Vec<ShapedDirection>, String> {
    let mut now: Vec<ShapedDirection> = Vec::new();
    for line in lines {
        let earlier =
            line.change.and_then(|change| Some((change, now.iter().position(|one| line.is_at(one))?)));
        let Some((change, at)) = earlier else {
            now.push(line.clone());
            continue;
        };
        now[at] = match (change, line.kind, now[at].kind == line.kind) {
            (_, "netem", true) => keep_attributes(&now[at], line.clone()),
            (Change::Discipline, _, false) => line.clone(),
            (_, kind, true) => {
                return Err(format!(
                    "a change of {kind} keeps the options that it does not name; write one line with all options"
                ));
            }
            (Change::Options, kind, false) => {
                return Err(format!("{kind} cannot change a discipline of another kind; use replace"));
            }
        };
    }
    Ok(now)
}

impl ShapedDirection {
    /// Returns whether this line is about the same place as an earlier one.
    fn is_at(&self, earlier: &Self) -> bool {
        // The discipline of a class has the class as its parent, and the class has the discipline above as its own.
        let is_same_level = (self.kind == "htb") == (earlier.kind == "htb");
        let is_same_handle =
            self.handle.is_none() || earlier.handle.is_none() || self.handle == earlier.handle;
        is_same_level && self.parent == earlier.parent && is_same_handle
    }

    /// Returns the rate that the line sets.
    pub(super) fn rate(&self) -> Option<BitRate> {
        let (_, rate) = self.keys.iter().find(|(key, _)| *key == "rate")?;
        rate.trim_matches('"').parse().ok()
    }
}
