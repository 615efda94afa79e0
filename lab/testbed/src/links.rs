//! Links and LANs: the commands that create and change them.

use hol_base::Duration;
use hol_network::{EventRate, LinkChange, LinkSpec, LossSpec};

use crate::network_builder::{Event, MAX_EVENTS, SegmentDirection};
use crate::quantity::{delay, event_time, link_delay, link_rate, rate, seconds};
use crate::queue::Queue;
use crate::simulator::{ENTRY_OCTETS, Object, Outcome, Simulator};
use crate::tcl::{MEASURED_VALUE, Word, WordError, error_at, list_of};
use crate::unsupported::UnsupportedFeature;

/// Classes of ns that stand for the layers of a wired LAN.
const LAN_LAYERS: [&str; 8] =
    ["LL", "Queue/DropTail", "Mac", "Mac/802_3", "MAC/802_3", "Mac/Csma/Cd", "MAC/Csma/Cd", "Channel"];

impl Simulator<'_> {
    /// Changes a link or LAN, or only its direction `line`. Before the run this changes its settings; during the run it
    /// adds an event at the current time of the run.
    pub(crate) fn change_link(&mut self, segment: usize, line: Option<usize>, change: LinkChange) {
        let now = self.schedule.now.unwrap_or_default();
        let is_event = now > Duration::ZERO || matches!(change, LinkChange::Up | LinkChange::Down);
        if is_event {
            self.add_event(Event { at: now, segment, line, change });
            return;
        }
        let lines = self.draft.segments[segment].lines.iter_mut().enumerate();
        for (_, own) in lines.filter(|(index, _)| line.is_none_or(|line| line == *index)) {
            match change.clone() {
                LinkChange::Rate(EventRate::Positive(rate)) => own.rate = rate,
                LinkChange::Rate(EventRate::Zero) => unreachable!("a rate of a script is above 0"),
                LinkChange::Delay(delay) => own.delay = delay,
                LinkChange::Loss(loss) => own.loss = loss,
                LinkChange::Up | LinkChange::Down => unreachable!("links go up and down only during the run"),
            }
        }
    }

    /// Notes that the script sets the cost of a link, which is an error if there are several routes between any two
    /// nodes.
    pub(crate) fn refuse_cost(&mut self, method: &Word) {
        let problem = "costs of links are not modelled: routes are those with the fewest hops";
        self.draft.refuse_if_several_routes(method.at, problem);
    }

    fn add_event(&mut self, event: Event) {
        if !self.draft.add_event(event) {
            let problem = format!("the links of the script change more than {MAX_EVENTS} times");
            let _ = self.unknown(0, problem);
        }
    }

    /// Executes `$ns rtmodel-at 1.0 down $from $to`, which takes a link down, or up again; with a single node, all
    /// links of the node.
    pub(crate) fn schedule_outage(&mut self, time: &Word, verb: &Word, nodes: &[Word]) -> Outcome {
        let at = event_time(time, self.is_emulab)?;
        let change = match verb.text.as_str() {
            "down" => LinkChange::Down,
            "up" => LinkChange::Up,
            _ => return error_at(verb.at, "a link can only go up or down"),
        };
        let segments = match nodes {
            [from, to] => vec![self.find_link(from, to)?.0],
            [node] => self.draft.segments_of(self.node(node)?).to_vec(),
            _ => return error_at(verb.at, "the syntax is $ns rtmodel-at 1.0 down $from $to"),
        };
        self.charge_memory(time.at, segments.len() * ENTRY_OCTETS)?;
        for segment in segments {
            self.add_event(Event { at, segment, line: None, change: change.clone() });
        }
        Ok(String::new())
    }

    pub(crate) fn line_between(
        &mut self,
        [from, to]: [&Word; 2],
        speed: &Word,
        time: &Word,
        discipline: &Word,
    ) -> Result<([usize; 2], SegmentDirection), WordError> {
        let members = [self.node(from)?, self.node(to)?];
        if members[0] == members[1] {
            return error_at(to.at, "both ends are the same node; a link needs two");
        }
        if let Some(cause) = UnsupportedFeature::of_word(&discipline.text, discipline.at) {
            self.refuse(cause);
        }
        let mut queue = Queue::of(discipline)?;
        for (attribute, value) in self.defaults_of(&format!("Queue/{}", discipline.text), discipline.at)? {
            queue.set(&Word { text: attribute, ..value.clone() }, &value, self.is_emulab)?;
        }
        let (rate, delay) = (link_rate(speed, self.is_emulab)?, link_delay(time, self.is_emulab)?);
        Ok((
            members,
            SegmentDirection { rate, delay, loss: LossSpec::default(), queue, has_error_model: false },
        ))
    }

    /// Adds one direction of a link. The other direction is added by another command.
    pub(crate) fn add_direction(
        &mut self,
        members: [usize; 2],
        line: SegmentDirection,
        at: usize,
    ) -> Outcome {
        if let Some((segment, 1)) = self.draft.find_link(members)
            && self.draft.segments[segment].single_direction_at.take().is_some()
        {
            self.draft.segments[segment].lines[1] = line;
            return Ok(String::new());
        }
        self.draft.note_second_link(at, members);
        let object = self.add_segment(at, members.to_vec(), vec![line.clone(), line])?;
        self.draft.segments.last_mut().expect("the segment was just added").single_direction_at = Some(at);
        Ok(object)
    }

    /// Executes `$ns newLan`, whose arguments name the layers of the LAN one by one.
    pub(crate) fn new_lan(
        &mut self,
        members: &Word,
        speed: &Word,
        time: &Word,
        layers: &[Word],
        words: &[Word],
    ) -> Outcome {
        let address = layers.windows(2).find(|pair| pair[0].text == "-address").map(|pair| pair[1].at);
        let mut unsupported = layers
            .iter()
            .filter(|word| !word.text.is_empty() && !word.text.starts_with('-') && Some(word.at) != address);
        if let Some(layer) = unsupported.find(|word| !LAN_LAYERS.contains(&word.text.as_str())) {
            let problem = format!("a LAN has a DropTail queue; {:?} is not supported", layer.text);
            return self.unknown(layer.at, problem);
        }
        self.ignore(words, "a LAN sends one packet at a time, in turns and without collisions")?;
        self.make_lan(members, speed, time)
    }

    pub(crate) fn make_lan(&mut self, list: &Word, speed: &Word, time: &Word) -> Outcome {
        let (mut members, all) = (Vec::new(), list_of(list)?);
        if !(2..=250).contains(&all.len()) {
            return error_at(list.at, format!("this LAN has {} nodes; it needs 2 to 250", all.len()));
        }
        for text in all {
            let node = self.node(&Word { text: text.into_owned(), ..list.clone() })?;
            if members.contains(&node) {
                return error_at(list.at, "a node occurs twice in this LAN; remove one");
            }
            members.push(node);
        }
        let (rate, delay) = (link_rate(speed, self.is_emulab)?, link_delay(time, self.is_emulab)?);
        let line = SegmentDirection {
            rate,
            delay,
            loss: LossSpec::default(),
            queue: Queue::default(),
            has_error_model: false,
        };
        self.add_segment(list.at, members, vec![line])
    }

    pub(crate) fn add_segment(
        &mut self,
        at: usize,
        members: Vec<usize>,
        lines: Vec<SegmentDirection>,
    ) -> Outcome {
        self.charge_memory(
            at,
            members.len() * ENTRY_OCTETS
                + lines.len() * size_of::<SegmentDirection>()
                + size_of::<LinkSpec>(),
        )?;
        let segment = self.draft.add_segment(members, lines);
        Ok(self.add(Object::Segment(segment, None)))
    }

    /// Executes a command of a link or LAN: Emulab's events, and commands of the parts of a link in ns.
    ///
    /// The command concerns the direction `line` of a link, or both directions if `line` is `None`.
    pub(crate) fn segment_command(
        &mut self,
        segment: usize,
        line: Option<usize>,
        method: &Word,
        words: &[Word],
        arguments: &[Word],
    ) -> Outcome {
        let is_link = self.draft.segments[segment].is_link();
        let first = line.unwrap_or_default();
        // In Emulab, both directions of a link go up or down together.
        let failing = line.filter(|_| !self.is_emulab);
        match (method.text.as_str(), arguments) {
            ("queue", []) => return Ok(self.add(Object::Queue(segment, first))),
            ("link", []) if is_link => return Ok(self.add(Object::Line(segment, first))),
            ("up", []) => self.change_link(segment, failing, LinkChange::Up),
            ("down", []) => self.change_link(segment, failing, LinkChange::Down),
            ("modify", settings @ [_, ..]) => {
                for setting in modifications(settings)? {
                    self.change_link(segment, None, modification(&setting)?);
                }
            }
            ("bandwidth", [value, ..]) => {
                self.change_link(segment, None, LinkChange::Rate(link_rate(value, self.is_emulab)?.into()));
            }
            ("delay", [value, ..]) => {
                self.change_link(segment, None, LinkChange::Delay(link_delay(value, self.is_emulab)?));
            }
            ("plr", [value, ..]) => {
                self.change_link(
                    segment,
                    None,
                    LinkChange::Loss(LossSpec::Independent(crate::quantity::loss(value)?)),
                );
            }
            ("set", [attribute]) if is_link => {
                let object = match attribute.text.as_str() {
                    "queue_" => Object::Queue(segment, first),
                    "link_" => Object::Line(segment, first),
                    _ => return Ok(MEASURED_VALUE.to_owned()),
                };
                return Ok(self.add(object));
            }
            ("cost", [one]) if one.text == "1" => {}
            ("cost", _) => self.refuse_cost(method),
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
                return self.ignore(words, "the command only draws or records");
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

    pub(crate) fn set_line(
        &mut self,
        segment: usize,
        line: usize,
        attribute: &Word,
        value: &[Word],
    ) -> Outcome {
        let own = &self.draft.segments[segment].lines[line];
        match (attribute.text.as_str(), value) {
            ("bandwidth_", []) => Ok(own.rate.bits_per_second().to_string()),
            ("delay_", []) => Ok(own.delay.as_secs_f64().to_string()),
            ("bandwidth_", [value]) => {
                self.change_link(
                    segment,
                    Some(line),
                    LinkChange::Rate(link_rate(value, self.is_emulab)?.into()),
                );
                Ok(value.text.clone())
            }
            ("delay_", [value]) => {
                self.change_link(segment, Some(line), LinkChange::Delay(seconds(value)?));
                Ok(value.text.clone())
            }
            _ => error_at(attribute.at, "only bandwidth_ and delay_ of a link are supported"),
        }
    }

    pub(crate) fn set_queue(
        &mut self,
        segment: usize,
        line: usize,
        attribute: &Word,
        value: &Word,
    ) -> Outcome {
        if self.has_begun() {
            let problem = format!(
                "hol cannot change {:?} of a queue during a run; set it before $ns run",
                attribute.text
            );
            return self.unknown(attribute.at, problem);
        }
        self.draft.segments[segment].lines[line].queue.set(attribute, value, self.is_emulab)?;
        Ok(value.text.clone())
    }

    /// Returns the index of the last link from one node to another, and the index of its direction towards the second
    /// node.
    pub(crate) fn find_link(&self, from: &Word, to: &Word) -> Result<(usize, usize), WordError> {
        let link = self.draft.find_link([self.node(from)?, self.node(to)?]);
        link.ok_or_else(|| WordError {
            at: from.at,
            problem: "no link between these two nodes; create one first with $ns duplex-link".to_owned(),
        })
    }

    /// Returns the index of a node among the members of a segment.
    pub(crate) fn member(&self, segment: usize, node: &Word) -> Result<usize, WordError> {
        let wanted = self.node(node)?;
        let place = self.draft.segments[segment].members.iter().position(|member| *member == wanted);
        place.ok_or_else(|| WordError {
            at: node.at,
            problem: "this node is not on that link or LAN".to_owned(),
        })
    }

    /// Returns the index of the node that a handle names.
    pub(crate) fn node(&self, word: &Word) -> Result<usize, WordError> {
        match self.object(&word.text) {
            Some(Object::Node(node)) => Ok(node),
            Some(_) => error_at(word.at, "this is not a node; a node is needed here"),
            None => error_at(
                word.at,
                format!("{:?} is not a node; create one with set server [$ns node]", word.text),
            ),
        }
    }

    /// Returns the index of the link that a handle names or, if `link` is false, of the LAN.
    pub(crate) fn segment(&self, word: &Word, link: bool) -> Result<usize, WordError> {
        match self.object(&word.text) {
            Some(Object::Segment(segment, _)) if self.draft.segments[segment].is_link() == link => {
                Ok(segment)
            }
            _ if link => error_at(word.at, "this is not a link; set one with set link0 [$ns duplex-link …]"),
            _ => error_at(word.at, "this is not a LAN; set one with set lan0 [$ns make-lan …]"),
        }
    }
}

/// Returns the settings in `modify BANDWIDTH=500 DELAY=20`, which may also be written as `modify bandwidth 500 delay
/// 20`.
fn modifications(words: &[Word]) -> Result<Vec<Word>, WordError> {
    let mut settings: Vec<Word> = Vec::new();
    for word in words {
        for text in list_of(word)? {
            match settings.last_mut().filter(|last| !last.text.contains('=')) {
                Some(name) => name.text += &format!("={text}"),
                None => settings.push(Word { text: text.into_owned(), ..word.clone() }),
            }
        }
    }
    Ok(settings)
}

/// Parses a setting of Emulab's `modify BANDWIDTH=500 DELAY=20 PLR=0.1`. The units are kbit/s and milliseconds; the
/// loss rate is from 0 to 1.
fn modification(setting: &Word) -> Result<LinkChange, WordError> {
    let (name, value) = setting.text.split_once('=').unwrap_or((&setting.text, ""));
    let word = |text: String| Word { text, ..setting.clone() };
    let with_unit = |unit: &str| {
        let is_bare = value.parse::<f64>().is_ok();
        word(if is_bare { format!("{value}{unit}") } else { value.to_owned() })
    };
    Ok(match name.to_ascii_uppercase().as_str() {
        "BANDWIDTH" | "DELAY" | "PLR" if value.is_empty() => {
            return error_at(setting.at, format!("{name} has no value; write one, as in {name}=20"));
        }
        "BANDWIDTH" => LinkChange::Rate(rate(&with_unit("kb"))?.into()),
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
