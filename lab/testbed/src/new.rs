//! Creates the objects of ns: `new CLASS`.

use crate::agents::Agent;
use crate::application::APPLICATIONS;
use crate::simulator::{Object, Outcome, Simulator};
use crate::tcl::{Word, error_at};

/// Classes of ns whose objects only draw or record.
const RECORDERS: [&str; 8] =
    ["Trace", "BaseTrace", "QueueMonitor", "Samples", "SampleList", "Integrator", "Monitor", "Animator"];

impl Simulator<'_> {
    /// Executes `new CLASS` and returns the name of the object.
    pub(crate) fn new_object(&mut self, words: &[Word]) -> Outcome {
        match &words[1..] {
            [class] if class.text == "Simulator" => Ok(self.new_simulator()),
            // Multicast has no effect without groups, which are refused.
            [class, option, _] if class.text == "Simulator" && option.text == "-multicast" => {
                Ok(self.new_simulator())
            }
            [class, ..] if class.text == "Program" => self.program_agent(class.at, None, &[]),
            [class, arguments @ ..] => {
                let made = self.new_endpoint(class).or_else(|| self.error_model(class, arguments));
                let made = made.or_else(|| self.new_random(class, arguments));
                match made.or_else(|| self.new_recorder(class).map(Ok)) {
                    Some(object) => object,
                    None => self.unknown(class.at, unknown_class(&class.text)),
                }
            }
            [] => error_at(words[0].at, "the syntax is new Simulator"),
        }
    }

    /// Creates an object of a class of agents or applications; `None` for another class.
    pub(crate) fn new_endpoint(&mut self, class: &Word) -> Option<Outcome> {
        if let Some(mut agent) = Agent::new(&class.text, class.at) {
            match self.defaults_of(&class.text, class.at) {
                Ok(own) => agent.attributes = own,
                Err(complaint) => return Some(Err(complaint)),
            }
            if agent.is_tahoe() && !self.is_emulab {
                let word = std::slice::from_ref(class);
                // Only its loss recovery differs, which has no effect without losses.
                let _ = self.ignore(
                    word,
                    "this agent is Tahoe in ns, which returns to slow start after each loss; hol uses NewReno",
                );
            }
            for _ in 0..if self.is_emulab { 0 } else { agent.random_draws() } {
                self.randoms.generators[0].uniform();
            }
            self.traffic.agents.push(agent);
            return Some(Ok(self.add(Object::Agent(self.traffic.agents.len() - 1))));
        }
        let (_, known, kind) = APPLICATIONS.iter().find(|(name, ..)| *name == class.text)?;
        let object = self.add_application(class.at, known, *kind);
        let Some(Object::Application(index)) = self.object(&object) else { return None };
        let own = match self.defaults_of(&class.text, class.at) {
            Ok(own) => own,
            Err(complaint) => return Some(Err(complaint)),
        };
        for (attribute, value) in own {
            let attribute = Word { text: attribute, ..value.clone() };
            let words = [class.clone(), attribute.clone(), attribute.clone(), value.clone()];
            if let Err(complaint) = self.set_application(index, &attribute, &value, &words) {
                return Some(Err(complaint));
            }
        }
        Some(Ok(object))
    }

    /// Creates an object of a class that only draws or records; `None` for an unsupported class.
    pub(crate) fn new_recorder(&mut self, class: &Word) -> Option<String> {
        let top = class.text.split('/').next().unwrap_or_default();
        RECORDERS.contains(&top).then(|| self.add(Object::Recorder))
    }
}

/// Returns the error message for an unsupported class, which lists the supported ones.
pub(crate) fn unknown_class(class: &str) -> String {
    let kind = match class.split('/').next().unwrap_or_default() {
        "Agent" => {
            "an unsupported agent; supported are Agent/TCP with Reno, Newreno, Sack1, Linux and FullTcp, Agent/UDP, Agent/SCTP and their sinks"
        }
        "Application" | "Traffic" | "Source" => {
            "unsupported traffic; use FTP, CBR, Exponential, Pareto or Telnet, or define it in an experiment file"
        }
        "RandomVariable" | "RNG" => {
            "an unsupported random variable; supported are Uniform, Exponential, Pareto, ParetoII, Constant, Normal, LogNormal, Weibull, HyperExponential and Empirical"
        }
        "Queue" => "an unsupported queue; supported are DropTail, RED, GRED, CoDel, sfqCoDel and PIE",
        "ErrorModel" => "an unsupported error model; for bursts use [network.links.NAME] loss",
        _ => {
            "an unsupported class; supported are nodes, links, LANs, agents of TCP, UDP and SCTP, FTP, CBR, Exponential, Pareto and Telnet"
        }
    };
    format!("{class:?} is {kind}")
}
