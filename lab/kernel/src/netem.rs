//! Translates the `[network]` table to queueing disciplines of the kernel.
//!
//! The delay of a link is before its queue, so changes of the stages behind it take effect one delay later. A new rate
//! applies to packets that arrive at the queue later. Packets in the queue leave at the old rate, except in queues
//! behind a shaper.

use hol_base::Seed;
use hol_network::{
    Discipline, LinkChange, LossSpec, NetworkSpec, ScheduledChange, Settings, Topology,
    changes_after_propagation,
};
use hol_traffic::{ChangingSettings, ShapedLink};

use crate::KernelError;

/// A network that the kernel can build.
#[derive(Debug)]
pub(crate) struct BuildableNetwork {
    pub(crate) network: Topology,
    /// The size of the largest IP packet that all interfaces can send, in octets. Path MTU discovery would find
    /// this size.
    pub(crate) mtu: u32,
    /// The link directions by [`LinkId`].
    pub(crate) links: Vec<ShapedLink>,
}

impl BuildableNetwork {
    /// Returns all changes of links in a run with `seed`: those of the experiment, and those that emulate bursts
    /// of losses.
    pub(crate) fn changes_of_run(&self, seed: Seed) -> Vec<ScheduledChange> {
        delay_stage_changes(&self.links, &self.network.changes_of_run(seed))
            .expect("the plan was checked, and bursts are random loss")
    }

    /// Returns whether a link has the discipline DualPI2.
    pub(crate) fn has_dualpi2(&self) -> bool {
        self.links.iter().any(|shaped_link| matches!(shaped_link.settings.discipline, Discipline::DualPi2(_)))
    }

    /// Prepares each link for changes of any setting, even if no event of the experiment makes them.
    pub(crate) fn allow_all_changes(&mut self) {
        for shaped_link in &mut self.links {
            // Losses by number cannot change; such a request is refused with an error.
            let loss = !matches!(shaped_link.settings.loss, LossSpec::Packets(_));
            shaped_link.changing = ChangingSettings {
                any: true,
                delay: true,
                loss,
                rate: shaped_link.changing.rate,
                stops: true,
            };
        }
    }
}

/// Returns the network to build from `spec`, or an error that names the first feature that the kernel does not
/// support.
pub(crate) fn plan(spec: &NetworkSpec) -> Result<BuildableNetwork, KernelError> {
    let network = match Topology::new(spec) {
        Ok(network) => network,
        Err(problem) => return refuse("network", problem.to_string()),
    };
    let mtu = u32::try_from(network.smallest_mtu()).ok().filter(|mtu| *mtu <= 65_535);
    let Some(mtu) = mtu else {
        return refuse("network.mtu", "an interface supports at most 65535 octets; lower it");
    };
    let links = ShapedLink::from_topology(&network)?;
    delay_stage_changes(&links, network.link_changes())?;
    Ok(BuildableNetwork { network, mtu, links })
}

fn refuse<T>(what: impl Into<String>, why: impl Into<String>) -> Result<T, KernelError> {
    Err(KernelError::Unsupported { what: what.into(), why: why.into() })
}

/// Returns the `changes` at the times at which the kernel's links have to make them. A link delays packets before all
/// other stages, so changes of these stages are made later by the delay. Returns an error for a change that the
/// kernel does not support.
fn delay_stage_changes(
    links: &[ShapedLink],
    changes: &[ScheduledChange],
) -> Result<Vec<ScheduledChange>, KernelError> {
    for ScheduledChange { link, change, .. } in changes {
        match change {
            LinkChange::Loss(LossSpec::Packets(_)) => {
                return refuse(
                    "network.events: loss = { drop = … }",
                    "the filter that drops these packets counts from the start of the run; set this loss in [network], not in an event",
                );
            }
            LinkChange::Rate(rate) => {
                let shaped_link = &links[usize::from(link.0)];
                if let Some(rate) = rate.positive() {
                    shaped_link.check_queue(&Settings { rate, ..shaped_link.settings.clone() })?;
                }
            }
            _ => {}
        }
    }
    let delays = links.iter().map(|shaped_link| Some(shaped_link.settings.delay)).collect();
    Ok(changes_after_propagation(changes.to_vec(), delays))
}

#[cfg(test)]
mod tests {
    use hol_base::{Ratio, Time};

    use super::*;
    use hol_network::NamedPath;

    fn of(text: &str) -> Result<BuildableNetwork, KernelError> {
        plan(&toml::from_str(text).unwrap())
    }

    /// The reference of experiment files contains these descriptions.
    #[test]
    fn exactly_the_keys_of_the_model_world_are_documented_as_such() {
        let schema = schemars::schema_for!(NetworkSpec).to_value();
        let values = [
            ("rate", "'1Mbit'"),
            ("delay", "'1ms'"),
            ("jitter", "'1ms'"),
            ("jitter_distribution", "'normal'\njitter = '1ms'"),
            ("jitter_correlation", "'50%'\njitter = '1ms'"),
            ("loss", "'1%'"),
            ("duplicate", "'1%'"),
            ("reorder", "'1%'\nreorder_by = '5ms'"),
            ("corrupt", "'1%'"),
            ("queue", "'10p'"),
            ("discipline", "'codel'"),
            ("police", "{ rate = '1Mbit', burst = '10kB' }"),
            ("channel", "'air'"),
            ("mtu", "'1400B'"),
            ("overhead", "'20B'"),
            ("up", "{ rate = '1Mbit' }"),
            ("paths", "[{}, {}]"),
            ("events", "[{ at = '1s', rate = '1Mbit' }]"),
        ];
        for (key, value) in values {
            let described = schema["properties"][key]["description"].as_str();
            let described = described.unwrap_or_else(|| panic!("{key} is described")).replace('\n', " ");
            let is_refused = of(&format!("{key} = {value}")).is_err();
            assert_eq!(described.contains("Model world only."), is_refused, "{key}: {described}");
        }
    }

    #[test]
    fn changes_of_rate_and_loss_take_effect_one_delay_later() {
        let plan = of("delay = '100ms'\nevents = [{ at = '1s', direction = 'up', rate = '1Mbit', delay = '5ms' },
             { at = '1001ms', direction = 'up', loss = '2%' }, { at = '1050ms', direction = 'up', down = true }]")
        .unwrap();
        let changes = plan.changes_of_run(Seed(1));
        let times: Vec<u64> = changes.iter().map(|change| change.at.as_nanos()).collect();
        // Just before the packet that is sent at the time of the change.
        assert_eq!(times, [1_000_000_000, 1_005_999_999, 1_050_000_000, 1_099_999_999]);
        assert_eq!(plan.links[0].expected_loss(), None);
        assert_eq!(plan.links[1].expected_loss(), Some(Ratio::ZERO));
    }

    #[test]
    fn timed_bursts_become_changes_of_loss_one_delay_later() {
        let plan = of("delay = '100ms'\nup.loss = { good_for = '1s', bad_for = '1s' }").unwrap();
        let model: Vec<_> = plan.network.changes_of_run(Seed(7)).iter().map(|change| change.at).collect();
        let later: Vec<_> = plan
            .changes_of_run(Seed(7))
            .iter()
            .map(|change| Time::ZERO + change.at.saturating_since(Time::from_nanos(99_999_999)))
            .collect();
        assert!(model.len() > 1000 && later == model);
        assert_eq!(plan.links[0].expected_loss(), None);
    }

    #[test]
    fn every_named_path_can_be_built() {
        for path in NamedPath::ALL {
            of(path.text()).unwrap_or_else(|e| panic!("{path}: {e}"));
        }
    }

    #[test]
    fn all_interfaces_have_the_smallest_mtu() {
        assert_eq!(of("up = { mtu = '1400B' }").unwrap().mtu, 1400);
    }

    #[test]
    fn unsupported_keys_are_refused_by_name() {
        for (text, key) in [
            ("delay = '5s'\njitter = '3s'", "network.jitter"),
            ("jitter = '3ms'\njitter_correlation = '50%'", "network.jitter_correlation"),
            ("channel = 'air'", "network.channel"),
            ("duplicate = '1%'\npolice = { rate = '1Mbit', burst = '10kB' }", "network.duplicate"),
            ("mtu = '65536B'", "network.mtu"),
            ("discipline = { red = {} }", "min, max"),
            ("rate = '700bit'\ndiscipline = { red = { min = '5kB', max = '9kB' } }", "network.rate"),
            ("discipline = { red = { gentle = true, min = '5kB', max = '9kB' } }", "gentle"),
            ("events = [{ at = '1s', loss = { drop = [3] } }]", "network.events"),
            ("loss = { drop = [3] }\nevents = [{ at = '1s', loss = '1%' }]", "network.loss"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
    }

    #[test]
    fn stages_have_different_seeds() {
        let plan = of("").unwrap();
        let [up, down] = &plan.links[..] else { panic!("expected two link directions") };
        let seeds = [(up, 1, 0, 0), (down, 1, 0, 0), (up, 2, 0, 0), (up, 1, 1, 0), (up, 1, 0, 1)]
            .map(|(shaped_link, run, stage, change)| shaped_link.seed(Seed(run), stage, change));
        assert!((1..seeds.len()).all(|at| !seeds[..at].contains(&seeds[at])));
    }
}
