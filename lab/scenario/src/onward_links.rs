//! Connects the applications of onward flows with the applications of the flows that cause their requests.

use std::collections::BTreeMap;

use hol_measure::RecordKind;
use hol_workloads::{Load, OnwardClient, PendingRequests, WakeCallback, WorkloadSpec};

use crate::onward::OnwardRequests;
use crate::{RunEnd, Scenario, ScenarioError};

/// Connects the applications of a flow with applications of other flows on the same hosts.
#[derive(Debug, Default)]
pub struct OnwardLinks {
    /// Queue from which a client takes the requests that it sends on behalf of a server.
    pub onward_client: Option<OnwardClient>,
    /// Requests to the server that wait for the replies to its own requests to other servers.
    pub pending_requests: Option<PendingRequests>,
}

impl Scenario {
    /// Connects the flows, and returns the links of each: first the measured flow, then `background` background flows,
    /// then the onward flows. `wake` returns the callback that wakes the applications of a flow.
    pub fn link_onward_flows(
        &self,
        background: usize,
        wake: impl Fn(usize) -> WakeCallback,
    ) -> Vec<OnwardLinks> {
        let (first, onward) = (1 + background, self.onward.iter().map(|onward| &onward.workload));
        let mut links: Vec<OnwardLinks> =
            (0..first + self.onward.len()).map(|_| OnwardLinks::default()).collect();
        let mut asked: BTreeMap<&str, (PendingRequests, usize)> = BTreeMap::new();
        let flows = [(0, &self.workload)].into_iter().chain((first..).zip(onward));
        for (flow, workload) in flows {
            if let Some((pending, index)) = asked.get_mut(workload.client_node()).filter(|_| flow > 0) {
                links[flow].onward_client = Some(pending.client(*index, wake(flow)));
                *index += 1;
            }
            let clients = self.onward_count(workload.server_node());
            if clients > 0 {
                let pending_requests = PendingRequests::new(clients);
                pending_requests.on_ready(wake(flow));
                links[flow].pending_requests = Some(pending_requests.clone());
                asked.insert(workload.server_node(), (pending_requests, 0));
            }
        }
        links
    }

    /// Returns why the measured flow ended. If it stalled or ran out of time because an `onward` flow failed,
    /// returns the reason of the first such flow.
    pub fn measured_flow_end(
        &self,
        measured: RunEnd,
        onward: impl IntoIterator<Item = Option<RunEnd>>,
    ) -> RunEnd {
        let waited = matches!(measured, RunEnd::Stalled { .. } | RunEnd::OutOfTime { .. });
        let mut ends = (1..).zip(onward).filter(|_| waited);
        let failed =
            ends.find_map(|(number, why)| Some(format!("[[onward]] number {number}: {}", why?.reason()?)));
        failed.map_or(measured, |reason| RunEnd::Failed { reason: reason.into() })
    }

    /// Returns the number of requests that a server sends to other servers before it replies.
    fn onward_count(&self, server: &str) -> usize {
        self.onward.iter().filter(|onward| onward.workload.client_node() == server).count()
    }

    /// Checks that every onward flow starts at a server that receives requests, and ends at a server that does not depend on it.
    pub(crate) fn check_onward(&self) -> Result<(), ScenarioError> {
        if !self.onward.is_empty() && !is_answered(&self.workload) {
            return Err(ScenarioError::OnwardWithoutReplies(self.workload.kind.workload().name()));
        }
        let mut reached = vec![self.workload.server_node()];
        for (index, OnwardRequests { workload, .. }) in self.onward.iter().enumerate() {
            self.check_asking(workload, &reached)
                .map_err(|problem| ScenarioError::Onward { index, problem: Box::new(problem) })?;
            reached.push(workload.server_node());
        }
        Ok(())
    }

    fn check_asking(&self, workload: &WorkloadSpec, reached: &[&str]) -> Result<(), ScenarioError> {
        let (from, to) = (workload.client_node(), workload.server_node());
        if !is_answered(workload) {
            return Err(ScenarioError::OnwardWithoutReplies(workload.kind.workload().name()));
        }
        if workload.load().is_some_and(|load| *load != Load::default()) {
            return Err(ScenarioError::OnwardLoad);
        }
        if !reached.contains(&from) {
            return Err(ScenarioError::OnwardFromIdleServer(from.to_owned()));
        }
        // This also excludes cycles.
        if reached.contains(&to) && self.onward_count(to) > 0 {
            return Err(ScenarioError::AmbiguousOnwardServer(to.to_owned()));
        }
        Ok(())
    }
}

fn is_answered(workload: &WorkloadSpec) -> bool {
    workload.record_kind() == RecordKind::Transaction
}

#[cfg(test)]
mod tests {
    use hol_stack::TransportSpec;

    use super::*;

    /// Returns a scenario; `asks` lists onward flows as `from to`.
    fn scenario(workload: &str, asks: &[(&str, &str)]) -> Scenario {
        let network = "nodes = ['a', 'b', 'c', 'd']\nlans = [{ nodes = ['a', 'b', 'c', 'd'] }]";
        let workload = toml::from_str(&format!("from = 'a'\nto = 'b'\n{workload}")).unwrap();
        let transport: TransportSpec = "tcp".parse().unwrap();
        let scenario =
            Scenario::with_single_flow(toml::from_str(network).unwrap(), transport.clone(), workload, 10);
        let onward = asks.iter().map(|(nodes, more)| {
            let (from, to) = nodes.split_once(' ').unwrap();
            let text = format!("from = '{from}'\nto = '{to}'\n{more}");
            OnwardRequests { transport: transport.clone(), workload: toml::from_str(&text).unwrap() }
        });
        Scenario { onward: onward.collect(), ..scenario }
    }

    fn check(workload: &str, asks: &[(&str, &str)]) -> Result<(), String> {
        scenario(workload, asks).check().map_err(|problem| problem.to_string())
    }

    const ECHO: &str = "kind = 'echo'";

    #[test]
    fn proxy_may_send_onward_requests_to_its_middlebox_and_the_next_proxy() {
        assert_eq!(check(ECHO, &[("b c", "kind = 'simco'"), ("b d", ECHO)]), Ok(()));
        assert_eq!(check(ECHO, &[("b c", ECHO), ("c d", ECHO), ("d a", "kind = 'pingpong'")]), Ok(()));
    }

    #[test]
    fn invalid_onward_flows_are_refused_with_a_remedy() {
        let refused = |asks: &[(&str, &str)], words: &str| {
            let problem = check(ECHO, asks).unwrap_err();
            assert!(problem.contains(words) && problem.contains("[[onward]] number "), "{problem}");
        };
        refused(&[("c d", ECHO)], "\"c\" receives no request");
        refused(&[("b c", ECHO), ("c b", ECHO)], "two flows end at \"b\"");
        refused(&[("b c", ECHO), ("b d", ECHO), ("c d", ECHO), ("d a", ECHO)], "two flows end at \"d\"");
        refused(&[("b c", "kind = 'oneway'")], "oneway has no requests with replies");
        refused(&[("b c", "kind = 'echo'\nrate = '10/s'")], "remove `rate`");
        let bulk = check("kind = 'bulk'", &[("b c", ECHO)]).unwrap_err();
        assert!(bulk.contains("bulk has no requests with replies"), "{bulk}");
    }

    /// The measured flow ends at b, which sends two requests to c and one to d; the first flow to d causes a further request.
    #[test]
    fn each_flow_is_linked_to_those_that_it_waits_for() {
        let scenario = scenario(ECHO, &[("b c", ECHO), ("b d", ECHO), ("d a", ECHO)]);
        assert_eq!(["a", "b", "c", "d"].map(|server| scenario.onward_count(server)), [0, 2, 0, 1]);
        let links = scenario.link_onward_flows(2, |_| Box::new(|| ()));
        let shape: Vec<(bool, bool)> = links
            .iter()
            .map(|links| (links.onward_client.is_some(), links.pending_requests.is_some()))
            .collect();
        let (measured, beside) = ((false, true), (false, false));
        assert_eq!(shape, [measured, beside, beside, (true, false), (true, true), (true, false)]);
        // Two onward flows depend on the measured flow, with different positions.
        let places = |flow: usize| format!("{:?}", links[flow].onward_client).contains("index: 1");
        assert_eq!([3, 4, 5].map(places), [false, true, false]);
    }
}
