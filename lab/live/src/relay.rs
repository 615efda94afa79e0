//! Forwards reports about a flow's server to the host with its client, through the host with the experiment,
//! which alone knows all others.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use hol_sockets::{FlowReportCallback, PeerReport, ReportRouter};

/// The source and the destination of the reports on a flow by its server.
pub(crate) struct Route {
    /// Number of the host with the flow's server.
    pub(crate) from: usize,
    /// Function that sends a report to the client's host; `None` if the client is on this host.
    pub(crate) to: Option<Arc<FlowReportCallback>>,
}

/// Forwards the reports that arrive from one host.
#[derive(Clone, Default)]
pub(crate) struct Relay {
    /// The number of the host whose reports are forwarded.
    host: usize,
    /// Delivers reports to clients on this host.
    pub(crate) local_reports: ReportRouter,
    /// The route of the reports on each flow, by flow number.
    routes: Arc<Mutex<BTreeMap<usize, Route>>>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Relay")
    }
}

impl Relay {
    /// Returns a relay for the reports of another host.
    pub(crate) fn for_host(&self, host: usize) -> Self {
        Self { host, ..self.clone() }
    }

    /// Replaces the routes of all flows.
    pub(crate) fn set_routes(&self, routes: BTreeMap<usize, Route>) {
        *self.routes.lock().unwrap_or_else(PoisonError::into_inner) = routes;
    }

    /// Forwards a report by a flow's server. Ignores it if the host from which it arrived does not run that
    /// server.
    pub(crate) fn deliver(&self, flow: usize, report: PeerReport) {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let to = match routes.get(&flow) {
            Some(route) if route.from == self.host => route.to.clone(),
            _ => return,
        };
        drop(routes);
        match to {
            Some(tell) => tell(flow, report),
            None => self.local_reports.deliver(flow, report),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_accepted_only_from_the_servers_host() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        let to: Arc<FlowReportCallback> = Arc::new(move |flow, _| tell.lock().unwrap().push(flow));
        let relay = Relay::default();
        relay.set_routes([(3, Route { from: 2, to: Some(to) })].into());
        let say = |host, flow| relay.for_host(host).deliver(flow, PeerReport::default());
        say(1, 3);
        say(2, 4);
        assert!(told.lock().unwrap().is_empty());
        say(2, 3);
        assert_eq!(*told.lock().unwrap(), [3]);
        relay.set_routes(BTreeMap::new());
        say(2, 3);
        assert_eq!(told.lock().unwrap().len(), 1);
    }
}
