//! Lines that change a discipline that an earlier line has set up. tc(8), `change` and `replace`.

use hol_base::BitRate;

use super::netem::apply_netem_change;
use super::qdisc_location::QdiscLocation;
use super::{Change, ShapedDirection};

/// Returns the disciplines that exist after the lines with `change` and `replace` have been applied.
pub(super) fn apply_changes(lines: &[ShapedDirection]) -> Result<Vec<ShapedDirection>, String> {
    let mut now: Vec<ShapedDirection> = Vec::new();
    for line in lines {
        let earlier =
            line.change.and_then(|change| Some((change, now.iter().position(|one| line.is_at(one))?)));
        let Some((change, at)) = earlier else {
            now.push(line.clone());
            continue;
        };
        // With another handle, replace creates a discipline also of the same kind (net/sched/sch_api.c, tc_modify_qdisc).
        let is_same = now[at].kind == line.kind && (line.handle.is_none() || line.handle == now[at].handle);
        match (change, line.kind) {
            (_, "netem") if is_same => now[at] = apply_netem_change(&now[at], line.clone()),
            // No option is named, so none changes.
            _ if is_same && line.keys.is_empty() => {}
            (_, kind) if is_same => {
                return Err(format!(
                    "hol does not apply changes of {kind}; write its final options in one line, and remove the line of the change"
                ));
            }
            (Change::Discipline, _) => replace(&mut now, at, line),
            (Change::Options, kind) => {
                return Err(format!(
                    "{kind} cannot change a discipline of another kind or handle; use replace"
                ));
            }
        }
    }
    Ok(now)
}

/// Replaces the discipline at index `at` with that of `line`. The old discipline's classes and inner disciplines
/// are removed.
fn replace(now: &mut Vec<ShapedDirection>, at: usize, line: &ShapedDirection) {
    let old = now.remove(at);
    remove_inner(now, &old);
    now.insert(at.min(now.len()), ShapedDirection { place: old.place, ..line.clone() });
}

fn remove_inner(now: &mut Vec<ShapedDirection>, outer: &ShapedDirection) {
    let is_inner = |one: &ShapedDirection| {
        // The kernel chooses a handle if a line names none, but everything is inside the root.
        let is_inside =
            outer.place == QdiscLocation::Root || outer.handle.as_deref() == one.place.container();
        one.place.container().is_some() && is_inside && outer.is_on_device_of(one)
    };
    while let Some(at) = now.iter().position(is_inner) {
        let inner = now.remove(at);
        remove_inner(now, &inner);
    }
}

impl ShapedDirection {
    /// Returns whether this line and an earlier one name the same place of the same device.
    fn is_at(&self, earlier: &Self) -> bool {
        let is_same_place = match self.place {
            QdiscLocation::OfHandle => self.handle == earlier.handle,
            _ => self.place == earlier.place,
        };
        is_same_place && self.is_on_device_of(earlier)
    }

    /// Returns whether both lines are for the same device. A line that names no device matches every device.
    fn is_on_device_of(&self, other: &Self) -> bool {
        self.device.is_none() || other.device.is_none() || self.device == other.device
    }

    /// Returns the rate that the line sets.
    pub(super) fn rate(&self) -> Option<BitRate> {
        let (_, rate) = self.keys.iter().find(|(key, _)| *key == "rate")?;
        rate.trim_matches('"').parse().ok()
    }
}
