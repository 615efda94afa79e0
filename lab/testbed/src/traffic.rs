//! The agents and applications of a script.

use std::collections::BTreeMap;

use hol_base::Duration;

use crate::agents::Agent;
use crate::application::Application;
use crate::tcl::{WordError, error_at};

/// The agents and applications of a script, and when the script ends.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub agents: Vec<Agent>,
    pub applications: Vec<Application>,
    /// Indices of the applications of each agent that has any.
    applications_by_agent: BTreeMap<usize, Vec<usize>>,
    pub end: Option<Duration>,
}

/// Maximum number of applications of one agent.
const MAX_APPLICATIONS_PER_AGENT: usize = 1000;

impl Traffic {
    /// Attaches an application to an agent.
    pub fn attach(&mut self, application: usize, agent: usize, at: usize) -> Result<(), WordError> {
        if let Some(former) = self.applications[application].agent.replace(agent) {
            self.applications_by_agent.entry(former).or_default().retain(|own| *own != application);
        }
        let all = self.applications_by_agent.entry(agent).or_default();
        if all.len() >= MAX_APPLICATIONS_PER_AGENT {
            return error_at(
                at,
                format!("an agent has more than {MAX_APPLICATIONS_PER_AGENT} applications; create another"),
            );
        }
        all.push(application);
        Ok(())
    }

    /// Returns the indices of the applications of an agent.
    pub fn applications_of(&self, agent: usize) -> &[usize] {
        self.applications_by_agent.get(&agent).map_or(&[], Vec::as_slice)
    }

    /// Returns the index of the first application of an agent that satisfies the condition.
    pub fn find(&self, agent: usize, is_wanted: impl Fn(&Application) -> bool) -> Option<usize> {
        self.applications_of(agent).iter().copied().find(|index| is_wanted(&self.applications[*index]))
    }

    /// Returns the class of an application.
    pub fn class_of(&self, application: usize) -> &'static str {
        self.applications[application].class
    }
}
