//! Variables: the global ones, those of each active procedure call, and those of objects.

use std::collections::BTreeMap;

use hol_base::nearest;

/// Longer values are taken for a mistake.
const LONGEST: usize = 1 << 20;

/// Where a variable is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    Global,
    /// The call at this depth.
    Call(usize),
    /// The object with this handle.
    Object(String),
}

/// A scope, and the name of a variable in it.
pub(super) type Place = (Scope, String);

/// Variables by name; an element of an array is called `name(index)`.
#[derive(Debug, Default)]
pub(super) struct Variables {
    global: Frame,
    frames: Vec<Frame>,
    objects: BTreeMap<String, BTreeMap<String, String>>,
}

/// The variables of one call of a procedure.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub own: BTreeMap<String, String>,
    /// Names, without index, that refer to a variable of another scope: `global`, `upvar` and `instvar`.
    pub linked: BTreeMap<String, Place>,
}

impl Variables {
    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Result<&str, String> {
        let (scope, name) = self.place(name);
        let variables = self.of(&scope);
        if let Some(value) = variables.and_then(|variables| variables.get(&name)) {
            return Ok(value);
        }
        let known = variables.into_iter().flat_map(BTreeMap::keys);
        let near = nearest(&name, known.map(String::as_str));
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
        let (scope, name) = self.place(name);
        self.of_mut(scope).insert(name, value);
        Ok(())
    }

    /// Returns the indices of an array, in order.
    pub fn indices(&self, array: &str) -> Vec<String> {
        let (scope, bare) = self.place(array);
        let element = format!("{bare}(");
        let inside = |name: &String| Some(name.strip_prefix(&element)?.strip_suffix(')')?.to_owned());
        self.of(&scope).into_iter().flat_map(BTreeMap::keys).filter_map(inside).collect()
    }

    /// Returns whether there is a variable or an array of this name.
    pub fn exists(&self, name: &str) -> bool {
        let (scope, bare) = self.place(name);
        self.of(&scope).is_some_and(|variables| variables.contains_key(&bare))
            || !self.indices(name).is_empty()
    }

    /// Deletes a variable, or a whole array.
    pub fn unset(&mut self, name: &str) {
        let (scope, bare) = self.place(name);
        let element = format!("{bare}(");
        let variables = self.of_mut(scope);
        variables.remove(&bare);
        variables.retain(|key, _| !key.starts_with(&element));
    }

    /// Makes a name of the active call refer to a variable of another scope.
    pub fn link(&mut self, name: &str, place: Place) {
        self.frames.last_mut().unwrap_or(&mut self.global).linked.insert(name.to_owned(), place);
    }

    /// Makes a name refer to the global variable within a procedure.
    pub fn link_global(&mut self, name: &str) {
        if !self.frames.is_empty() {
            self.link(name, (Scope::Global, name.trim_start_matches("::").to_owned()));
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

    /// Returns the number of active calls.
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    /// Leaves all calls above a depth for a while; [`restore`](Self::restore) enters them again.
    pub fn leave_to(&mut self, depth: usize) -> Vec<Frame> {
        self.frames.split_off(depth.min(self.frames.len()))
    }

    /// Enters calls again.
    pub fn restore(&mut self, frames: Vec<Frame>) {
        self.frames.extend(frames);
    }

    /// Returns the place of a variable as the call at this depth names it; 0 is no call.
    pub fn place_at(&self, depth: usize, name: &str) -> Place {
        let bare = name.trim_start_matches("::");
        let (array, index) = bare.split_once('(').map_or((bare, None), |(array, rest)| (array, Some(rest)));
        let frame = depth.checked_sub(1).and_then(|last| self.frames.get(last));
        let linked = frame.unwrap_or(&self.global).linked.get(array).filter(|_| !name.starts_with("::"));
        if let Some((scope, own)) = linked {
            return (scope.clone(), index.map_or_else(|| own.clone(), |index| format!("{own}({index}")));
        }
        match frame {
            Some(_) if !name.starts_with("::") => (Scope::Call(depth - 1), bare.to_owned()),
            _ => (Scope::Global, bare.to_owned()),
        }
    }

    /// Returns the place of a variable as the active call names it.
    pub fn place(&self, name: &str) -> Place {
        self.place_at(self.depth(), name)
    }

    /// Returns the variables of an object, for a class whose instances begin with them.
    pub fn names_of_object(&self, handle: &str) -> Vec<(String, String)> {
        let own = self.objects.get(handle).into_iter().flatten();
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    fn of(&self, scope: &Scope) -> Option<&BTreeMap<String, String>> {
        match scope {
            Scope::Global => Some(&self.global.own),
            Scope::Call(index) => self.frames.get(*index).map(|frame| &frame.own),
            Scope::Object(handle) => self.objects.get(handle),
        }
    }

    fn of_mut(&mut self, scope: Scope) -> &mut BTreeMap<String, String> {
        match scope {
            Scope::Call(index) if index < self.frames.len() => &mut self.frames[index].own,
            Scope::Object(handle) => self.objects.entry(handle).or_default(),
            _ => &mut self.global.own,
        }
    }
}
