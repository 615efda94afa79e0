//! The agents and applications of a script.

use hol_base::Duration;

use crate::agents::Agent;
use crate::application::Application;

/// Agents, applications, and the end of the script.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub agents: Vec<Agent>,
    pub applications: Vec<Application>,
    pub end: Option<Duration>,
}

impl Traffic {
    /// Returns the class of an application.
    pub fn class_of(&self, application: usize) -> &'static str {
        self.applications[application].class
    }
}
