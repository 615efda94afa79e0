//! Variables: the global ones, and those of each active procedure call.

use std::collections::{BTreeMap, BTreeSet};

use hol_base::nearest;

/// Longer values are taken for a mistake.
const LONGEST: usize = 1 << 20;

/// Variables by name; an element of an array is called `name(index)`.
#[derive(Debug, Default)]
pub(super) struct Variables {
    global: BTreeMap<String, String>,
    frames: Vec<Frame>,
}

/// The variables of one call of a procedure.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub own: BTreeMap<String, String>,
    /// Names, without index, that refer to the global variable.
    pub linked: BTreeSet<String>,
}

impl Variables {
    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Result<&str, String> {
        let (scope, name) = self.scope(name);
        if let Some(value) = scope.get(name) {
            return Ok(value);
        }
        let near = nearest(name, scope.keys().map(String::as_str));
        let cure = near.map_or_else(|| "set it first".to_owned(), |near| format!("did you mean \"{near}\"?"));
        Err(format!("unknown variable \"{name}\"; {cure}"))
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        if value.len() > LONGEST {
            return Err(format!(
                "the variable \"{name}\" grows beyond {LONGEST} octets; end the loop that makes it grow"
            ));
        }
        let bare = name.trim_start_matches("::");
        self.scope_mut(name).insert(bare.to_owned(), value);
        Ok(())
    }

    /// Returns the indices of an array, in order.
    pub fn indices(&self, array: &str) -> Vec<String> {
        let (scope, bare) = self.scope(array);
        let element = format!("{bare}(");
        let inside = |name: &String| Some(name.strip_prefix(&element)?.strip_suffix(')')?.to_owned());
        scope.keys().filter_map(inside).collect()
    }

    /// Returns whether there is a variable or an array of this name.
    pub fn exists(&self, name: &str) -> bool {
        let (scope, bare) = self.scope(name);
        scope.contains_key(bare) || !self.indices(name).is_empty()
    }

    /// Deletes a variable, or a whole array.
    pub fn unset(&mut self, name: &str) {
        let element = format!("{}(", name.trim_start_matches("::"));
        let scope = self.scope_mut(name);
        scope.remove(name.trim_start_matches("::"));
        scope.retain(|key, _| !key.starts_with(&element));
    }

    /// Makes a name refer to the global variable within a procedure.
    pub fn link(&mut self, name: &str) {
        if let Some(frame) = self.frames.last_mut() {
            frame.linked.insert(name.to_owned());
        }
    }

    /// Enters a procedure.
    pub fn enter(&mut self, frame: Frame) {
        self.frames.push(frame);
    }

    /// Leaves a procedure.
    pub fn leave(&mut self) {
        self.frames.pop();
    }

    /// Returns whether no procedure is active.
    pub fn is_global(&self, name: &str) -> bool {
        let array = name.split_once('(').map_or(name, |(array, _)| array);
        name.starts_with("::") || self.frames.last().is_none_or(|frame| frame.linked.contains(array))
    }

    fn scope<'n>(&self, name: &'n str) -> (&BTreeMap<String, String>, &'n str) {
        let bare = name.trim_start_matches("::");
        match self.frames.last() {
            Some(frame) if !self.is_global(name) => (&frame.own, bare),
            _ => (&self.global, bare),
        }
    }

    fn scope_mut(&mut self, name: &str) -> &mut BTreeMap<String, String> {
        let global = self.is_global(name);
        match self.frames.last_mut() {
            Some(frame) if !global => &mut frame.own,
            _ => &mut self.global,
        }
    }
}
