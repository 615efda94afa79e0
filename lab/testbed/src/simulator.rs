//! The objects of a script, and the choice of the object that executes a command.

use std::collections::BTreeSet;

use crate::attributes;
use crate::defaults::Defaults;
use crate::emulab::COMMANDS;
use crate::ignored;
use crate::loss::ErrorModel;
use crate::network_builder::{NetworkBuilder, plain_name};
use crate::programs::Programs;
use crate::random_variables::RandomObjects;
use crate::schedule::Schedule;
use crate::script::{IgnoredCommand, ReadFile};
use crate::sources::Sources;
use crate::tcl::{MEASURED_VALUE, ScriptHost, Word, WordError, error_at};
use crate::traffic::Traffic;
use crate::unsupported::{self, UnsupportedFeature};

/// The object that a handle such as `_o3` names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Object {
    Simulator,
    Node(usize),
    /// A link or a LAN: the index of its segment. With the index of a line, the object is one direction of a link, as
    /// in ns; without it, the whole link or LAN, as in Emulab.
    Segment(usize, Option<usize>),
    /// The queue of one direction of a link: the indices of the segment and of the line.
    Queue(usize, usize),
    /// The part of one direction of a link behind its queue: the indices of the segment and of the line.
    Line(usize, usize),
    Agent(usize),
    Application(usize),
    Program(usize),
    ErrorModel(usize),
    /// A random generator, by its index.
    Generator(usize),
    /// A random variable, by its index.
    Variable(usize),
    /// An object that only draws or records.
    Recorder,
    /// An object of an unknown class, whose commands are not reported as unknown again.
    Unknown,
}

/// The state of a script: the network so far, and the objects that handles name.
pub(crate) struct Simulator<'t> {
    pub sources: Sources,
    pub read_file: ReadFile<'t>,
    objects: Vec<Object>,
    pub draft: NetworkBuilder,
    pub traffic: Traffic,
    pub programs: Programs,
    pub error_models: Vec<ErrorModel>,
    pub defaults: Defaults,
    pub ignored: Vec<IgnoredCommand>,
    /// The errors in the script so far.
    pub unknown: Vec<WordError>,
    /// The most serious use so far of a feature that hol does not model; because of it the whole script is refused.
    pub cause: Option<UnsupportedFeature>,
    /// Whether the script is one of Emulab, whose defaults and hosts then apply.
    pub is_emulab: bool,
    pub schedule: Schedule,
    pub randoms: RandomObjects,
    pub has_simulator: bool,
    /// Octets that hol stores because of the script: the texts of all commands, and the copies that they make.
    octets: usize,
    /// The number of files that the script has opened; hol does not really open them.
    opened: u32,
    /// Positions in the script of ignored commands.
    pub ignored_at: BTreeSet<usize>,
    /// The lines of ignored commands, each as its position and its text.
    pub ignored_texts: BTreeSet<(String, String)>,
}

/// Maximum number of octets that hol stores for one script.
pub(crate) const MAX_OCTETS: usize = 64 << 20;

/// Number of octets counted for each value, end of a link, or change, in addition to its text.
pub(crate) const ENTRY_OCTETS: usize = 128;

/// The result of a command, or the error that it causes.
pub(crate) type Outcome = Result<String, WordError>;

impl ScriptHost for Simulator<'_> {
    fn command(&mut self, words: &[Word]) -> Option<Outcome> {
        if let Err(complaint) =
            self.charge_memory(words[0].at, words.iter().map(|word| word.text.len()).sum())
        {
            return Some(Err(complaint));
        }
        if words.iter().any(|word| matches!(self.object(&word.text), Some(Object::Unknown))) {
            return Some(Ok(self.add(Object::Unknown)));
        }
        // Printed text does not indicate an unsupported feature.
        if ignored::reason(&words[0].text).is_none() {
            self.find_unsupported_features(words);
        }
        if self.is_refused() {
            return Some(Ok(String::new()));
        }
        if words[0].text == MEASURED_VALUE {
            let problem = "this needs a value that only exists during a run of ns, or that is not supported";
            return Some(self.unknown(words[0].at, problem.to_owned()));
        }
        if words[0].text == "exit" {
            return Some(self.exit(words[0].at));
        }
        self.is_emulab |= words[0].text.starts_with("tb-");
        if let Some(reason) = ignored::reason(&words[0].text) {
            let done = self.ignore(words, reason);
            return Some(done.map(|done| match words[0].text.as_str() {
                // The output of a program is not known.
                "exec" => MEASURED_VALUE.to_owned(),
                // A script may pass the handle to its procedures.
                "open" => {
                    self.opened += 1;
                    format!("file{}", self.opened + 2)
                }
                _ => done,
            }));
        }
        if let Some(object) = self.object(&words[0].text) {
            return Some(self.method(object, words));
        }
        if let Some(done) = self.random_command(words).or_else(|| self.class_command(words)) {
            return Some(done);
        }
        if let Some(done) = self.class_attribute(words) {
            return Some(done);
        }
        if words[0].text == "new" {
            return Some(self.new_object(words));
        }
        let (_, form) = COMMANDS.iter().find(|(name, _)| *name == words[0].text)?;
        Some(self.emulab(words, form))
    }

    /// Names a node, link or LAN after the first variable that contains it; `node(3)` becomes `node-3`.
    fn name_after_variable(&mut self, variable: &str, value: &str) {
        let Some(object) = handle(value).and_then(|index| self.objects.get(index)) else { return };
        let name = match *object {
            Object::Node(node) => &mut self.draft.nodes[node].name,
            Object::Segment(segment, _) => &mut self.draft.segments[segment].name,
            _ => return,
        };
        let own = plain_name(variable.trim_start_matches("::").trim_end_matches(')'));
        if name.is_none() && !own.is_empty() {
            *name = Some(own);
        }
    }

    fn report_unknown(&mut self, complaint: WordError) -> Outcome {
        self.unknown(complaint.at, complaint.problem)
    }

    fn has_attribute(&self, object: &str, attribute: &str) -> bool {
        self.object(object).is_some_and(|object| self.has_attribute(object, attribute))
    }

    fn class_of(&self, object: &str) -> Option<String> {
        self.object(object).map(|object| self.class_name(object).to_owned())
    }

    fn note_unseeded(&mut self, at: usize) {
        let (place, command) = (self.sources.line(at), "rand()".to_owned());
        let reason = "Tcl takes the seed from the clock; hol uses 1, unless srand() sets one";
        self.ignored.push(IgnoredCommand { place, command, reason });
    }

    fn note_script_variable(&mut self, words: &[Word]) {
        if let Some(Object::Agent(_) | Object::Application(_)) = self.object(&words[0].text) {
            let _ = self.ignore(words, "ns has no such attribute, so it is a variable of the script alone");
        }
    }

    fn check_method(&mut self, class: &Word, method: &Word, extends: bool) {
        if let Some(cause) = unsupported::unsupported_method(class, method, extends) {
            self.refuse(cause);
        }
    }

    fn has_file(&self, name: &str) -> bool {
        (self.read_file)(name).is_ok()
    }

    fn names(&self) -> Vec<&'static str> {
        COMMANDS.iter().map(|(name, _)| *name).chain(ignored::names()).chain(["new"]).collect()
    }

    fn file(&mut self, words: &[Word]) -> Result<Option<(String, usize)>, WordError> {
        let file = &words[1];
        let name = file.text.rsplit('/').next().unwrap_or_default();
        if name == "tb_compat.tcl" {
            self.is_emulab = true;
            self.ignore(words, "the commands of Emulab are built in")?;
            return Ok(None);
        }
        if unsupported::LIBRARY_FILES.contains(&name) {
            self.ignore(words, "the file is a part of ns itself, whose commands are built in")?;
            return Ok(None);
        }
        let problem =
            |problem: &str| WordError { at: file.at, problem: format!("source {}: {problem}", file.text) };
        let text = (self.read_file)(&file.text).map_err(|why| problem(&why))?.replace("\r\n", "\n");
        let base = self.sources.add(&file.text, &text);
        let base = base.ok_or_else(|| problem("the files of a script exceed 4 MiB in total"))?;
        Ok(Some((text, base)))
    }

    fn is_over(&self) -> bool {
        self.schedule.is_over || self.is_refused() || self.schedule.is_running && self.schedule.now.is_none()
    }
}

impl<'t> Simulator<'t> {
    /// Creates a simulator without nodes.
    pub fn new(name: &str, text: &str, read_file: ReadFile<'t>) -> Self {
        Self {
            sources: Sources::new(name, text),
            read_file,
            objects: Vec::new(),
            draft: NetworkBuilder::default(),
            traffic: Traffic::default(),
            programs: Programs::default(),
            error_models: Vec::new(),
            defaults: Defaults::default(),
            ignored: Vec::new(),
            unknown: Vec::new(),
            cause: None,
            is_emulab: false,
            schedule: Schedule::default(),
            randoms: RandomObjects::default(),
            has_simulator: false,
            octets: 0,
            opened: 0,
            ignored_at: BTreeSet::new(),
            ignored_texts: BTreeSet::new(),
        }
    }

    /// Creates ns's default random generator, and returns its name.
    pub fn add_default_random_generator(&mut self) -> (&'static str, String) {
        ("defaultRNG", self.add(Object::Generator(0)))
    }

    /// Executes a command of an object: of the simulator, or of an object that it created.
    fn method(&mut self, object: Object, words: &[Word]) -> Outcome {
        let Some(method) = words.get(1) else {
            return error_at(words[0].at, "the command of an object is missing, as in $ns node");
        };
        match (object, method.text.as_str(), &words[2..]) {
            (Object::Simulator, ..) => self.simulator_command(method, words),
            (Object::Agent(agent), ..) => self.agent_command(agent, method, words),
            (Object::Application(application), ..) => self.application_command(application, method, words),
            (Object::Program(program), ..) => self.program_command(program, method, words),
            (Object::ErrorModel(model), ..) => self.error_model_command(model, method, words),
            (Object::Generator(generator), ..) => self.generator_command(generator, method, words),
            (Object::Variable(variable), ..) => self.variable_command(variable, method, words),
            (Object::Recorder, name, _) => {
                self.ignore(words, "the command only draws or records")?;
                let is_part =
                    name.starts_with("get-") && (name.ends_with("integrator") || name.ends_with("samples"));
                Ok(if is_part { self.add(Object::Recorder) } else { MEASURED_VALUE.to_owned() })
            }
            (Object::Unknown, ..) => unreachable!("commands with unknown objects were handled before"),
            (Object::Segment(segment, line), ..) => {
                self.segment_command(segment, line, method, words, &words[2..])
            }
            (Object::Line(segment, line), "set", [attribute, value @ ..]) => {
                self.set_line(segment, line, attribute, value)
            }
            (Object::Queue(segment, line), "set", [attribute, value]) => {
                self.set_queue(segment, line, attribute, value)
            }
            (Object::Queue(..), "set", [_]) => Ok(MEASURED_VALUE.to_owned()),
            (Object::Queue(..), "trace" | "attach", _) => {
                self.ignore(words, "the command only draws or records")
            }
            (Object::Queue(..) | Object::Line(..), ..) => {
                error_at(method.at, "a queue supports only attributes, as in $queue set limit_ 6")
            }
            (Object::Node(node), "program-agent", _) => self.program_agent(method.at, Some(node), words),
            (Object::Node(node), "id" | "node-addr", []) => Ok(node.to_string()),
            (Object::Node(node), "set", [attribute]) => Ok(attributes::node_attribute(node, &attribute.text)),
            (Object::Node(_), "set", [attribute, _]) => self.set_node_attribute(attribute, words),
            (
                Object::Node(_),
                "color" | "shape" | "label" | "label-color" | "label-at" | "dlabel-color" | "add-mark"
                | "delete-mark" | "add-desire" | "dump-namconfig",
                _,
            ) => self.ignore(words, "the command only concerns drawings or the choice of machines"),
            (Object::Node(_), ..) => error_at(
                method.at,
                format!(
                    "{:?} is not a supported command of a node; attach agents with $ns attach-agent",
                    method.text
                ),
            ),
        }
    }

    /// Counts octets that hol stores or copies because of a command. They are limited because servers read scripts of
    /// strangers.
    pub(crate) fn charge_memory(&mut self, at: usize, octets: usize) -> Result<(), WordError> {
        self.octets = self.octets.saturating_add(octets);
        if self.octets > MAX_OCTETS {
            let problem = "commands, defaults, links and lists of this script take more than 64 MiB; use fewer or shorter ones";
            return error_at(at, problem);
        }
        Ok(())
    }

    /// Creates a simulator and returns its name.
    pub(crate) fn new_simulator(&mut self) -> String {
        self.has_simulator = true;
        self.add(Object::Simulator)
    }

    /// Returns the object that a handle names.
    pub(crate) fn object(&self, text: &str) -> Option<Object> {
        self.objects.get(handle(text)?).copied()
    }

    /// Creates a handle for a new object.
    pub(crate) fn add(&mut self, object: Object) -> String {
        self.objects.push(object);
        format!("_o{}", self.objects.len() - 1)
    }
}

fn handle(text: &str) -> Option<usize> {
    text.strip_prefix("_o")?.parse().ok()
}
