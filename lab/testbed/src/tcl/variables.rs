//! Variables: the global ones, those of each active procedure call, and those of objects.

use std::collections::BTreeMap;

use super::suggestion;

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
    objects: BTreeMap<String, BTreeMap<String, Value>>,
}

/// The value of a variable.
#[derive(Debug, Default)]
pub(super) struct Value {
    text: String,
    /// It is written as lists are.
    is_list: bool,
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self { text, is_list: false }
    }
}

/// The variables of one call of a procedure.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub own: BTreeMap<String, Value>,
    /// Names, without index, that refer to a variable of another scope: `global`, `upvar` and `instvar`.
    pub linked: BTreeMap<String, Place>,
}

impl Variables {
    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (scope, name) = self.place(name);
        self.of(&scope)?.get(&name).map(|value| value.text.as_str())
    }

    /// Returns whether the value of a variable is written as lists are.
    pub fn is_list(&self, name: &str) -> bool {
        let (scope, name) = self.place(name);
        self.of(&scope).and_then(|variables| variables.get(&name)).is_some_and(|value| value.is_list)
    }

    /// Describes that a variable does not exist.
    pub fn unknown(&self, name: &str) -> String {
        let (scope, name) = self.place(name);
        let near =
            suggestion(&name, self.of(&scope).into_iter().flat_map(BTreeMap::keys).map(String::as_str));
        let cure = near.map_or_else(|| "set it first".to_owned(), |near| format!("did you mean \"{near}\"?"));
        format!("unknown variable \"{name}\"; {cure}")
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: String) {
        let (scope, name) = self.place(name);
        self.of_mut(scope).insert(name, value.into());
    }

    /// Adds text to a variable, which may be new, and returns its value; elements make it a list.
    pub fn append(&mut self, name: &str, more: &str, has_elements: bool) -> &str {
        let (scope, name) = self.place(name);
        let value = self.of_mut(scope).entry(name).or_default();
        value.text.push_str(more);
        value.is_list = has_elements;
        &value.text
    }

    /// Returns the indices of an array, in order.
    pub fn indices(&self, array: &str) -> Vec<String> {
        let (scope, bare) = self.place(array);
        self.of(&scope)
            .map_or(Vec::new(), |variables| elements_of(variables, &bare).map(str::to_owned).collect())
    }

    /// Returns whether there is a variable or an array of this name.
    pub fn exists(&self, name: &str) -> bool {
        let (scope, bare) = self.place(name);
        self.of(&scope).is_some_and(|variables| {
            variables.contains_key(&bare) || elements_of(variables, &bare).next().is_some()
        })
    }

    /// Deletes a variable, or a whole array.
    pub fn unset(&mut self, name: &str) {
        let (scope, bare) = self.place(name);
        let variables = self.of_mut(scope);
        variables.remove(&bare);
        let indices: Vec<String> = elements_of(variables, &bare).map(str::to_owned).collect();
        indices.iter().for_each(|index| drop(variables.remove(&format!("{bare}({index})"))));
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

    /// Returns the names and values of an object's variables.
    pub fn of_object(&self, handle: &str) -> impl ExactSizeIterator<Item = (&str, &str)> {
        static NONE: BTreeMap<String, Value> = BTreeMap::new();
        let own = self.objects.get(handle).unwrap_or(&NONE);
        own.iter().map(|(name, value)| (name.as_str(), value.text.as_str()))
    }

    fn of(&self, scope: &Scope) -> Option<&BTreeMap<String, Value>> {
        match scope {
            Scope::Global => Some(&self.global.own),
            Scope::Call(index) => self.frames.get(*index).map(|frame| &frame.own),
            Scope::Object(handle) => self.objects.get(handle),
        }
    }

    fn of_mut(&mut self, scope: Scope) -> &mut BTreeMap<String, Value> {
        match scope {
            Scope::Call(index) if index < self.frames.len() => &mut self.frames[index].own,
            Scope::Object(handle) => self.objects.entry(handle).or_default(),
            _ => &mut self.global.own,
        }
    }
}

/// Returns the indices of an array, in order.
fn elements_of<'v>(variables: &'v BTreeMap<String, Value>, array: &str) -> impl Iterator<Item = &'v str> {
    let element = format!("{array}(");
    let from = variables.range(element.clone()..).map(|(name, _)| name.as_str());
    from.map_while(move |name| name.strip_prefix(&element)).filter_map(|index| index.strip_suffix(')'))
}
