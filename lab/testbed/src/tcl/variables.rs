//! Variables: global ones, variables of each active procedure call, and variables of objects.

use std::collections::BTreeMap;

use super::suggestion;

/// The scope of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    Global,
    /// The variables of the procedure call at this depth.
    Call(usize),
    /// The variables of the object with this handle.
    Object(String),
}

/// A scope, and the name of a variable in it.
pub(super) type ScopedName = (Scope, String);

/// Variables by name; an element of an array is called `name(index)`.
#[derive(Debug, Default)]
pub(super) struct Variables {
    global: Frame,
    frames: Vec<Frame>,
    objects: BTreeMap<String, BTreeMap<String, Value>>,
    /// Number of assignments so far, from which a new variable gets its number.
    made: u64,
}

/// The value of a variable.
#[derive(Debug, Default)]
pub(super) struct Value {
    text: String,
    /// Whether the value has the canonical form of a list.
    is_list: bool,
    /// The value of the assignment counter when the variable was created; it gives the order of creation.
    number: u64,
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self { text, is_list: false, number: 0 }
    }
}

/// The variables of one call of a procedure.
#[derive(Debug, Default)]
pub(super) struct Frame {
    /// The variables of the procedure call, by name.
    pub own: BTreeMap<String, Value>,
    /// Names that refer to a variable of another scope because of `global`, `upvar` or `instvar`; without index.
    pub linked: BTreeMap<String, ScopedName>,
}

impl Variables {
    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (scope, name) = self.resolve(name);
        self.in_scope(&scope)?.get(&name).map(|value| value.text.as_str())
    }

    /// Returns whether the value of a variable has the canonical form of a list.
    pub fn is_list(&self, name: &str) -> bool {
        let (scope, name) = self.resolve(name);
        self.in_scope(&scope).and_then(|variables| variables.get(&name)).is_some_and(|value| value.is_list)
    }

    /// Returns the error message for a variable that does not exist.
    pub fn unknown(&self, name: &str) -> String {
        let (scope, name) = self.resolve(name);
        let near =
            suggestion(&name, self.in_scope(&scope).into_iter().flat_map(BTreeMap::keys).map(String::as_str));
        let cure = near.map_or_else(|| "set it first".to_owned(), |near| format!("did you mean \"{near}\"?"));
        format!("unknown variable \"{name}\"; {cure}")
    }

    /// Sets a variable, and creates it if it does not exist.
    pub fn set(&mut self, name: &str, value: String) {
        let (scope, name) = self.resolve(name);
        let own = self.get_or_create(scope, name);
        (own.text, own.is_list) = (value, false);
    }

    /// Appends text to a variable, which need not exist, and returns its value. If `has_elements`, the variable becomes
    /// a list.
    pub fn append(&mut self, name: &str, more: &str, has_elements: bool) -> &str {
        let (scope, name) = self.resolve(name);
        let value = self.get_or_create(scope, name);
        value.text.push_str(more);
        value.is_list = has_elements;
        &value.text
    }

    fn get_or_create(&mut self, scope: Scope, name: String) -> &mut Value {
        self.made += 1;
        let number = self.made;
        self.in_scope_mut(scope).entry(name).or_insert(Value { number, ..Value::default() })
    }

    /// Returns the indices of an array, in the order in which Tcl lists them.
    pub fn indices(&self, array: &str) -> Vec<String> {
        let (scope, bare) = self.resolve(array);
        let elements = self.in_scope(&scope).into_iter().flat_map(|variables| elements_of(variables, &bare));
        let mut elements: Vec<(u64, &str)> = elements.map(|(index, value)| (value.number, index)).collect();
        elements.sort_unstable();
        in_hash_order(elements.into_iter().map(|(_, index)| index))
    }

    /// Returns whether there is a variable or an array of this name.
    pub fn exists(&self, name: &str) -> bool {
        let (scope, bare) = self.resolve(name);
        self.in_scope(&scope).is_some_and(|variables| {
            variables.contains_key(&bare) || elements_of(variables, &bare).next().is_some()
        })
    }

    /// Deletes a variable, or a whole array.
    pub fn unset(&mut self, name: &str) {
        let (scope, bare) = self.resolve(name);
        let variables = self.in_scope_mut(scope);
        variables.remove(&bare);
        let indices: Vec<String> = elements_of(variables, &bare).map(|(index, _)| index.to_owned()).collect();
        indices.iter().for_each(|index| drop(variables.remove(&format!("{bare}({index})"))));
    }

    /// Makes a name in the current call refer to a variable of another scope.
    pub fn link(&mut self, name: &str, place: ScopedName) {
        self.frames.last_mut().unwrap_or(&mut self.global).linked.insert(name.to_owned(), place);
    }

    /// Makes a name in the current call refer to the global variable of this name.
    pub fn link_global(&mut self, name: &str) {
        if !self.frames.is_empty() {
            self.link(name, (Scope::Global, name.trim_start_matches("::").to_owned()));
        }
    }

    /// Enters a procedure call, whose variables are in `frame`.
    pub fn enter(&mut self, frame: Frame) {
        self.frames.push(frame);
    }

    /// Leaves the current procedure call and drops its variables.
    pub fn leave(&mut self) {
        self.frames.pop();
    }

    /// Returns the number of procedure calls that are being executed.
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    /// Leaves all calls deeper than `depth` temporarily; [`restore`](Self::restore) enters them again.
    pub fn leave_to(&mut self, depth: usize) -> Vec<Frame> {
        self.frames.split_off(depth.min(self.frames.len()))
    }

    /// Enters the calls that [`leave_to`](Self::leave_to) has left.
    pub fn restore(&mut self, frames: Vec<Frame>) {
        self.frames.extend(frames);
    }

    /// Returns the scope and name of the variable to which `name` refers in the call at this depth; depth 0 is the
    /// global scope.
    pub fn resolve_at(&self, depth: usize, name: &str) -> ScopedName {
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

    /// Returns the scope and name of the variable to which `name` refers in the current call.
    pub fn resolve(&self, name: &str) -> ScopedName {
        self.resolve_at(self.depth(), name)
    }

    /// Returns the names and values of all variables of an object.
    pub fn of_object(&self, handle: &str) -> impl ExactSizeIterator<Item = (&str, &str)> {
        static NO_VARIABLES: BTreeMap<String, Value> = BTreeMap::new();
        let own = self.objects.get(handle).unwrap_or(&NO_VARIABLES);
        own.iter().map(|(name, value)| (name.as_str(), value.text.as_str()))
    }

    fn in_scope(&self, scope: &Scope) -> Option<&BTreeMap<String, Value>> {
        match scope {
            Scope::Global => Some(&self.global.own),
            Scope::Call(index) => self.frames.get(*index).map(|frame| &frame.own),
            Scope::Object(handle) => self.objects.get(handle),
        }
    }

    fn in_scope_mut(&mut self, scope: Scope) -> &mut BTreeMap<String, Value> {
        match scope {
            Scope::Call(index) if index < self.frames.len() => &mut self.frames[index].own,
            Scope::Object(handle) => self.objects.entry(handle).or_default(),
            _ => &mut self.global.own,
        }
    }
}

/// Returns the indices and values of an array.
fn elements_of<'v>(
    variables: &'v BTreeMap<String, Value>,
    array: &str,
) -> impl Iterator<Item = (&'v str, &'v Value)> {
    let element = format!("{array}(");
    let from = variables.range(element.clone()..);
    let behind = from.map_while(move |(name, value)| Some((name.strip_prefix(&element)?, value)));
    behind.filter_map(|(rest, value)| Some((rest.strip_suffix(')')?, value)))
}

/// Sorts the indices of an array, given in the order of their creation, as Tcl lists them (`Tcl_CreateHashEntry`,
/// `RebuildTable` and `TclHashObjKey` of Tcl 8.6).
fn in_hash_order<'i>(indices: impl Iterator<Item = &'i str>) -> Vec<String> {
    let hash = |index: &str| {
        index.bytes().fold(0_u32, |sum, octet| sum.wrapping_mul(9).wrapping_add(octet.into())) as usize
    };
    // A chain begins with its last entry.
    let mut chains: Vec<Vec<&str>> = vec![Vec::new(); 4];
    for (count, index) in (1..).zip(indices) {
        let last = chains.len() - 1;
        chains[hash(index) & last].push(index);
        if count >= 3 * chains.len() {
            let last = 4 * chains.len() - 1;
            for index in std::mem::replace(&mut chains, vec![Vec::new(); last + 1])
                .iter()
                .flat_map(|own| own.iter().rev())
            {
                chains[hash(index) & last].push(index);
            }
        }
    }
    chains.iter().flat_map(|own| own.iter().rev()).map(|index| (*index).to_owned()).collect()
}
