//! Shows the answers of the middlebox: granted rules, and refusals with advice.

use hol_agent::{Answer, FlowEnd};
use hol_simco::{AddressTuple, Enable, Pid, Refusal, Request};
use serde::Serialize;

use crate::advice::with_advice;
use crate::failure::Failure;
use crate::rule::{Rule, pid};
use crate::table::print_table;
use hol_terminal::json;
use hol_terminal::print;

/// A request, and the label that identifies it in error messages.
#[derive(Debug)]
pub struct LabelledRequest {
    label: String,
    /// The SIMCO request to send.
    pub request: Request,
}

/// A refused request, as JSON shows it.
#[derive(Debug, Serialize)]
struct RefusedRequest {
    /// PID of the rule that the request names; `None` if it names no rule.
    pid: Option<u32>,
    /// The reply code of RFC 4540 section 4.2.3 in hexadecimal, such as 0x0343.
    refused: String,
    meaning: &'static str,
}

impl LabelledRequest {
    /// Adds this location in a file to the front of the request's label.
    pub fn with_location(self, location: &str) -> Self {
        Self { label: format!("{location}: {}", self.label), ..self }
    }
}

impl From<Request> for LabelledRequest {
    fn from(request: Request) -> Self {
        let flow = |a0: &AddressTuple, a3: &AddressTuple| {
            format!("{} {}", FlowEnd::from_tuple(a0), FlowEnd::from_tuple(a3))
        };
        let label = match &request {
            Request::Per { enable: Enable { internal, external, .. }, .. }
            | Request::Pdr { internal, external, .. } => flow(internal, external),
            request => pid(request).map_or("reserve".to_owned(), |pid| format!("rule {}", pid.0)),
        };
        Self { label, request }
    }
}

/// Shows the granted rules, and the rules that the middlebox ended for them. Fails if any request was
/// refused.
pub fn show(
    answers: impl Iterator<Item = (LabelledRequest, Answer)>,
    overruled: &[Pid],
    as_json: bool,
) -> Result<(), Failure> {
    let (mut rules, mut problems) = (Vec::new(), Vec::new());
    for (LabelledRequest { label, request }, answer) in answers {
        match answer {
            Ok(reply) => {
                let rule = Rule::of(&request, &reply);
                if as_json { print(&json(&rule)) } else { rules.push(rule) }
            }
            Err(refusal) => {
                if as_json {
                    print(&json(&RefusedRequest::of(&request, refusal)));
                }
                problems.push(with_advice(&format!("{label}: the middlebox refused the request"), refusal));
            }
        }
    }
    let overruled: Vec<Rule> = overruled.iter().map(|pid| Rule::ended(*pid)).collect();
    if as_json {
        overruled.iter().for_each(|rule| print(&json(rule)));
    } else {
        rules.extend(overruled);
    }
    print_table(&rules);
    if problems.is_empty() { Ok(()) } else { Err(Failure::Failed(problems.join("\nerror: "))) }
}

impl RefusedRequest {
    fn of(request: &Request, refusal: Refusal) -> Self {
        let pid = pid(request).map(|pid| pid.0);
        Self { pid, refused: format!("0x03{:02X}", refusal.code()), meaning: refusal.meaning() }
    }
}
