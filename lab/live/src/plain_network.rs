//! Networks that only name nodes, and the keys of other networks that do more.

use hol_network::{LanSpec, LinkSpec, NetworkSpec};
use hol_scenario::Scenario;

/// Returns the part of a `[network]` table that names nodes, without the properties of links.
pub(crate) fn names_only(spec: &NetworkSpec) -> NetworkSpec {
    let link = |LinkSpec { from, to, name, .. }: &LinkSpec| {
        let link = LinkSpec::between(from.clone(), to.clone());
        LinkSpec { name: name.clone(), ..link }
    };
    let lan =
        |LanSpec { nodes, name, .. }: &LanSpec| LanSpec { name: name.clone(), ..LanSpec::of(nodes.clone()) };
    NetworkSpec {
        nodes: spec.nodes.clone(),
        links: spec.links.iter().map(link).collect(),
        lans: spec.lans.iter().map(lan).collect(),
        ..NetworkSpec::default()
    }
}

/// Returns the scenario for a host that does not change the path.
pub(crate) fn without_link_settings(scenario: &Scenario) -> Scenario {
    Scenario { network: names_only(&scenario.network), ..scenario.clone() }
}

/// Returns the first key whose value in a network differs from the `usual` one.
pub(crate) fn first_difference(asked: &NetworkSpec, usual: &NetworkSpec) -> Option<String> {
    let [asked, usual] =
        [asked, usual].map(|spec| serde_json::to_value(spec).expect("a network is plain data"));
    let mut keys = asked.as_object().into_iter().flatten();
    keys.find(|(key, value)| usual.get(key) != Some(value)).map(|(key, _)| key.clone())
}
