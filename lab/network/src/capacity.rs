//! The capacity of a path whose links change their rate during a run.

use std::collections::BTreeMap;
use std::ops::Range;

use hol_base::{Duration, Time};

use crate::identifier::{LinkId, NodeId};
use crate::link_change::LinkChange;
use crate::topology::Topology;

/// The state of a link on which its rate depends.
#[derive(Debug, Clone, Copy)]
struct LinkState {
    /// The bit rate of the link in bit/s, unless it is down or loses every packet.
    rate: u64,
    is_down: bool,
    loses_everything: bool,
}

impl LinkState {
    fn rate(self) -> u64 {
        if self.is_down || self.loses_everything { 0 } else { self.rate }
    }
}

impl Topology {
    /// Returns the mean rate of a path between two times of a run, in bit/s; `None` if there is no path. At any
    /// time the rate of a path is that of its slowest link, and 0 while a link is down or loses every packet.
    pub fn mean_rate(&self, from: NodeId, to: NodeId, time: Range<Duration>) -> Option<f64> {
        let path = self.path_links(from, to);
        let (before, _) = self.bits_until(&path, time.start)?;
        let (bits, last) = self.bits_until(&path, time.end)?;
        let seconds = time.end.saturating_sub(time.start).as_secs_f64();
        Some(if seconds > 0.0 { (bits - before) / seconds } else { last })
    }

    /// Returns how many bits a path can carry from the start of a run until `end`, and the rate of the path at
    /// `end` in bit/s.
    fn bits_until(&self, path: &[LinkId], end: Duration) -> Option<(f64, f64)> {
        let state = |link: &LinkId| {
            let rate = self.links[usize::from(link.0)].settings.rate.bits_per_second();
            (*link, LinkState { rate, is_down: false, loses_everything: false })
        };
        let mut links: BTreeMap<LinkId, LinkState> = path.iter().map(state).collect();
        let slowest = |links: &BTreeMap<LinkId, LinkState>| links.values().map(|link| link.rate()).min();
        let (mut sum, mut since) = (0.0, Time::ZERO);
        let end = Time::ZERO + end;
        for change in self.link_changes.iter().take_while(|change| change.at < end) {
            let before = slowest(&links)?;
            let Some(link) = links.get_mut(&change.link) else { continue };
            match &change.change {
                LinkChange::Rate(rate) => link.rate = rate.bits_per_second(),
                LinkChange::Down => link.is_down = true,
                LinkChange::Up => link.is_down = false,
                LinkChange::Loss(loss) => link.loses_everything = loss.loses_everything(),
                LinkChange::Delay(_) => continue,
            }
            sum += before as f64 * change.at.since(since).as_secs_f64();
            since = change.at;
        }
        let last = slowest(&links)? as f64;
        Some((sum + last * end.since(since).as_secs_f64(), last))
    }

    /// Returns whether the rate of a path changes during a run, or one of its links goes down or loses every packet.
    pub fn has_variable_rate(&self, from: NodeId, to: NodeId) -> bool {
        let path = self.path_links(from, to);
        let is_of_rate = |change: &LinkChange| match change {
            LinkChange::Rate(_) | LinkChange::Down | LinkChange::Up => true,
            LinkChange::Loss(loss) => loss.loses_everything(),
            LinkChange::Delay(_) => false,
        };
        self.link_changes.iter().any(|change| is_of_rate(&change.change) && path.contains(&change.link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean rate upwards in kbit/s in the first `seconds`.
    fn mean(text: &str, seconds: u64) -> f64 {
        mean_between(text, 0..seconds)
    }

    fn mean_between(text: &str, seconds: Range<u64>) -> f64 {
        let topology = Topology::new(&toml::from_str(text).unwrap()).unwrap();
        let [from, to] = ["client", "server"].map(|name| topology.node(name).unwrap());
        let time = Duration::from_secs(seconds.start)..Duration::from_secs(seconds.end);
        topology.mean_rate(from, to, time).unwrap() / 1e3
    }

    #[test]
    fn a_mean_rate_counts_each_rate_as_long_as_it_holds() {
        let steps = "rate = '8Mbit'\nevents = [{ at = '2s', rate = '2Mbit' }, { at = '6s', rate = '4Mbit' }]";
        assert_eq!(mean(steps, 1), 8000.0);
        assert_eq!(mean(steps, 2), 8000.0);
        assert_eq!(mean(steps, 10), (2.0 * 8000.0 + 4.0 * 2000.0 + 4.0 * 4000.0) / 10.0);
        assert_eq!(mean(steps, 0), 8000.0);
        assert_eq!(mean_between(steps, 5..7), (2000.0 + 4000.0) / 2.0);
        assert_eq!(mean("rate = '5Mbit'", 10), 5000.0);
        let down = "rate = '8Mbit'\nevents = [{ at = '2s', down = true }, { at = '3s', rate = '4Mbit' }, { at = '4s', down = false }]";
        assert_eq!(mean(down, 5), (2.0 * 8000.0 + 4000.0) / 5.0);
        let stopped =
            "rate = '8Mbit'\nevents = [{ at = '2s', rate = '0bit' }, { at = '4s', rate = '4Mbit' }]";
        assert_eq!(mean(stopped, 5), (2.0 * 8000.0 + 4000.0) / 5.0);
        let lost = "rate = '8Mbit'\nevents = [{ at = '2s', loss = '100%' }, { at = '4s', loss = '0%' }]";
        assert_eq!(mean(lost, 8), 0.75 * 8000.0);
    }

    /// The other direction does not count, and neither do loss and delay.
    #[test]
    fn a_mean_rate_is_that_of_its_direction() {
        let one = "rate = '8Mbit'\nevents = [{ at = '1s', direction = 'down', rate = '1Mbit' }, { at = '1s', loss = '5%', delay = '9ms' }]";
        assert_eq!(mean(one, 10), 8000.0);
        let topology = Topology::new(&toml::from_str(one).unwrap()).unwrap();
        let [client, server] = ["client", "server"].map(|name| topology.node(name).unwrap());
        assert!(!topology.has_variable_rate(client, server) && topology.has_variable_rate(server, client));
    }

    /// Two links in a row: at each time the slower one counts.
    #[test]
    fn a_mean_rate_is_that_of_the_slowest_link() {
        let text = "nodes = ['client', 'router', 'server']
            [[links]]\nfrom = 'client'\nto = 'router'\nrate = '3Mbit'
            [[links]]\nfrom = 'router'\nto = 'server'\nrate = '5Mbit'\nname = 'b'
            [[events]]\nat = '4s'\nlink = 'b'\nrate = '1Mbit'";
        assert_eq!(mean(text, 8), 2000.0);
    }
}
