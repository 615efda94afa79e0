//! The commands of ns: those of the simulator object, and of the objects that it creates.

use std::collections::{BTreeMap, BTreeSet};

use hol_base::{Duration, nearest};
use hol_network::{LinkChange, LossSpec};

use crate::attributes;
use crate::defaults::Defaults;
use crate::draft::{Draft, Event, Line, Node, Segment, plain_name};
use crate::emulab::COMMANDS;
use crate::ignored;
use crate::loss::ErrorModel;
use crate::programs::Programs;
use crate::quantity::{bits_per_second, delay, link_delay, link_rate, rate, seconds};
use crate::queue::Queue;
use crate::random_variables::Randoms;
use crate::script::{Ignored, ReadFile};
use crate::sources::Sources;
use crate::tcl::{Host, MEASURED, Word, WordError, error_at, list_of};
use crate::traffic::Traffic;
use crate::unsupported::{self, Cause};

/// The object of a handle such as `_o3`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Object {
    Simulator,
    Node(usize),
    /// A link in the direction of its line 0 or 1, as in ns, or a link of both directions or a LAN, as in
    /// Emulab.
    Segment(usize, Option<usize>),
    /// The queue before a line of a segment.
    Queue(usize, usize),
    /// A line of a link without its queue.
    Line(usize, usize),
    Agent(usize),
    Application(usize),
    Program(usize),
    ErrorModel(usize),
    /// A random generator.
    Generator(usize),
    /// A random variable.
    Variable(usize),
    /// What only draws or records.
    Recorder,
    /// Unknown: commands for it are not understood either.
    Unknown,
}

/// The network under construction, and the objects of its handles.
pub(crate) struct Simulator<'t> {
    pub sources: Sources,
    files: ReadFile<'t>,
    objects: Vec<Object>,
    pub draft: Draft,
    pub traffic: Traffic,
    pub programs: Programs,
    pub error_models: Vec<ErrorModel>,
    pub defaults: Defaults,
    pub ignored: Vec<Ignored>,
    /// Errors so far.
    pub unknown: Vec<WordError>,
    /// What hol does not model, so that nothing of the script can be; the gravest so far.
    pub foreign: Option<Cause>,
    /// Whether the script is one of Emulab, with Emulab's defaults and hosts.
    pub is_emulab: bool,
    /// The time of the run, once it has started.
    pub now: Option<Duration>,
    /// What is due during the run, in order.
    pub(crate) due: BTreeMap<(Duration, u64), Due>,
    /// When each of the commands is due, by its number.
    due_times: BTreeMap<u64, Duration>,
    pub(crate) scheduled: u64,
    pub(crate) scheduled_bursts: u64,
    pub randoms: Randoms,
    has_simulator: bool,
    /// The files that the script has opened, which are not.
    opened: u32,
    is_running: bool,
    is_over: bool,
    /// Where commands stand that are ignored.
    ignored_at: BTreeSet<usize>,
}

/// What is due at a time of the run.
#[derive(Debug)]
pub(crate) enum Due {
    /// Commands of the script.
    Commands(Word),
    /// The last packet of a burst of an application, in its start of this number.
    Burst { application: usize, start: u32 },
}

/// Methods of the simulator, and how they are written.
const METHODS: [(&str, &str); 26] = [
    ("after", "$ns after 0.5 \"$ftp start\""),
    ("at", "$ns at 0.5 \"$ftp start\""),
    ("at-now", "$ns at-now \"$ftp start\""),
    ("attach-agent", "$ns attach-agent $node $tcp"),
    ("bandwidth", "$ns bandwidth $from $to 1Mb duplex"),
    ("cancel", "$ns cancel $event"),
    ("connect", "$ns connect $tcp $sink"),
    ("create-connection", "$ns create-connection TCP $from TCPSink $to 1"),
    ("delay", "$ns delay $from $to 20ms duplex"),
    ("detach-agent", "$ns detach-agent $node $tcp"),
    ("node", "$ns node"),
    ("duplex-link-op", "$ns duplex-link-op $from $to down"),
    ("simplex-link-op", "$ns simplex-link-op $from $to down"),
    ("duplex-link", "$ns duplex-link $from $to 0.4Mb 25ms DropTail"),
    ("simplex-link", "$ns simplex-link $from $to 0.4Mb 25ms DropTail"),
    ("make-lan", "$ns make-lan \"$server $client\" 100Mb 0ms"),
    ("newLan", "$ns newLan \"$server $client\" 10Mb 1ms LL Queue/DropTail Mac/802_3"),
    ("link", "$ns link $from $to"),
    ("link-lossmodel", "$ns link-lossmodel $em $from $to"),
    ("lossmodel", "$ns lossmodel $em $from $to"),
    ("now", "$ns now"),
    ("queue-limit", "$ns queue-limit $from $to 6"),
    ("rtmodel-at", "$ns rtmodel-at 1.0 down $from $to"),
    ("rtproto", "$ns rtproto Static"),
    ("run", "$ns run"),
    ("halt", "$ns halt"),
];

/// Methods of the simulator that only draw or record.
const RECORDING: [&str; 25] = [
    "add-agent-trace",
    "attach-fmon",
    "clearMemTrace",
    "color",
    "create-trace",
    "delete-agent-trace",
    "drop-trace",
    "eventtrace-all",
    "flush-trace",
    "gen-map",
    "get-nam-traceall",
    "get-ns-traceall",
    "makeflowmon",
    "monitor-agent-trace",
    "monitor-queue",
    "namtrace-all",
    "namtrace-queue",
    "namtrace-some",
    "puts-nam-config",
    "puts-nam-traceall",
    "puts-ns-traceall",
    "set-animation-rate",
    "trace-all",
    "trace-annotate",
    "trace-queue",
];

/// Classes whose objects only draw or record.
const RECORDERS: [&str; 8] =
    ["Trace", "BaseTrace", "QueueMonitor", "Samples", "SampleList", "Integrator", "Monitor", "Animator"];

/// Classes of LANs' layers that are not those of a wireless LAN.
const LAN_LAYERS: [&str; 8] =
    ["LL", "Queue/DropTail", "Mac", "Mac/802_3", "MAC/802_3", "Mac/Csma/Cd", "MAC/Csma/Cd", "Channel"];

/// Maximum number of errors reported together.
const MOST_UNKNOWN: usize = 50;
/// Maximum number of commands during a run; a script with more does not end.
const MOST_DUE: u64 = 200_000;
/// Maximum number of bursts of all random sources.
const MOST_BURSTS: u64 = 1_000_000;

/// The result of a command.
pub(crate) type Outcome = Result<String, WordError>;

impl Host for Simulator<'_> {
    fn command(&mut self, words: &[Word]) -> Option<Outcome> {
        if words.iter().any(|word| matches!(self.object(word), Some(Object::Unknown))) {
            return Some(Ok(self.add(Object::Unknown)));
        }
        self.look_for_causes(words);
        if self.is_hopeless() {
            return Some(Ok(String::new()));
        }
        if words[0].text == MEASURED {
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
                // What a program would print is not known.
                "exec" => MEASURED.to_owned(),
                // A script may pass the handle to its procedures.
                "open" => {
                    self.opened += 1;
                    format!("file{}", self.opened + 2)
                }
                _ => done,
            }));
        }
        if let Some(object) = self.object(&words[0]) {
            return Some(self.method(object, words));
        }
        if let Some(done) = self.random_command(words).or_else(|| self.of_class(words)) {
            return Some(done);
        }
        if let Some(done) = self.class(words) {
            return Some(done);
        }
        let (_, form) = COMMANDS.iter().find(|(name, _)| *name == words[0].text)?;
        Some(self.emulab(words, form))
    }

    /// Nodes, links and LANs are named after the first variable that holds them; `node(3)` gives `node-3`.
    fn assigned(&mut self, variable: &str, value: &str) {
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

    fn lost(&mut self, complaint: WordError) -> Outcome {
        self.unknown(complaint.at, complaint.problem)
    }

    fn owns(&self, object: &str, attribute: &str) -> bool {
        self.object_called(object).is_some_and(|object| self.has_attribute(object, attribute))
    }

    fn class_of(&self, object: &str) -> Option<String> {
        self.object_called(object).map(|object| self.class_name(object).to_owned())
    }

    fn unseeded(&mut self, at: usize) {
        let (name, line, _) = self.sources.place(at);
        let (place, command) = (format!("{name}:{line}"), "rand()".to_owned());
        let reason = "Tcl takes the seed from the clock; here it is 1, unless srand() sets one";
        self.ignored.push(Ignored { place, command, reason });
    }

    fn sets_own(&mut self, words: &[Word]) {
        if let Some(Object::Agent(_) | Object::Application(_)) = self.object(&words[0]) {
            let _ = self.ignore(words, "ns has no such attribute, so it is a variable of the script alone");
        }
    }

    fn defines(&mut self, class: &Word, method: &Word, extends: bool) {
        if let Some(cause) = unsupported::method(class, method, extends) {
            self.refuse(cause);
        }
    }

    fn has_file(&self, name: &str) -> bool {
        (self.files)(name).is_ok()
    }

    fn names(&self) -> Vec<&'static str> {
        COMMANDS.iter().map(|(name, _)| *name).chain(ignored::names()).collect()
    }

    fn file(&mut self, words: &[Word]) -> Result<Option<(String, usize)>, WordError> {
        let file = &words[1];
        let name = file.text.rsplit('/').next().unwrap_or_default();
        if name == "tb_compat.tcl" {
            self.is_emulab = true;
            self.ignore(words, "the commands of Emulab are built in")?;
            return Ok(None);
        }
        if unsupported::LIBRARY.contains(&name) {
            self.ignore(words, "it is a part of ns itself, whose commands are built in")?;
            return Ok(None);
        }
        let problem =
            |problem: &str| WordError { at: file.at, problem: format!("source {}: {problem}", file.text) };
        let text = (self.files)(&file.text).map_err(|why| problem(&why))?.replace("\r\n", "\n");
        let base = self.sources.add(&file.text, &text);
        let base = base.ok_or_else(|| problem("the files of a script exceed 4 MiB in total"))?;
        Ok(Some((text, base)))
    }

    fn is_over(&self) -> bool {
        self.is_over || self.is_hopeless() || self.is_running && self.now.is_none()
    }
}

impl<'t> Simulator<'t> {
    /// Creates a simulator without nodes.
    pub fn new(name: &str, text: &str, files: ReadFile<'t>) -> Self {
        Self {
            sources: Sources::new(name, text),
            files,
            objects: Vec::new(),
            draft: Draft::default(),
            traffic: Traffic::default(),
            programs: Programs::default(),
            error_models: Vec::new(),
            defaults: Defaults::default(),
            ignored: Vec::new(),
            unknown: Vec::new(),
            foreign: None,
            is_emulab: false,
            now: None,
            due: BTreeMap::new(),
            due_times: BTreeMap::new(),
            scheduled: 0,
            scheduled_bursts: 0,
            randoms: Randoms::default(),
            has_simulator: false,
            opened: 0,
            is_running: false,
            is_over: false,
            ignored_at: BTreeSet::new(),
        }
    }

    /// Creates ns's default random generator, and returns its name.
    pub fn random_generator(&mut self) -> (&'static str, String) {
        ("defaultRNG", self.add(Object::Generator(0)))
    }

    /// Returns the next commands of the run, and advances its time to them; `None` at the end of the run.
    pub fn next_due(&mut self) -> Option<Word> {
        // Sources alone never end a run: only commands have a time in `due_times`.
        while !self.is_over && !self.is_hopeless() && !self.due_times.is_empty() {
            let ((at, number), due) = self.due.pop_first()?;
            self.due_times.remove(&number);
            self.now = Some(at);
            let script = match due {
                Due::Commands(script) => script,
                Due::Burst { application, .. } if self.scheduled_bursts > MOST_BURSTS => {
                    let at = self.traffic.applications[application].at;
                    let problem = format!(
                        "the random sources of the script send more than {MOST_BURSTS} bursts; let them stop earlier"
                    );
                    let _ = self.unknown(at, problem);
                    return None;
                }
                Due::Burst { application, start } => {
                    self.next_burst(application, start);
                    continue;
                }
            };
            if self.scheduled <= MOST_DUE {
                return Some(script);
            }
            let problem =
                format!("the run has not ended after {MOST_DUE} commands; end it, as in $ns at 5.0 \"exit\"");
            let _ = self.unknown(script.at, problem);
            return None;
        }
        None
    }

    /// Returns whether the script is refused, whatever else it says.
    fn is_hopeless(&self) -> bool {
        self.foreign.as_ref().is_some_and(Cause::is_final)
    }

    /// Notes what hol does not model; the gravest cause is reported.
    pub(crate) fn refuse(&mut self, cause: Cause) {
        if self.foreign.as_ref().is_none_or(|known| cause.is_graver_than(known)) {
            self.foreign = Some(cause);
        }
    }

    /// Notes what a command says that hol does not model.
    fn look_for_causes(&mut self, words: &[Word]) {
        let told = match words[0].text.as_str() {
            "new" => words,
            _ => &words[..words.len().min(2)],
        };
        if let Some(cause) = unsupported::of_command(words) {
            self.refuse(cause);
        }
        for cause in told.iter().filter_map(|word| Cause::of_word(&word.text, word.at)) {
            self.refuse(cause);
        }
    }

    /// Returns why a script is refused: what its commands say, or, if it is refused anyway, what stands in
    /// those that were not reached.
    pub fn cause(&self, is_refused: bool) -> Option<WordError> {
        let unreached =
            self.sources.words().filter(|_| is_refused).filter_map(|(word, at)| Cause::of_word(word, at));
        let all = unreached.filter(Cause::is_final).fold(self.foreign.clone(), |best, cause| match best {
            Some(best) if !cause.is_graver_than(&best) => Some(best),
            _ => Some(cause),
        });
        all.map(Cause::into_error)
    }

    /// Returns whether no command of the script creates a simulator, reached or not.
    pub fn is_fragment(&self) -> bool {
        !self.has_simulator && !self.sources.words().any(|(word, _)| word == "Simulator")
    }

    /// Returns whether the time of the run is not zero any more.
    pub(crate) fn has_begun(&self) -> bool {
        self.now.is_some_and(|now| now > Duration::ZERO)
    }

    /// The script ends itself: during the run, all traffic ends with it.
    fn exit(&mut self, at: usize) -> Outcome {
        let Some(now) = self.now else {
            return error_at(
                at,
                "the script ends before its run; if it needs arguments, write their values into the script",
            );
        };
        self.is_over = true;
        self.traffic.end = Some(now);
        Ok(String::new())
    }

    /// Changes one or all directions of a segment, now or at this time of the run.
    pub(crate) fn change(&mut self, segment: usize, line: Option<usize>, change: LinkChange) {
        let now = self.now.unwrap_or_default();
        let is_event = now > Duration::ZERO || matches!(change, LinkChange::Up | LinkChange::Down);
        if is_event {
            self.draft.events.push(Event { at: now, segment, line, change });
            return;
        }
        let lines = self.draft.segments[segment].lines.iter_mut().enumerate();
        for (_, own) in lines.filter(|(index, _)| line.is_none_or(|line| line == *index)) {
            match change.clone() {
                LinkChange::Rate(rate) => own.rate = rate,
                LinkChange::Delay(delay) => own.delay = delay,
                LinkChange::Loss(loss) => own.loss = loss,
                LinkChange::Up | LinkChange::Down => unreachable!("they are events"),
            }
        }
    }

    /// Runs a command of an object: of the simulator, or of something that it created.
    fn method(&mut self, object: Object, words: &[Word]) -> Outcome {
        let Some(method) = words.get(1) else {
            return error_at(words[0].at, "the command of an object is missing, as in $ns node");
        };
        match (object, method.text.as_str(), &words[2..]) {
            (Object::Simulator, ..) => self.simulate(method, words),
            (Object::Agent(agent), ..) => self.agent(agent, method, words),
            (Object::Application(application), ..) => self.application(application, method, words),
            (Object::Program(program), ..) => self.program(program, method, words),
            (Object::ErrorModel(model), ..) => self.ask_error_model(model, method, words),
            (Object::Generator(generator), ..) => self.ask_generator(generator, method, words),
            (Object::Variable(variable), ..) => self.ask_variable(variable, method, words),
            (Object::Recorder, name, _) => {
                self.ignore(words, "it only draws or records")?;
                let is_part =
                    name.starts_with("get-") && (name.ends_with("integrator") || name.ends_with("samples"));
                Ok(if is_part { self.add(Object::Recorder) } else { MEASURED.to_owned() })
            }
            (Object::Unknown, ..) => unreachable!("what is not understood is not asked"),
            (Object::Segment(segment, line), ..) => {
                self.ask_segment(segment, line, method, words, &words[2..])
            }
            (Object::Line(segment, line), "set", [attribute, value @ ..]) => {
                self.set_line(segment, line, attribute, value)
            }
            (Object::Queue(segment, line), "set", [attribute, value]) => {
                self.set_queue(segment, line, attribute, value)
            }
            (Object::Queue(..), "set", [_]) => Ok(MEASURED.to_owned()),
            (Object::Queue(..), "trace" | "attach", _) => self.ignore(words, "it only draws or records"),
            (Object::Queue(..) | Object::Line(..), ..) => {
                error_at(method.at, "a queue supports only attributes, as in $queue set limit_ 6")
            }
            (Object::Node(node), "program-agent", _) => self.program_agent(method.at, Some(node), words),
            (Object::Node(node), "id" | "node-addr", []) => Ok(node.to_string()),
            (Object::Node(node), "set", [attribute]) => Ok(attributes::of_node(node, &attribute.text)),
            (Object::Node(_), "set", [attribute, _]) => self.set_node(attribute, words),
            (
                Object::Node(_),
                "color" | "shape" | "label" | "label-color" | "label-at" | "dlabel-color" | "add-mark"
                | "delete-mark" | "add-desire" | "dump-namconfig",
                _,
            ) => self.ignore(words, "it concerns drawings and machines"),
            (Object::Node(_), ..) => error_at(
                method.at,
                format!(
                    "{:?} is not a supported command of a node; define traffic in the experiment file",
                    method.text
                ),
            ),
        }
    }

    fn simulate(&mut self, method: &Word, words: &[Word]) -> Outcome {
        match (method.text.as_str(), &words[2..]) {
            ("node", [] | [_]) => {
                self.draft.nodes.push(Node { name: None, at: method.at });
                Ok(self.add(Object::Node(self.draft.nodes.len() - 1)))
            }
            ("duplex-link" | "duplex-link-of-interfaces", [from, to, speed, time, discipline]) => {
                let (members, line) = self.line_between([from, to], speed, time, discipline)?;
                self.draft.note_second_link(method.at, &members);
                Ok(self.add_segment(members, vec![line.clone(), line]))
            }
            ("simplex-link", [from, to, speed, time, discipline]) => {
                let (members, line) = self.line_between([from, to], speed, time, discipline)?;
                self.simplex(members, line, method.at)
            }
            ("make-lan", [members, speed, time, layers @ ..]) => {
                if !layers.is_empty() {
                    self.ignore(words, "LANs of hol have no layers; use only the first three arguments")?;
                }
                self.lan(members, speed, time)
            }
            ("newLan", [members, speed, time, layers @ ..]) => {
                let address =
                    layers.windows(2).find(|pair| pair[0].text == "-address").map(|pair| pair[1].at);
                let strange = layers.iter().filter(|word| {
                    !word.text.is_empty() && !word.text.starts_with('-') && Some(word.at) != address
                });
                if let Some(layer) = strange.clone().find(|word| !LAN_LAYERS.contains(&word.text.as_str())) {
                    let problem = format!("a LAN has a DropTail queue; {:?} is not supported", layer.text);
                    return self.unknown(layer.at, problem);
                }
                self.ignore(words, "a LAN sends one packet at a time, in turns and without collisions")?;
                self.lan(members, speed, time)
            }
            ("link", [from, to]) => {
                let (segment, line) = self.between(from, to)?;
                Ok(self.add(Object::Segment(segment, Some(line))))
            }
            // ns-lib.tcl: a method of the link, of both directions or of one.
            ("duplex-link-op", [from, to, operation, ..]) => {
                let (segment, _) = self.between(from, to)?;
                self.ask_segment(segment, None, operation, words, &words[5..])
            }
            ("simplex-link-op", [from, to, operation, ..]) => {
                let (segment, line) = self.between(from, to)?;
                self.ask_segment(segment, Some(line), operation, words, &words[5..])
            }
            ("queue-limit", [from, to, limit]) => {
                let (segment, line) = self.between(from, to)?;
                let word = Word { text: "limit_".to_owned(), ..method.clone() };
                self.set_queue(segment, line, &word, limit)
            }
            ("bandwidth" | "delay", [from, to, value, scope @ ..]) => {
                let (segment, line) = self.between(from, to)?;
                let is_duplex = scope.first().is_some_and(|scope| scope.text == "duplex");
                let change = if method.text == "delay" {
                    LinkChange::Delay(link_delay(value, self.is_emulab)?)
                } else {
                    LinkChange::Rate(link_rate(value, self.is_emulab)?)
                };
                self.change(segment, Some(line).filter(|_| !is_duplex), change);
                Ok(String::new())
            }
            ("lossmodel" | "link-lossmodel", [model, from, to]) => self.lossmodel(model, from, to),
            ("rtmodel-at", [time, verb, nodes @ ..]) => self.schedule_outage(time, verb, nodes),
            ("rtproto", [kind, ..]) if kind.text == "Static" => Ok(String::new()),
            // Without outages its routes are those with the fewest hops, too.
            ("rtproto", [kind]) if kind.text == "Session" => {
                self.draft.finds_new_routes = Some(kind.at);
                Ok(String::new())
            }
            ("rtproto", [kind, ..]) => error_at(kind.at, "only static routes are supported; use Static"),
            ("attach-agent", [node, agent]) => self.attach(node, agent),
            ("detach-agent", [node, agent]) => self.detach(node, agent),
            ("connect", [one, other]) => self.connect(one, other),
            ("create-connection", [kind, from, sink, to, _]) => {
                self.create_connection([kind, from, sink, to])
            }
            ("after", [time, script]) => {
                let at = self.now.unwrap_or_default() + seconds(time)?;
                Ok(self.schedule_at(at, script))
            }
            ("at-now", [script]) => Ok(self.schedule_at(self.now.unwrap_or_default(), script)),
            ("cancel", [event]) => {
                let number = event.text.parse::<u64>().unwrap_or_default();
                if let Some(at) = self.due_times.remove(&number) {
                    self.due.remove(&(at, number));
                }
                Ok(String::new())
            }
            ("set", [attribute]) => self.simulator_attribute(attribute),
            ("set", [attribute, _]) => {
                let problem = format!(
                    "{:?} is a variable of ns itself, which a script cannot set here",
                    attribute.text
                );
                self.unknown(attribute.at, problem)
            }
            ("now", []) => Ok(self.now.unwrap_or_default().as_secs_f64().to_string()),
            ("at", [time, script]) => self.schedule(time, script),
            ("run", []) => {
                self.is_running = true;
                // `Simulator run` resets all nodes, and their agents draw once more.
                let agents = self.traffic.agents.iter();
                for _ in 0..agents.filter(|agent| agent.node.is_some() && agent.draws() > 0).count() {
                    self.randoms.generators[0].uniform();
                }
                Ok(String::new())
            }
            ("halt" | "stop" | "terminate" | "swapout", []) => self.exit(method.at),
            ("use-scheduler", _) => self.ignore(words, "how events are stored does not change results"),
            ("set-address-format", _) => self.ignore(words, "addresses are chosen here"),
            // With a point, as `scan %f` gives them.
            ("delay_parse", [time]) => Ok(format!("{:?}", seconds(time)?.as_secs_f64())),
            ("bw_parse", [speed]) => Ok(format!("{:?}", bits_per_second(speed)?)),
            (name, _) if RECORDING.contains(&name) => {
                self.ignore(words, "it only draws or records")?;
                Ok(self.add(Object::Recorder))
            }
            _ => {
                let problem = unknown(method);
                self.unknown(method.at, problem)
            }
        }
    }

    /// `$ns at 0.5 "$ftp start"`: whatever the words say is run at that time of the run.
    fn schedule(&mut self, time: &Word, script: &Word) -> Outcome {
        let (at, now) = (seconds(time)?, self.now.unwrap_or_default());
        if at < now {
            return error_at(time.at, format!("{at} is in the past: the time of the run is {now}"));
        }
        Ok(self.schedule_at(at, script))
    }

    fn schedule_at(&mut self, at: Duration, script: &Word) -> String {
        self.scheduled += 1;
        self.due.insert((at, self.scheduled), Due::Commands(script.clone()));
        self.due_times.insert(self.scheduled, at);
        self.scheduled.to_string()
    }

    /// `$ns rtmodel-at 1.0 down $from $to`; with one node, all its links.
    fn schedule_outage(&mut self, time: &Word, verb: &Word, nodes: &[Word]) -> Outcome {
        let at = seconds(time)?;
        let change = match verb.text.as_str() {
            "down" => LinkChange::Down,
            "up" => LinkChange::Up,
            _ => return error_at(verb.at, "a link can only go up or down"),
        };
        let segments = match nodes {
            [from, to] => vec![self.between(from, to)?.0],
            [node] => {
                let node = self.node(node)?;
                let segments = self.draft.segments.iter().enumerate();
                segments.filter(|(_, own)| own.members.contains(&node)).map(|(index, _)| index).collect()
            }
            _ => return error_at(verb.at, "the syntax is $ns rtmodel-at 1.0 down $from $to"),
        };
        for segment in segments {
            self.draft.events.push(Event { at, segment, line: None, change: change.clone() });
        }
        Ok(String::new())
    }

    fn line_between(
        &mut self,
        [from, to]: [&Word; 2],
        speed: &Word,
        time: &Word,
        discipline: &Word,
    ) -> Result<(Vec<usize>, Line), WordError> {
        let members = vec![self.node(from)?, self.node(to)?];
        if members[0] == members[1] {
            return error_at(to.at, "both ends are the same node; a link needs two");
        }
        if let Some(cause) = Cause::of_word(&discipline.text, discipline.at) {
            self.refuse(cause);
        }
        let mut queue = Queue::of(discipline)?;
        for (attribute, value) in self.defaults.of(&format!("Queue/{}", discipline.text)) {
            queue.set(&Word { text: attribute, ..value.clone() }, &value, self.is_emulab)?;
        }
        let (rate, delay) = (link_rate(speed, self.is_emulab)?, link_delay(time, self.is_emulab)?);
        Ok((members, Line { rate, delay, loss: LossSpec::default(), queue }))
    }

    /// One direction of a link, whose other one stands elsewhere.
    fn simplex(&mut self, members: Vec<usize>, line: Line, at: usize) -> Outcome {
        let is_other =
            |own: &&mut Segment| own.missing.is_some() && own.members[..] == [members[1], members[0]];
        if let Some(segment) = self.draft.segments.iter_mut().find(is_other) {
            segment.missing = None;
            segment.lines[1] = line;
            return Ok(String::new());
        }
        self.draft.note_second_link(at, &members);
        let object = self.add_segment(members, vec![line.clone(), line]);
        self.draft.segments.last_mut().expect("it was added").missing = Some(at);
        Ok(object)
    }

    fn lan(&mut self, list: &Word, speed: &Word, time: &Word) -> Outcome {
        let mut members = Vec::new();
        for text in list_of(list)? {
            let node = self.node(&Word { text, ..list.clone() })?;
            if members.contains(&node) {
                return error_at(list.at, "a node occurs twice in this LAN; remove one");
            }
            members.push(node);
        }
        if !(2..=250).contains(&members.len()) {
            return error_at(list.at, format!("this LAN has {} nodes; it needs 2 to 250", members.len()));
        }
        let (rate, delay) = (link_rate(speed, self.is_emulab)?, link_delay(time, self.is_emulab)?);
        let line = Line { rate, delay, loss: LossSpec::default(), queue: Queue::default() };
        Ok(self.add_segment(members, vec![line]))
    }

    fn add_segment(&mut self, members: Vec<usize>, lines: Vec<Line>) -> String {
        let addresses = vec![None; members.len()];
        self.draft.segments.push(Segment { name: None, members, addresses, lines, missing: None });
        self.add(Object::Segment(self.draft.segments.len() - 1, None))
    }

    /// A command of a link or LAN: Emulab's events, and ns's parts of a link.
    ///
    /// It concerns one direction of a link, or both if `line` is none.
    fn ask_segment(
        &mut self,
        segment: usize,
        line: Option<usize>,
        method: &Word,
        words: &[Word],
        arguments: &[Word],
    ) -> Outcome {
        let is_link = self.draft.segments[segment].is_link();
        let first = line.unwrap_or_default();
        match (method.text.as_str(), arguments) {
            ("queue", []) => return Ok(self.add(Object::Queue(segment, first))),
            ("link", []) if is_link => return Ok(self.add(Object::Line(segment, first))),
            ("up", []) => self.change(segment, line, LinkChange::Up),
            ("down", []) => self.change(segment, line, LinkChange::Down),
            ("modify", settings @ [_, ..]) => {
                for word in settings {
                    for setting in list_of(word)? {
                        let change = modification(&Word { text: setting, ..word.clone() })?;
                        self.change(segment, None, change);
                    }
                }
            }
            ("bandwidth", [value, ..]) => {
                self.change(segment, None, LinkChange::Rate(link_rate(value, self.is_emulab)?));
            }
            ("delay", [value, ..]) => {
                self.change(segment, None, LinkChange::Delay(link_delay(value, self.is_emulab)?));
            }
            ("plr", [value, ..]) => {
                self.change(
                    segment,
                    None,
                    LinkChange::Loss(LossSpec::Independent(crate::quantity::loss(value)?)),
                );
            }
            ("set", [attribute]) if is_link => {
                let object = match attribute.text.as_str() {
                    "queue_" => Object::Queue(segment, first),
                    "link_" => Object::Line(segment, first),
                    _ => return Ok(MEASURED.to_owned()),
                };
                return Ok(self.add(object));
            }
            ("cost", [one]) if one.text == "1" => {}
            ("cost", _) => {
                let problem = "costs of links are not modelled: routes are those with the fewest hops";
                self.draft.needs_one_route(method.at, problem);
            }
            ("errormodule", [model]) if is_link => {
                let Some(line) = line else {
                    let problem =
                        "an error model is for one direction of a link; use $ns lossmodel $em $from $to";
                    return error_at(method.at, problem);
                };
                return self.add_loss(model, (segment, line));
            }
            ("dynamic", []) => {}
            (name, _)
                if name.starts_with("trace")
                    || name.contains("nam")
                    || matches!(
                        name,
                        "orient"
                            | "color"
                            | "label"
                            | "label-color"
                            | "label-at"
                            | "queuePos"
                            | "init-monitor"
                            | "start-tracing"
                            | "queue-sample-timeout"
                    ) =>
            {
                return self.ignore(words, "it only draws or records");
            }
            _ => {
                let problem = format!(
                    "{:?} is not a supported command of a link; use queue, up, down, modify, bandwidth, delay or plr",
                    method.text
                );
                return error_at(method.at, problem);
            }
        }
        Ok(String::new())
    }

    fn set_line(&mut self, segment: usize, line: usize, attribute: &Word, value: &[Word]) -> Outcome {
        let own = &self.draft.segments[segment].lines[line];
        match (attribute.text.as_str(), value) {
            ("bandwidth_", []) => Ok(own.rate.bits_per_second().to_string()),
            ("delay_", []) => Ok(own.delay.as_secs_f64().to_string()),
            ("bandwidth_", [value]) => {
                self.change(segment, Some(line), LinkChange::Rate(link_rate(value, self.is_emulab)?));
                Ok(value.text.clone())
            }
            ("delay_", [value]) => {
                self.change(segment, Some(line), LinkChange::Delay(seconds(value)?));
                Ok(value.text.clone())
            }
            _ => error_at(attribute.at, "only bandwidth_ and delay_ of a link are supported"),
        }
    }

    fn set_queue(&mut self, segment: usize, line: usize, attribute: &Word, value: &Word) -> Outcome {
        if self.has_begun() {
            let problem = format!(
                "{:?} of a queue cannot change during a run here; set it before $ns run",
                attribute.text
            );
            return self.unknown(attribute.at, problem);
        }
        self.draft.segments[segment].lines[line].queue.set(attribute, value, self.is_emulab)?;
        Ok(value.text.clone())
    }

    /// Creates an object of another class, which only records; `None` for an unsupported class.
    pub(crate) fn make_other(&mut self, class: &Word) -> Option<String> {
        let top = class.text.split('/').next().unwrap_or_default();
        RECORDERS.contains(&top).then(|| self.add(Object::Recorder))
    }

    /// Creates a simulator.
    pub(crate) fn make_simulator(&mut self) -> String {
        self.has_simulator = true;
        self.add(Object::Simulator)
    }

    /// Returns the last link from one node to another, and which of its directions leads there.
    pub(crate) fn between(&self, from: &Word, to: &Word) -> Result<(usize, usize), WordError> {
        let ends = [self.node(from)?, self.node(to)?];
        for (index, segment) in self.draft.segments.iter().enumerate().rev().filter(|(_, s)| s.is_link()) {
            match segment.members[..] {
                [first, second] if [first, second] == ends => return Ok((index, 0)),
                [first, second] if [second, first] == ends => return Ok((index, 1)),
                _ => {}
            }
        }
        error_at(from.at, "no link between these two nodes; create one first with $ns duplex-link")
    }

    /// Returns the member of a segment.
    pub(crate) fn member(&self, segment: usize, node: &Word) -> Result<usize, WordError> {
        let wanted = self.node(node)?;
        let place = self.draft.segments[segment].members.iter().position(|member| *member == wanted);
        place.ok_or_else(|| WordError {
            at: node.at,
            problem: "this node is not on that link or LAN".to_owned(),
        })
    }

    /// Returns the node of a handle.
    pub(crate) fn node(&self, word: &Word) -> Result<usize, WordError> {
        match self.object(word) {
            Some(Object::Node(node)) => Ok(node),
            Some(_) => error_at(word.at, "this is not a node; a node is needed here"),
            None => error_at(
                word.at,
                format!("{:?} is not a node; create one with set server [$ns node]", word.text),
            ),
        }
    }

    /// Returns the link or LAN of a handle.
    pub(crate) fn segment(&self, word: &Word, link: bool) -> Result<usize, WordError> {
        match self.object(word) {
            Some(Object::Segment(segment, _)) if self.draft.segments[segment].is_link() == link => {
                Ok(segment)
            }
            _ if link => error_at(word.at, "this is not a link; set one with set link0 [$ns duplex-link …]"),
            _ => error_at(word.at, "this is not a LAN; set one with set lan0 [$ns make-lan …]"),
        }
    }

    fn object(&self, word: &Word) -> Option<Object> {
        self.object_called(&word.text)
    }

    /// Returns the object of a handle.
    pub(crate) fn object_called(&self, text: &str) -> Option<Object> {
        self.objects.get(handle(text)?).copied()
    }

    /// Notes an error and continues, so that all errors are reported together.
    pub(crate) fn unknown(&mut self, at: usize, problem: String) -> Outcome {
        if self.unknown.len() >= MOST_UNKNOWN {
            return error_at(at, problem);
        }
        let complaint = WordError { at, problem };
        if !self.unknown.contains(&complaint) {
            self.unknown.push(complaint);
        }
        Ok(self.add(Object::Unknown))
    }

    /// Creates a handle for a new object.
    pub(crate) fn add(&mut self, object: Object) -> String {
        self.objects.push(object);
        format!("_o{}", self.objects.len() - 1)
    }

    /// Returns the text of a command, if it is on one line, or its beginning.
    fn text_of(&self, words: &[Word]) -> &str {
        let (first, last) = (words[0].at, words[words.len() - 1].at);
        let text = self.sources.text_from(last);
        let end = match text.chars().next() {
            Some('"') => text[1..].find('"').map(|end| end + 2),
            Some('{') => text.find('}').map(|end| end + 1),
            _ => text.find(|c: char| c.is_whitespace() || ";}]".contains(c)),
        };
        let whole = self.sources.text_from(first);
        let line = whole.find('\n').unwrap_or(whole.len());
        let end = end.map_or(line, |end| (last + end).saturating_sub(first)).min(line);
        whole.get(..end).unwrap_or_default()
    }

    /// Lists a command as ignored.
    pub(crate) fn ignore(&mut self, words: &[Word], reason: &'static str) -> Outcome {
        // A loop may come here several times.
        if !self.ignored_at.insert(words[0].at) {
            return Ok(String::new());
        }
        let (name, line, _) = self.sources.place(words[0].at);
        let command = self.text_of(words).to_owned();
        let ignored = Ignored { place: format!("{name}:{line}"), command, reason };
        if !self.ignored.contains(&ignored) {
            self.ignored.push(ignored);
        }
        Ok(String::new())
    }
}

/// Describes what is wrong with a method call of the simulator.
fn unknown(method: &Word) -> String {
    let name = method.text.as_str();
    if let Some((_, form)) = METHODS.iter().find(|(known, _)| *known == name) {
        return format!("the syntax is {form}");
    }
    let cure = match nearest(name, METHODS.map(|(known, _)| known)) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "define traffic other than FTP and CBR in the experiment file".to_owned(),
    };
    format!("unknown command \"{name}\"; {cure}")
}

/// One of Emulab's `modify BANDWIDTH=500 DELAY=20 PLR=0.1`: kbit/s, milliseconds, a share.
fn modification(setting: &Word) -> Result<LinkChange, WordError> {
    let (name, value) = setting.text.split_once('=').unwrap_or((&setting.text, ""));
    let word = |text: String| Word { text, ..setting.clone() };
    let with_unit = |unit: &str| {
        let is_bare = value.parse::<f64>().is_ok();
        word(if is_bare { format!("{value}{unit}") } else { value.to_owned() })
    };
    Ok(match name.to_ascii_uppercase().as_str() {
        "BANDWIDTH" => LinkChange::Rate(rate(&with_unit("kb"))?),
        "DELAY" => LinkChange::Delay(delay(&with_unit("ms"))?),
        "PLR" => LinkChange::Loss(LossSpec::Independent(crate::quantity::loss(&word(value.to_owned()))?)),
        _ => {
            return error_at(
                setting.at,
                format!("{name:?} of a link cannot change; only BANDWIDTH, DELAY and PLR can"),
            );
        }
    })
}

fn handle(text: &str) -> Option<usize> {
    text.strip_prefix("_o")?.parse().ok()
}
