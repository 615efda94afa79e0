//! Classes and objects of OTcl, which scripts of ns define: `Class`, `instproc`, `proc` of an object, `new`,
//! `$self`, `instvar` and `next` (OTcl Tutorial, Wetherall and Lindblad 1995).
//!
//! A class of a script may be a subclass of one of the host. Its objects are then objects of the host with additional
//! methods. The host decides which of its methods a script must not replace, because the host never calls methods of a
//! script.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::budget::ENTRY_OCTETS;
use super::control::{Procedure, usage_error};
use super::interpreter::{Interpreter, Outcome, ScriptHost, Stop};
use super::list::{list, list_of};
use super::variables::{Frame, Scope};
use super::{Word, WordError};

/// The classes and objects of a script.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// The classes that the script defines, by name.
    classes: BTreeMap<String, Class>,
    /// The classes that have a subclass.
    extended: BTreeSet<String>,
    /// The class of each object that is an instance of one of the script's classes.
    class_of: BTreeMap<String, String>,
    /// Methods for the instances of each class; the host's classes may have some, too.
    methods: BTreeMap<String, BTreeMap<String, Rc<Procedure>>>,
    /// Methods of single objects; a class may be such an object.
    own_methods: BTreeMap<String, BTreeMap<String, Rc<Procedure>>>,
    /// The methods that are being executed, the innermost last.
    calls: Vec<Call>,
    made: usize,
}

/// A class of OTcl.
#[derive(Debug)]
struct Class {
    /// The superclasses of the class, the nearest first.
    superclasses: Vec<String>,
}

/// A method that is being executed.
#[derive(Debug)]
struct Call {
    object: String,
    method: String,
    /// The index in `precedence_of_object` from which `next` searches the overridden method.
    next_place: usize,
}

/// Root classes of OTcl, which have no methods that hol executes.
const ROOT_CLASSES: [&str; 4] = ["Object", "Class", "SplitObject", "TclObject"];

/// Tcl's commands that are also methods of objects and then access the object's variables.
const VARIABLE_COMMANDS: [&str; 4] = ["set", "unset", "incr", "array"];

/// The longest name of a class of the host, in octets.
const LONGEST_NAME: usize = 200;

/// Maximum number of superclasses of a class.
const MAX_SUPERCLASSES: usize = 100;

impl Objects {
    /// Returns a class and all its superclasses; each class comes before its superclasses.
    fn precedence(&self, class: &str) -> Vec<String> {
        let (mut line, mut seen) = (Vec::new(), BTreeSet::new());
        self.add_superclasses(class, &mut seen, &mut line);
        line.reverse();
        line
    }

    /// Appends the superclasses of a class, and then the class itself.
    fn add_superclasses(&self, class: &str, seen: &mut BTreeSet<String>, line: &mut Vec<String>) {
        if !seen.insert(class.to_owned()) {
            return;
        }
        match self.classes.get(class) {
            Some(own) => {
                own.superclasses.iter().rev().for_each(|above| self.add_superclasses(above, seen, line));
            }
            // The superclass of a host's class has the name up to the last slash: `Agent` for `Agent/TCP`.
            None => {
                let is_short = seen.len() <= MAX_SUPERCLASSES && class.len() <= LONGEST_NAME;
                let above = class.rsplit_once('/').filter(|_| is_short);
                above.into_iter().for_each(|(above, _)| self.add_superclasses(above, seen, line));
            }
        }
        line.push(class.to_owned());
    }

    fn is_class(&self, name: &str) -> bool {
        self.classes.contains_key(name)
    }

    /// Returns the host's class nearest to a class: the class itself or one of its superclasses.
    fn host_class(&self, class: &str) -> Option<String> {
        let is_of_host = |class: &String| !self.is_class(class) && !ROOT_CLASSES.contains(&class.as_str());
        self.precedence(class).into_iter().find(is_of_host)
    }

    /// Returns whether a class or one of its superclasses has a constructor.
    fn has_init(&self, class: &str) -> bool {
        self.precedence(class).iter().any(|own| self.procedure(1, own, "init").is_some())
    }

    /// Returns the procedure of `method` that an entry of an object's precedence list defines. The entry has the index
    /// `place` and the name `name`; entry 0 is the object itself, all others are classes.
    fn procedure(&self, place: usize, name: &str, method: &str) -> Option<&Rc<Procedure>> {
        let methods = if place == 0 { &self.own_methods } else { &self.methods };
        methods.get(name)?.get(method)
    }
}

impl<H: ScriptHost> Interpreter<H> {
    /// Executes a command that concerns classes or objects; `None` for another command.
    pub(super) fn object_command(&mut self, words: &[Word]) -> Option<Outcome> {
        let name = words[0].text.as_str();
        match (name, &words[1..]) {
            ("Class", [first, rest @ ..]) if first.text == "create" => return Some(self.define_class(rest)),
            ("Class", rest @ [_, ..]) => return Some(self.define_class(rest)),
            ("new", [class, arguments @ ..]) if self.objects.is_class(&class.text) => {
                return Some(self.make(class, arguments));
            }
            ("delete", [object]) if self.host.class_of(&object.text).is_some() => {
                let problem =
                    "objects of ns cannot be deleted in hol; stop the application instead".to_owned();
                return Some(self.report_unknown(words[0].at, problem));
            }
            ("delete", [object]) if self.objects.class_of.remove(&object.text).is_some() => {
                return Some(Ok(String::new()));
            }
            (_, [verb, method, parameters, body]) if verb.text == "instproc" => {
                return Some(self.define_method(&words[0], method, parameters, body));
            }
            (_, [verb, ..]) if verb.text == "instproc" => {
                return Some(usage_error(verb.at, "CLASS instproc name {parameters} {commands}"));
            }
            _ => {}
        }
        let is_object = self.class_of_object(name).is_some();
        let is_class = self.objects.is_class(name);
        let [_, method, arguments @ ..] = words else { return None };
        if let ("proc", [name_of_method, parameters, body]) = (method.text.as_str(), arguments) {
            let is_host_class = !is_object && name.starts_with(|c: char| c.is_ascii_uppercase());
            if is_object || is_class || is_host_class {
                return Some(self.define_own_method(&words[0], name_of_method, parameters, body));
            }
        }
        let has_own = self.objects.own_methods.contains_key(name);
        if !(is_object || is_class || has_own) {
            return None;
        }
        self.dispatch(words)
    }

    /// Returns the class of an object of the script or of the host.
    fn class_of_object(&self, object: &str) -> Option<String> {
        self.objects.class_of.get(object).cloned().or_else(|| self.host.class_of(object))
    }

    /// Returns the precedence list of an object: the object itself, followed by its classes from the nearest on.
    fn precedence_of_object(&self, object: &str) -> Vec<String> {
        let classes = self.class_of_object(object).map(|class| self.objects.precedence(&class));
        [object.to_owned()].into_iter().chain(classes.into_iter().flatten()).collect()
    }

    /// Executes `Class Name -superclass {Parent …}`, which defines a class.
    fn define_class(&mut self, words: &[Word]) -> Outcome {
        const CLASS_SYNTAX: &str = "Class Name -superclass Parent";
        let Some((name, options)) = words.split_first() else { return usage_error(0, CLASS_SYNTAX) };
        let mut above = Vec::new();
        let (pairs, rest) = options.as_chunks::<2>();
        for [option, classes] in pairs {
            if option.text != "-superclass" {
                return usage_error(option.at, CLASS_SYNTAX);
            }
            above = list_of(classes)?.into_iter().map(Cow::into_owned).collect();
        }
        if let Some(word) = rest.first() {
            return usage_error(word.at, CLASS_SYNTAX);
        }
        self.budget.charge_octets(name.at, above.len() * MAX_SUPERCLASSES * ENTRY_OCTETS)?;
        if above.iter().any(|class| self.objects.precedence(class).contains(&name.text)) {
            let problem = format!("the class \"{}\" would be its own superclass", name.text);
            return Err(WordError { at: name.at, problem }.into());
        }
        // The limit below is checked only when a class is defined, so the superclasses of its superclasses must not
        // change later.
        if self.objects.extended.contains(&name.text) {
            let problem =
                format!("class \"{}\" already has subclasses; define it once, before them", name.text);
            return Err(Stop::Limit(WordError { at: name.at, problem }));
        }
        let all: BTreeSet<_> = above.iter().flat_map(|class| self.objects.precedence(class)).collect();
        if all.len() > MAX_SUPERCLASSES {
            let problem = format!("this class has more than {MAX_SUPERCLASSES} superclasses");
            return Err(Stop::Limit(WordError { at: name.at, problem }));
        }
        self.objects.extended.extend(above.iter().cloned());
        self.objects.classes.insert(name.text.clone(), Class { superclasses: above });
        Ok(name.text.clone())
    }

    /// Executes `CLASS instproc name {parameters} {commands}`, which defines a method of a class.
    fn define_method(&mut self, class: &Word, method: &Word, parameters: &Word, body: &Word) -> Outcome {
        self.budget.charge_octets(class.at, MAX_SUPERCLASSES * ENTRY_OCTETS)?;
        if let Some(above) = self.objects.host_class(&class.text) {
            let extends = above != class.text;
            self.host.check_method(&Word { text: above, ..class.clone() }, method, extends);
        }
        let procedure = self.procedure(parameters, body)?;
        let methods = self.objects.methods.entry(class.text.clone()).or_default();
        methods.insert(method.text.clone(), procedure);
        Ok(String::new())
    }

    /// Executes `$object proc name {parameters} {commands}`, which defines a method of a single object.
    fn define_own_method(&mut self, object: &Word, method: &Word, parameters: &Word, body: &Word) -> Outcome {
        self.budget.charge_octets(object.at, MAX_SUPERCLASSES * ENTRY_OCTETS)?;
        let class = self.class_of_object(&object.text);
        if let Some(above) = class.and_then(|class| self.objects.host_class(&class)) {
            self.host.check_method(&Word { text: above, ..object.clone() }, method, true);
        }
        let procedure = self.procedure(parameters, body)?;
        let methods = self.objects.own_methods.entry(object.text.clone()).or_default();
        methods.insert(method.text.clone(), procedure);
        Ok(String::new())
    }

    /// Executes `new Name arguments` for a class of the script, which creates an object.
    fn make(&mut self, class: &Word, arguments: &[Word]) -> Outcome {
        self.budget.charge_octets(class.at, MAX_SUPERCLASSES * ENTRY_OCTETS)?;
        let has_init = self.objects.has_init(&class.text);
        let handle = match self.objects.host_class(&class.text) {
            Some(above) => {
                let word = |text: &str| Word { text: text.to_owned(), ..class.clone() };
                let mut words = vec![word("new"), word(&above)];
                words.extend(arguments.iter().filter(|_| !has_init).cloned());
                let handle = self.host_command(&words)?;
                if self.host.class_of(&handle).is_none() {
                    return Ok(handle);
                }
                handle
            }
            None => {
                self.objects.made += 1;
                format!("_object{}", self.objects.made)
            }
        };
        self.construct(class, &handle, arguments)
    }

    /// Creates an object with this name and class, and calls its constructor `init`.
    fn construct(&mut self, class: &Word, handle: &str, arguments: &[Word]) -> Outcome {
        self.objects.class_of.insert(handle.to_owned(), class.text.clone());
        // The classes of the script give the host's attributes their initial values.
        let mut attributes = Vec::new();
        for own in self.objects.precedence(&class.text).iter().rev().filter(|own| self.objects.is_class(own))
        {
            let variables = self.variables.of_object(own);
            self.budget.charge_octets(class.at, (1 + variables.len()) * ENTRY_OCTETS)?;
            let owned = variables.filter(|(name, _)| self.host.has_attribute(handle, name));
            attributes.extend(owned.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        for (name, value) in &attributes {
            self.attribute_command(class.at, handle, &["set", name, value])?;
        }
        if self.objects.has_init(&class.text) {
            let word = |text: &str| Word { text: text.to_owned(), ..class.clone() };
            let words: Vec<Word> =
                [word(handle), word("init")].into_iter().chain(arguments.iter().cloned()).collect();
            self.call_from(&words, 0)?;
        }
        Ok(handle.to_owned())
    }

    /// Calls a method of an object or of a class; `None` if only the host may have the method.
    fn dispatch(&mut self, words: &[Word]) -> Option<Outcome> {
        let (object, method) = (&words[0].text, words[1].text.as_str());
        if method == "next" {
            return Some(self.next(words));
        }
        let line = self.precedence_of_object(object);
        if let Err(stop) = self.budget.charge_octets(words[0].at, line.len() * ENTRY_OCTETS) {
            return Some(Err(stop));
        }
        if line.iter().enumerate().any(|(place, own)| self.objects.procedure(place, own, method).is_some()) {
            return Some(self.call_from(words, 0));
        }
        if self.class_of_object(object).is_none() && !self.objects.is_class(object) {
            return None;
        }
        match (method, &words[2..]) {
            ("instvar", names) => Some(self.link_to(object, names)),
            (_, [first, ..])
                if VARIABLE_COMMANDS.contains(&method) && self.is_own_variable(object, method, first) =>
            {
                if let ("set", 4) = (method, words.len()) {
                    self.host.note_script_variable(words);
                }
                Some(self.with_variables(object, &words[1..]))
            }
            ("info", [what]) if what.text == "class" => {
                Some(Ok(self.class_of_object(object).unwrap_or_else(|| "Class".to_owned())))
            }
            ("info", [what]) if what.text == "vars" => {
                let variables = self.variables.of_object(object);
                if let Err(stop) = self.budget.charge_octets(words[0].at, variables.len() * ENTRY_OCTETS) {
                    return Some(Err(stop));
                }
                let arrays: BTreeSet<&str> =
                    variables.map(|(name, _)| name.split('(').next().unwrap_or_default()).collect();
                Some(Ok(list(arrays)))
            }
            ("info", [what, class @ ..]) if matches!(what.text.as_str(), "subclass" | "superclass") => {
                let spent = self.budget.charge_octets(what.at, self.objects.classes.len() * ENTRY_OCTETS);
                Some(spent.map(|()| self.relatives(object, &what.text, class)))
            }
            ("destroy", []) if self.host.class_of(object).is_none() => {
                self.objects.class_of.remove(object);
                Some(Ok(String::new()))
            }
            ("create", [name, arguments @ ..]) if self.objects.is_class(object) => {
                Some(self.make_named(&words[0], name, arguments))
            }
            _ if self.host.class_of(object).is_some() => None,
            _ if self.objects.is_class(object) => Some(self.make_named(&words[0], &words[1], &words[2..])),
            _ => {
                let class = self.class_of_object(object).unwrap_or_default();
                let problem =
                    format!("{method:?} is not a method of class {class}; define it with {class} instproc");
                Some(self.report_unknown(words[1].at, problem))
            }
        }
    }

    /// Executes `Name object`, which creates an instance of the class `Name` with the name `object`.
    fn make_named(&mut self, class: &Word, name: &Word, arguments: &[Word]) -> Outcome {
        if self.objects.host_class(&class.text).is_some() {
            let problem = format!("{:?} is not a command of class {}; use new", name.text, class.text);
            return self.report_unknown(name.at, problem);
        }
        self.construct(class, &name.text, arguments)
    }

    /// Calls the first procedure that defines a method in an object's precedence list, from index `from` on.
    fn call_from(&mut self, words: &[Word], from: usize) -> Outcome {
        let (object, method) = (&words[0].text, &words[1].text);
        let line = self.precedence_of_object(object);
        let found = (from..line.len())
            .find_map(|place| Some((place, self.objects.procedure(place, &line[place], method)?.clone())));
        let Some((place, procedure)) = found else { return self.call_host(words) };
        let call = Call { object: object.clone(), method: method.clone(), next_place: place + 1 };
        self.objects.calls.push(call);
        let class = self.class_of_object(object).unwrap_or_default();
        let implied = [("self", object.as_str()), ("class", class.as_str()), ("proc", method.as_str())];
        let result = self.call(&procedure, &words[1], &words[2..], &implied);
        self.objects.calls.pop();
        result
    }

    /// Executes `$self next arguments`, which calls the method that the current method overrides.
    fn next(&mut self, words: &[Word]) -> Outcome {
        let object = &words[0].text;
        let Some(Call { method, next_place, .. }) =
            self.objects.calls.last().filter(|call| call.object == *object)
        else {
            return usage_error(words[1].at, "$self next, in a method of $self");
        };
        let (method, next_place) = (Word { text: method.clone(), ..words[1].clone() }, *next_place);
        let words: Vec<Word> =
            [words[0].clone(), method].into_iter().chain(words[2..].iter().cloned()).collect();
        self.call_from(&words, next_place)
    }

    /// Calls the host's method that the methods of the script's classes override; does nothing if the host has none.
    fn call_host(&mut self, words: &[Word]) -> Outcome {
        let is_of_host = self.host.class_of(&words[0].text).is_some();
        match (words[1].text.as_str(), &words[2..]) {
            _ if !is_of_host => Ok(String::new()),
            ("init", []) => Ok(String::new()),
            ("init", [argument, ..]) => {
                let problem = "in hol a class of ns that a script extends takes no arguments".to_owned();
                Err(Stop::Limit(WordError { at: argument.at, problem }))
            }
            _ => self.host_command(words),
        }
    }

    /// Executes `$self instvar name {other own}`, which makes the object's variables available in the method: `name`
    /// under its name, `other` as `own`.
    fn link_to(&mut self, object: &str, names: &[Word]) -> Outcome {
        self.budget.charge_octets(names.first().map_or(0, |name| name.at), names.len() * ENTRY_OCTETS)?;
        for name in names {
            let parts = list_of(name)?;
            let (theirs, own) = match &parts[..] {
                [name] => (name, name),
                [theirs, own] => (theirs, own),
                _ => return usage_error(name.at, "$self instvar name {other own}"),
            };
            self.variables.link(own, (Scope::Object(object.to_owned()), theirs.to_string()));
        }
        Ok(String::new())
    }

    /// Returns whether a command such as `$object set` or `$object incr` concerns one of the script's own variables.
    fn is_own_variable(&self, object: &str, method: &str, name: &Word) -> bool {
        method == "array" || !self.host.has_attribute(object, &name.text)
    }

    /// Executes a command of Tcl on a variable of an object: `$object incr count`.
    fn with_variables(&mut self, object: &str, words: &[Word]) -> Outcome {
        let name = if words[0].text == "array" { words.get(2) } else { words.get(1) };
        let Some(name) = name else { return usage_error(words[0].at, "$object set name value") };
        let array = name.text.split('(').next().unwrap_or_default().to_owned();
        self.variables.enter(Frame::default());
        self.variables.link(&array, (Scope::Object(object.to_owned()), array.clone()));
        let done = self.basic_command(words);
        self.variables.leave();
        done.unwrap_or_else(|| usage_error(words[0].at, "$object set name value"))
    }

    /// Executes `Name info subclass` or `Name info superclass`, which list related classes.
    fn relatives(&self, class: &str, what: &str, of: &[Word]) -> String {
        let all = match what {
            "superclass" => {
                self.objects.classes.get(class).map(|class| class.superclasses.clone()).unwrap_or_default()
            }
            _ => {
                let below =
                    |(_, own): &(&String, &Class)| own.superclasses.iter().any(|above| above == class);
                self.objects.classes.iter().filter(below).map(|(name, _)| name.clone()).collect()
            }
        };
        match of {
            [other] => i64::from(all.contains(&other.text)).to_string(),
            _ => list(all.iter().map(String::as_str)),
        }
    }
}
