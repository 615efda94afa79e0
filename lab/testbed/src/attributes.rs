//! Variables of ns's objects: which variables are ns's own, and the values of the variables of nodes and of the
//! simulator.

use crate::agents;
use crate::application;
use crate::simulator::{Object, Outcome, Simulator};
use crate::tcl::{MEASURED_VALUE, Word};
use crate::unsupported;

/// Attributes of `Node` in ns; all other variables of a node are the script's own.
const NODE_ATTRIBUTES: [&str; 15] = [
    "id_",
    "address_",
    "dmux_",
    "classifier_",
    "multiPath_",
    "rtsize_",
    "regagent_",
    "ragent_",
    "src_agent_",
    "neighbor_",
    "agents_",
    "netif_",
    "X_",
    "Y_",
    "Z_",
];

/// Attributes of `Simulator` in ns; all other variables of a simulator are the script's own.
const SIMULATOR_ATTRIBUTES: [&str; 12] = [
    "nullAgent_",
    "Node_",
    "scheduler_",
    "traceAllFile_",
    "namtraceAllFile_",
    "useasim_",
    "routingTable_",
    "allocAddr_",
    "queueMap_",
    "node_factory_",
    "started_",
    "EnableMcast_",
];

/// Settings of the classes `Node` and `Simulator` that have no effect on routes or packets.
const IDLE_ATTRIBUTES: [&str; 6] = [
    "enable-module VC",
    "disable-module VC",
    "enable-module Base",
    "expandaddr",
    "set nn_",
    "set eventTraceAll_",
];

/// The error for a script in which there are several routes of the same length.
const MULTIPATH_PROBLEM: &str =
    "\"multiPath_\": a flow of hol takes one route; packets are not spread over several";

impl Simulator<'_> {
    /// Returns whether a variable of an object is an attribute in ns; all other variables are the script's own.
    pub(crate) fn has_attribute(&self, object: Object, name: &str) -> bool {
        match object {
            Object::Node(_) => NODE_ATTRIBUTES.contains(&name),
            Object::Simulator => SIMULATOR_ATTRIBUTES.contains(&name) || name.starts_with("link_"),
            Object::Agent(_) => name == "node_" || agents::is_attribute(name),
            Object::Application(_) => {
                application::ATTRIBUTES.contains(&name) && !self.is_unread_limit(object, name)
            }
            Object::Variable(variable) => self.randoms.has(variable, name),
            _ => true,
        }
    }

    /// Returns whether the variable is `maxpkts_` of an object for which ns ignores it. ns reads it only for CBR
    /// (cbr_traffic.cc) and the older Source/FTP (ns-source.tcl).
    fn is_unread_limit(&self, object: Object, name: &str) -> bool {
        name == "maxpkts_" && !matches!(self.class_name(object), "Application/Traffic/CBR" | "Source/FTP")
    }

    /// Returns ns's class of an object.
    pub(crate) fn class_name(&self, object: Object) -> &'static str {
        match object {
            Object::Simulator => "Simulator",
            Object::Node(_) => "Node",
            Object::Segment(segment, _) if self.draft.segments[segment].is_link() => "SimpleLink",
            Object::Segment(..) => "LanNode",
            Object::Queue(..) => "Queue",
            Object::Line(..) => "DelayLink",
            Object::Agent(agent) => self.traffic.agents[agent].name(),
            Object::Application(application) => self.traffic.class_of(application),
            Object::Program(_) => "Program",
            Object::ErrorModel(_) => "ErrorModel",
            Object::Generator(_) => "RNG",
            Object::Variable(_) => "RandomVariable",
            Object::Recorder => "QueueMonitor",
            Object::Unknown => "Unknown",
        }
    }

    /// Executes `$node set attribute value`, which sets an attribute of a node.
    pub(crate) fn set_node_attribute(&mut self, attribute: &Word, words: &[Word]) -> Outcome {
        match attribute.text.as_str() {
            "X_" | "Y_" | "Z_" => self.ignore(words, "the attribute is the position of a node in drawings"),
            "multiPath_" => Ok(self.set_multipath(attribute, &words[words.len() - 1])),
            name => {
                let problem = format!("{name:?} of a node is a part of ns itself; hol cannot set it");
                self.unknown(attribute.at, problem)
            }
        }
    }

    fn set_multipath(&mut self, attribute: &Word, value: &Word) -> String {
        if unsupported::is_on(&value.text) {
            self.draft.refuse_if_several_routes(attribute.at, MULTIPATH_PROBLEM);
        }
        value.text.clone()
    }

    /// Executes `$ns set attribute`, which returns an attribute of the simulator.
    pub(crate) fn simulator_attribute(&mut self, attribute: &Word) -> Outcome {
        let ends = attribute.text.strip_prefix("link_(").and_then(|ends| ends.strip_suffix(')'));
        let Some((from, to)) = ends.and_then(|ends| ends.split_once(':')) else {
            return Ok(match attribute.text.as_str() {
                "nullAgent_" => self.add(Object::Recorder),
                _ => MEASURED_VALUE.to_owned(),
            });
        };
        let mut node = |number: &str| {
            let index = number.parse::<usize>().ok().filter(|index| *index < self.draft.nodes.len());
            index.map(|index| Word { text: self.add(Object::Node(index)), ..attribute.clone() })
        };
        let (Some(from), Some(to)) = (node(from), node(to)) else {
            return self.unknown(attribute.at, format!("there is no link {:?}", attribute.text));
        };
        let (segment, line) = self.find_link(&from, &to)?;
        Ok(self.add(Object::Segment(segment, Some(line))))
    }

    /// Executes a command of the class `Node` or `Simulator`; `None` for another class or command.
    pub(crate) fn class_command(&mut self, words: &[Word]) -> Option<Outcome> {
        let [class, method, rest @ ..] = words else { return None };
        if !matches!(class.text.as_str(), "Node" | "Simulator") {
            return None;
        }
        if let ("instance", []) = (method.text.as_str(), rest) {
            return Some(Ok(self.add(Object::Simulator)));
        }
        let command = rest
            .first()
            .map_or_else(|| method.text.clone(), |first| format!("{} {}", method.text, first.text));
        if let [attribute, value] = rest
            && command == "set multiPath_"
        {
            return Some(Ok(self.set_multipath(attribute, value)));
        }
        let is_idle =
            IDLE_ATTRIBUTES.contains(&command.as_str()) || IDLE_ATTRIBUTES.contains(&method.text.as_str());
        is_idle.then(|| self.ignore(words, "the command only changes internals of ns"))
    }
}

/// Returns the value of a node's attribute in the form that a script reads.
pub(crate) fn node_attribute(node: usize, attribute: &str) -> String {
    match attribute {
        "id_" | "address_" => node.to_string(),
        _ => MEASURED_VALUE.to_owned(),
    }
}
