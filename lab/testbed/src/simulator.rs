//! The commands of ns: those of the simulator object, and of what it makes.

use std::collections::BTreeSet;

use hol_base::{Ratio, nearest};

use crate::draft::{Draft, Line, Node, Queue, Segment, plain_name};
use crate::emulab::COMMANDS;
use crate::ignored;
use crate::programs::Programs;
use crate::quantity::{at_least_one, delay, positive, rate, switch};
use crate::script::{Ignored, place};
use crate::tcl::{Complaint, Host, Word, complain, elements};
use crate::traffic::Traffic;

/// What a handle such as `_o3` stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Object {
    Simulator,
    Node(usize),
    /// A link in the direction of its line 0 or 1, or a LAN.
    Segment(usize, usize),
    /// The queue before a line of a segment.
    Queue(usize, usize),
    Agent(usize),
    Application(usize),
    Program(usize),
    /// Unknown: commands for it are not understood either.
    Unknown,
}

/// The network under construction, and the objects of its handles.
#[derive(Debug)]
pub(crate) struct Simulator<'t> {
    /// The script's, for messages.
    name: &'t str,
    text: &'t str,
    objects: Vec<Object>,
    pub draft: Draft,
    pub traffic: Traffic,
    pub programs: Programs,
    pub ignored: Vec<Ignored>,
    /// Errors so far.
    pub unknown: Vec<Complaint>,
    /// Where commands stand that are ignored.
    ignored_at: BTreeSet<usize>,
}

/// Methods of the simulator, and how they are written.
const METHODS: [(&str, &str); 10] = [
    ("at", "$ns at 0.5 \"$ftp start\""),
    ("attach-agent", "$ns attach-agent $node $tcp"),
    ("connect", "$ns connect $tcp $sink"),
    ("node", "$ns node"),
    ("duplex-link", "$ns duplex-link $from $to 0.4Mb 25ms DropTail"),
    ("make-lan", "$ns make-lan \"$server $client\" 100Mb 0ms"),
    ("link", "$ns link $from $to"),
    ("queue-limit", "$ns queue-limit $from $to 6"),
    ("rtproto", "$ns rtproto Static"),
    ("run", "$ns run"),
];

/// Methods of the simulator that only draw or record.
const RECORDING: [&str; 5] = ["color", "duplex-link-op", "flush-trace", "namtrace-all", "trace-all"];

/// Maximum number of errors reported together.
const MOST_UNKNOWN: usize = 50;

/// Attributes of a queue that have no meaning here.
const QUEUE_DETAILS: [&str; 4] = ["bytes_", "drop-tail_", "setbit_", "wait_"];

/// The result of a command.
pub(crate) type Outcome = Result<String, Complaint>;

impl Host for Simulator<'_> {
    fn command(&mut self, words: &[Word]) -> Option<Outcome> {
        if words.iter().any(|word| matches!(self.object(word), Some(Object::Unknown))) {
            return Some(Ok(self.add(Object::Unknown)));
        }
        if let Some(reason) = ignored::reason(&words[0].text) {
            return Some(self.ignore(words, reason));
        }
        if let Some(object) = self.object(&words[0]) {
            return Some(self.method(object, words));
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
            Object::Simulator
            | Object::Queue(..)
            | Object::Agent(_)
            | Object::Application(_)
            | Object::Program(_)
            | Object::Unknown => return,
        };
        let own = plain_name(variable.trim_start_matches("::").trim_end_matches(')'));
        if name.is_none() && !own.is_empty() {
            *name = Some(own);
        }
    }

    fn lost(&mut self, complaint: Complaint) -> Outcome {
        self.unknown(complaint.at, complaint.problem)
    }

    fn names(&self) -> Vec<&'static str> {
        COMMANDS.iter().map(|(name, _)| *name).chain(ignored::names()).collect()
    }
}

impl<'t> Simulator<'t> {
    pub fn new(name: &'t str, text: &'t str) -> Self {
        Self {
            name,
            text,
            objects: Vec::new(),
            draft: Draft::default(),
            traffic: Traffic::default(),
            programs: Programs::default(),
            ignored: Vec::new(),
            unknown: Vec::new(),
            ignored_at: BTreeSet::new(),
        }
    }

    /// Runs a command of an object: of the simulator, or of something that it created.
    fn method(&mut self, object: Object, words: &[Word]) -> Outcome {
        let Some(method) = words.get(1) else {
            return complain(words[0].at, "an object stands here without a command, as in $ns node");
        };
        match (object, method.text.as_str(), &words[2..]) {
            (Object::Simulator, ..) => self.simulate(method, words),
            (Object::Agent(agent), ..) => self.agent(agent, method, words),
            (Object::Application(application), ..) => self.application(application, method, words),
            (Object::Program(program), ..) => self.program(program, method, words),
            (Object::Unknown, ..) => unreachable!("what is not understood is not asked"),
            (Object::Segment(segment, line), "queue", []) => Ok(self.add(Object::Queue(segment, line))),
            (Object::Queue(segment, line), "set", [attribute, value]) => {
                self.set_queue(segment, line, attribute, value, words)
            }
            (Object::Queue(..), ..) => {
                complain(method.at, "a queue takes only $queue set limit_ 6 and its like")
            }
            (Object::Segment(..), ..) => complain(
                method.at,
                format!("{:?} is no command of a link; it has [$link queue]", method.text),
            ),
            (Object::Node(node), "program-agent", _) => self.program_agent(method.at, Some(node), words),
            (Object::Node(_), "set" | "color" | "shape" | "label" | "add-desire", _) => {
                self.ignore(words, "it is about pictures and machines")
            }
            (Object::Node(_), ..) => complain(
                method.at,
                format!(
                    "{:?} is no command of a node here; traffic belongs into the experiment file",
                    method.text
                ),
            ),
        }
    }

    fn simulate(&mut self, method: &Word, words: &[Word]) -> Outcome {
        match (method.text.as_str(), &words[2..]) {
            ("node", []) => {
                self.draft.nodes.push(Node { name: None, at: method.at });
                Ok(self.add(Object::Node(self.draft.nodes.len() - 1)))
            }
            ("duplex-link", [from, to, speed, time, discipline]) => {
                self.link(from, to, speed, time, discipline)
            }
            ("make-lan", [members, speed, time, layers @ ..]) => {
                if !layers.is_empty() {
                    self.ignore(words, "LANs here have no layers; the first three words say all")?;
                }
                self.lan(members, speed, time)
            }
            ("link", [from, to]) => {
                let (segment, line) = self.between(from, to)?;
                Ok(self.add(Object::Segment(segment, line)))
            }
            ("queue-limit", [from, to, limit]) => {
                let (segment, line) = self.between(from, to)?;
                self.draft.segments[segment].lines[line].queue.limit = positive(limit)?;
                Ok(String::new())
            }
            ("rtproto", [kind]) if kind.text == "Static" => Ok(String::new()),
            ("rtproto", [kind, ..]) => complain(kind.at, "routes are static here; write Static"),
            ("attach-agent", [node, agent]) => self.attach(node, agent),
            ("connect", [one, other]) => self.connect(one, other),
            ("at", [time, script]) => self.schedule(time, script, words),
            ("run", []) => Ok(String::new()),
            (name, _) if RECORDING.contains(&name) => self.ignore(words, "it only draws or records"),
            _ => {
                let problem = unknown(method);
                self.unknown(method.at, problem)
            }
        }
    }

    fn link(&mut self, from: &Word, to: &Word, speed: &Word, time: &Word, discipline: &Word) -> Outcome {
        let members = vec![self.node(from)?, self.node(to)?];
        if members[0] == members[1] {
            return complain(to.at, "this is the node at the other end as well; a link needs two");
        }
        let (red, gentle) = match discipline.text.as_str() {
            "DropTail" => (false, false),
            "RED" => (true, false),
            "GRED" => (true, true),
            other => {
                return complain(
                    discipline.at,
                    format!("{other:?} is no queue here; take DropTail, RED or GRED"),
                );
            }
        };
        let queue = Queue { red, gentle, ..Queue::default() };
        let line = Line { rate: rate(speed)?, delay: delay(time)?, loss: Ratio::ZERO, queue };
        Ok(self.add_segment(members, vec![line.clone(), line]))
    }

    fn lan(&mut self, list: &Word, speed: &Word, time: &Word) -> Outcome {
        let mut members = Vec::new();
        for text in elements(&list.text).map_err(|problem| Complaint { at: list.at, problem })? {
            let node = self.node(&Word { text, ..list.clone() })?;
            if members.contains(&node) {
                return complain(list.at, "a node stands twice in this LAN; leave one out");
            }
            members.push(node);
        }
        if !(2..=250).contains(&members.len()) {
            return complain(list.at, format!("this LAN has {} nodes; it needs 2 to 250", members.len()));
        }
        let (rate, delay) = (rate(speed)?, delay(time)?);
        let line = Line { rate, delay, loss: Ratio::ZERO, queue: Queue::default() };
        Ok(self.add_segment(members, vec![line]))
    }

    fn add_segment(&mut self, members: Vec<usize>, lines: Vec<Line>) -> String {
        let addresses = vec![None; members.len()];
        self.draft.segments.push(Segment { name: None, members, addresses, lines });
        self.add(Object::Segment(self.draft.segments.len() - 1, 0))
    }

    fn set_queue(
        &mut self,
        segment: usize,
        line: usize,
        attribute: &Word,
        value: &Word,
        words: &[Word],
    ) -> Outcome {
        let queue = &mut self.draft.segments[segment].lines[line].queue;
        match attribute.text.as_str() {
            "limit_" => queue.limit = positive(value)?,
            "queue-in-bytes_" => queue.in_bytes = switch(value)?,
            "red_" => queue.red = switch(value)?,
            "gentle_" => queue.gentle = switch(value)?,
            "thresh_" => queue.min = positive(value)?,
            "maxthresh_" => queue.max = positive(value)?,
            "q_weight_" => queue.weight = positive(value)?,
            "linterm_" => queue.linterm = at_least_one(value)?,
            "mean_pktsize_" => queue.packet = positive(value)?,
            name if QUEUE_DETAILS.contains(&name) => {
                return self.ignore(words, "queues here have no such detail");
            }
            name => {
                return complain(attribute.at, format!("{name:?} is no attribute of a queue; limit_ is one"));
            }
        }
        Ok(value.text.clone())
    }

    /// Returns the link from one node to another made last, and which of its lines leads there.
    pub(crate) fn between(&self, from: &Word, to: &Word) -> Result<(usize, usize), Complaint> {
        let ends = [self.node(from)?, self.node(to)?];
        for (index, segment) in self.draft.segments.iter().enumerate().rev().filter(|(_, s)| s.is_link()) {
            match segment.members[..] {
                [first, second] if [first, second] == ends => return Ok((index, 0)),
                [first, second] if [second, first] == ends => return Ok((index, 1)),
                _ => {}
            }
        }
        complain(from.at, "there is no link between these two nodes; make it first with $ns duplex-link")
    }

    pub(crate) fn member(&self, segment: usize, node: &Word) -> Result<usize, Complaint> {
        let wanted = self.node(node)?;
        let place = self.draft.segments[segment].members.iter().position(|member| *member == wanted);
        place.ok_or_else(|| Complaint {
            at: node.at,
            problem: "this node is not on that link or LAN".to_owned(),
        })
    }

    pub(crate) fn node(&self, word: &Word) -> Result<usize, Complaint> {
        match self.object(word) {
            Some(Object::Node(node)) => Ok(node),
            Some(_) => complain(word.at, "this is not a node; name one here"),
            None => complain(
                word.at,
                format!("{:?} is not a node; make one with set server [$ns node]", word.text),
            ),
        }
    }

    /// A link, or a LAN.
    pub(crate) fn segment(&self, word: &Word, link: bool) -> Result<usize, Complaint> {
        match self.object(word) {
            Some(Object::Segment(segment, _)) if self.draft.segments[segment].is_link() == link => {
                Ok(segment)
            }
            _ if link => complain(word.at, "this is not a link; set one with set link0 [$ns duplex-link …]"),
            _ => complain(word.at, "this is not a LAN; set one with set lan0 [$ns make-lan …]"),
        }
    }

    fn object(&self, word: &Word) -> Option<Object> {
        self.object_called(&word.text)
    }

    pub(crate) fn object_called(&self, text: &str) -> Option<Object> {
        self.objects.get(handle(text)?).copied()
    }

    /// Notes an error and continues, so that all errors are reported together.
    pub(crate) fn unknown(&mut self, at: usize, problem: String) -> Outcome {
        if self.unknown.len() >= MOST_UNKNOWN {
            return complain(at, problem);
        }
        let complaint = Complaint { at, problem };
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

    /// Returns where the text of a command ends, if it is on one line.
    fn end_of(&self, words: &[Word]) -> usize {
        let (first, last) = (words[0].at, words[words.len() - 1].at);
        let text = &self.text[last..];
        let end = match text.chars().next() {
            Some('"') => text[1..].find('"').map(|end| end + 2),
            Some('{') => text.find('}').map(|end| end + 1),
            _ => text.find(|c: char| c.is_whitespace() || ";}]".contains(c)),
        };
        let line = self.text[first..].find('\n').map_or(self.text.len(), |end| first + end);
        end.map_or(line, |end| last + end).clamp(first, line)
    }

    pub(crate) fn ignore(&mut self, words: &[Word], reason: &'static str) -> Outcome {
        // A loop may come here several times.
        if !self.ignored_at.insert(words[0].at) {
            return Ok(String::new());
        }
        let (line, _) = place(self.text, words[0].at);
        let command = self.text[words[0].at..self.end_of(words)].to_owned();
        let ignored = Ignored { place: format!("{}:{line}", self.name), command, reason };
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
        return format!("this is written {form}");
    }
    let cure = match nearest(name, METHODS.map(|(known, _)| known)) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "traffic beyond FTP and CBR, and events, belong into the experiment file".to_owned(),
    };
    format!("unknown command \"{name}\"; {cure}")
}

fn handle(text: &str) -> Option<usize> {
    text.strip_prefix("_o")?.parse().ok()
}
