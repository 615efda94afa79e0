//! The commands of agents, and the commands that attach and connect agents.

use crate::agents::{ATTRIBUTES_WITHOUT_EFFECT, COUNTER_ATTRIBUTES, Class, packets};
use crate::application::{Application, Kind, ScriptedPackets, WRITER_CLASS};
use crate::new::unknown_class;
use crate::ns_defaults::default_of;
use crate::quantity::positive;
use crate::simulator::{Object, Outcome, Simulator};
use crate::tcl::{MEASURED_VALUE, Word, WordError, error_at};

/// The class and pattern of the application that an agent gets if a script calls a send command of the agent itself,
/// such as `$tcp send 2048`.
const FTP_APPLICATION: (&str, Kind) = ("Application/FTP", Kind::Greedy);

impl Simulator<'_> {
    /// Executes a command of an agent.
    pub(crate) fn agent_command(&mut self, index: usize, method: &Word, words: &[Word]) -> Outcome {
        match (method.text.as_str(), &words[2..]) {
            ("set", [name]) => Ok(self.attribute_of(index, &name.text)),
            ("set", [name, value]) => self.set_agent(index, name, value, words),
            ("attach-source" | "attach-app", [kind]) => self.attach_kind(index, &method.text, kind),
            ("attach-traffic", [traffic]) => self.attach_traffic(index, traffic),
            ("advance" | "advanceby", [count])
                if matches!(self.traffic.agents[index].class, Class::Tcp { .. }) =>
            {
                let count = packets(count)?;
                self.produce(index, None, method, count)
            }
            ("send" | "sendmsg" | "advance-bytes", [octets, ..]) => self.send_octets(index, method, octets),
            ("select_ca" | "select_cc", [name]) => self.choose_congestion(index, name),
            ("listen", []) => Ok(String::new()),
            ("trace" | "tracevar" | "attach" | "attach-trace" | "monitor" | "add-var-trace", _) => {
                self.ignore(words, "the command only draws or records")
            }
            ("print" | "port" | "eventtrace", _) => Ok(MEASURED_VALUE.to_owned()),
            _ => self.unknown(method.at, format!("{:?} is not a supported command of an agent", method.text)),
        }
    }

    fn attribute_of(&mut self, index: usize, name: &str) -> String {
        if let ("node_", Some(node)) = (name, self.traffic.agents[index].node) {
            return self.add(Object::Node(node));
        }
        let agent = &self.traffic.agents[index];
        let own = agent.attributes.get(name).map(|value| value.text.clone());
        own.or_else(|| default_of(agent.name(), name).map(str::to_owned))
            .unwrap_or_else(|| MEASURED_VALUE.to_owned())
    }

    fn set_agent(&mut self, index: usize, name: &Word, value: &Word, words: &[Word]) -> Outcome {
        if ATTRIBUTES_WITHOUT_EFFECT.contains(&name.text.as_str()) {
            if !COUNTER_ATTRIBUTES.contains(&name.text.as_str()) {
                self.traffic.agents[index].attributes.insert(name.text.clone(), value.clone());
            }
            self.ignore(words, "the attribute only marks packets in traces, or counts them")?;
            return Ok(value.text.clone());
        }
        if self.is_emulab {
            return self.ignore(words, "in Emulab the hosts' stack determines this, in hol the transport");
        }
        if self.has_begun() {
            let problem =
                format!("hol cannot change {:?} of an agent during a run; set it before $ns run", name.text);
            return self.unknown(name.at, problem);
        }
        let agent = &mut self.traffic.agents[index];
        agent.attributes.insert(name.text.clone(), value.clone());
        if agent.is_full_tcp() && name.text == "packetSize_" {
            self.ignore(words, "packets of FullTcp have segsize_ octets of data")?;
        }
        Ok(value.text.clone())
    }

    fn choose_congestion(&mut self, index: usize, name: &Word) -> Outcome {
        self.traffic.agents[index].congestion = match name.text.as_str() {
            "reno" => "reno",
            "cubic" => "cubic",
            other => {
                return error_at(
                    name.at,
                    format!("congestion control {other:?} of ns is not supported; use reno or cubic"),
                );
            }
        };
        Ok(String::new())
    }

    /// Notes that an agent sends. FullTcp draws a random number before its first packet (tcp/tcp-full.cc,
    /// `FullTcpAgent::advance_bytes`).
    pub(crate) fn note_sending(&mut self, agent: usize) {
        let own = &mut self.traffic.agents[agent];
        let draws = own.is_full_tcp() && !own.is_open && !self.is_emulab;
        own.is_open = true;
        if draws {
            self.randoms.generators[0].uniform();
        }
    }

    /// Executes `$tcp advanceby 100` or `$ftp producemore 100`, which send this number of additional packets from now
    /// on. The argument of `advance` and `produce` instead is the total number of packets since the start of the
    /// script.
    pub(crate) fn produce(
        &mut self,
        agent: usize,
        from: Option<usize>,
        method: &Word,
        count: u64,
    ) -> Outcome {
        let now = self.schedule.now.unwrap_or_default();
        // All packets of an agent belong to one connection.
        let index = match self.traffic.find(agent, |own| !own.produced.is_empty()).or(from) {
            Some(index) => index,
            None => self.application_over(agent, method.at, FTP_APPLICATION, |_| false)?,
        };
        let application = &mut self.traffic.applications[index];
        let earlier = application.produced_packets;
        let is_total = matches!(method.text.as_str(), "produce" | "advance");
        let more = match is_total && earlier > 0 {
            true if self.traffic.agents[agent].is_full_tcp() => None,
            // tcp/tcp.cc, `advance`: the SYN that has been sent counts, too.
            true => count.checked_sub(earlier + 1),
            false => Some(count),
        };
        let Some(more) = more else {
            let problem =
                "in ns this number includes the packets of earlier commands; use advanceby or producemore";
            return error_at(method.at, problem);
        };
        if more > 0 {
            application.produce(ScriptedPackets { at: now, count: more, octets: None });
            self.note_sending(agent);
        }
        Ok(String::new())
    }

    /// Returns the first application of an agent that satisfies the condition, or a new application.
    fn application_over(
        &mut self,
        agent: usize,
        at: usize,
        (class, kind): (&'static str, Kind),
        is_wanted: impl Fn(&Application) -> bool,
    ) -> Result<usize, WordError> {
        if let Some(index) = self.traffic.find(agent, is_wanted) {
            return Ok(index);
        }
        self.add_application(at, class, kind);
        let index = self.traffic.applications.len() - 1;
        self.traffic.attach(index, agent, at)?;
        Ok(index)
    }

    /// Executes `$tcp send 2048` or `$udp send 500`: the agent sends this number of octets from now on, in as many
    /// packets as it needs.
    pub(crate) fn send_octets(&mut self, agent: usize, method: &Word, octets: &Word) -> Outcome {
        let own = &self.traffic.agents[agent];
        let size = own.packet()?;
        match own.class {
            Class::Tcp { .. } | Class::Sctp if octets.text == "-1" => {
                let index = self.application_over(agent, method.at, FTP_APPLICATION, |own| own.greedy)?;
                let now = self.schedule.now.unwrap_or_default();
                self.traffic.applications[index].start(now);
                self.note_sending(agent);
                Ok(String::new())
            }
            // tcp/tcp.cc, TcpAgent::sendmsg; FullTcp and SCTP count octets.
            Class::Tcp { .. } if !own.is_full_tcp() => {
                let count = packets(octets)?.div_ceil(size);
                self.produce(agent, None, method, count)
            }
            Class::Udp | Class::Tcp { .. } | Class::Sctp => {
                let octets = Some(positive(octets)?);
                let produced =
                    ScriptedPackets { at: self.schedule.now.unwrap_or_default(), count: 1, octets };
                let kind = (WRITER_CLASS, Kind::Counted);
                let index = self.application_over(agent, method.at, kind, |own| own.class == WRITER_CLASS)?;
                self.traffic.applications[index].produce(produced);
                self.note_sending(agent);
                Ok(String::new())
            }
            Class::Sink { .. } => self.unknown(method.at, "this agent cannot send by itself".to_owned()),
        }
    }

    /// Executes `$ns attach-agent $node $agent`, which attaches an agent to a node.
    pub(crate) fn attach(&mut self, node: &Word, agent: &Word) -> Outcome {
        let (node, index) = (self.node(node)?, self.agent_of(agent)?);
        let has_begun = self.has_begun();
        let own = &mut self.traffic.agents[index].node;
        if has_begun && own.is_some_and(|known| known != node) {
            return error_at(agent.at, "an agent cannot change its node during a run; create another one");
        }
        *own = Some(node);
        Ok(String::new())
    }

    /// Executes `$ns connect $one $other`, which connects two agents.
    pub(crate) fn connect(&mut self, one: &Word, other: &Word) -> Outcome {
        let ends = [(one, other), (other, one)];
        for (own, peer) in ends {
            let (index, peer) = (self.agent_of(own)?, self.agent_of(peer)?);
            let has_begun = self.has_begun();
            let agent = &mut self.traffic.agents[index];
            // An agent that never sends may get another peer.
            if has_begun && !agent.is_silent() && agent.peer.is_some_and(|known| known != peer) {
                let problem = "an agent cannot change its other end during a run; create another one";
                return error_at(own.at, problem);
            }
            agent.peer = Some(peer);
        }
        Ok(String::new())
    }

    /// Executes `$ns detach-agent $node $agent`: the agent neither sends nor receives from then on.
    pub(crate) fn detach(&mut self, node: &Word, agent: &Word) -> Outcome {
        let now = self.schedule.now.unwrap_or_default();
        let (_, index) = (self.node(node)?, self.agent_of(agent)?);
        self.traffic.agents[index].detached = Some(now);
        let of_agent = self.traffic.applications_of(index).to_vec();
        if let Some(first) = of_agent.first() {
            self.stop_application(*first, agent.at)?;
        }
        of_agent.into_iter().for_each(|own| self.traffic.applications[own].stop(now));
        Ok(String::new())
    }

    /// Executes `$ns create-connection TCP $from TCPSink $to 1`: creates two connected agents on their
    /// nodes, and returns the first.
    pub(crate) fn create_connection(&mut self, [kind, from, sink, to]: [&Word; 4]) -> Outcome {
        let mut ends = Vec::new();
        for (class, node) in [(kind, from), (sink, to)] {
            let class = Word { text: format!("Agent/{}", class.text), ..class.clone() };
            let Some(end) = self.new_endpoint(&class) else {
                return self.unknown(class.at, unknown_class(&class.text));
            };
            let end = Word { text: end?, at: class.at, verbatim: None };
            self.attach(node, &end)?;
            ends.push(end);
        }
        self.connect(&ends[0], &ends[1])?;
        Ok(ends.swap_remove(0).text)
    }

    pub(crate) fn agent_of(&self, word: &Word) -> Result<usize, WordError> {
        match self.object(&word.text) {
            Some(Object::Agent(agent)) => Ok(agent),
            _ => error_at(word.at, "this is not a known agent; create one with set tcp [new Agent/TCP]"),
        }
    }
}
