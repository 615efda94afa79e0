//! The part of `[network]` that a router supports: one path that consists only of emulators.

use hol_network::{LossSpec, NetworkSpec, Settings, Topology};
use hol_traffic::{DropFilter, ShapedLink, Stage, Unsupported};

/// Keys of `[network]` that a router cannot emulate, because it emulates a single path that does not change.
const UNSUPPORTED_KEYS: [&str; 8] = ["events", "trace", "handover", "paths", "nodes", "links", "lans", "ip"];

const ONE_CONSTANT_PATH: &str = "a router emulates a single path, whose settings do not change during a run";

/// Returns the settings of both directions of the path: from the client to the server, and back. An error names
/// the first unsupported key.
pub(crate) fn shaped_links(spec: &NetworkSpec) -> Result<[ShapedLink; 2], Unsupported> {
    let value = |spec| serde_json::to_value(spec).expect("a network can be serialised");
    let (asked, usual) = (value(spec), value(&NetworkSpec::default()));
    if let Some(key) = UNSUPPORTED_KEYS.into_iter().find(|key| asked.get(key) != usual.get(key)) {
        return refuse(key, ONE_CONSTANT_PATH);
    }
    let network = Topology::new(spec)
        .map_err(|problem| Unsupported { what: "network".to_owned(), why: problem.to_string() })?;
    let lines: [ShapedLink; 2] =
        ShapedLink::from_topology(&network)?.try_into().expect("a path has two directions");
    lines.iter().try_for_each(check_supported)?;
    Ok(lines)
}

fn check_supported(line: &ShapedLink) -> Result<(), Unsupported> {
    let Settings { mtu, duplicate, .. } = &line.settings;
    if *mtu != Settings::default().mtu {
        return refuse(
            "mtu",
            "the MTU is that of the interfaces on the path (`ip link set dev … mtu …` changes it)",
        );
    }
    if !duplicate.is_zero() {
        return refuse("duplicate", "a router cannot duplicate packets");
    }
    if matches!(line.settings.loss, LossSpec::TimedBursts(_)) {
        return refuse(
            "loss = { good_for = … }",
            "the router's loss cannot change during a run; use good_to_bad and bad_to_good",
        );
    }
    line.stages(&line.settings).iter().try_for_each(|stage| match stage {
        Stage::Emulator(_) => Ok(()),
        Stage::Filter(DropFilter::Admit(_) | DropFilter::Release) => {
            refuse("queue", "the router's queue counts packets: use packets, as in queue = \"100p\"")
        }
        Stage::Filter(DropFilter::Drop(_)) => {
            refuse("loss = { drop = … }", "the router supports only random loss")
        }
        Stage::Filter(DropFilter::Wake) => refuse("events", ONE_CONSTANT_PATH),
        Stage::Filter(DropFilter::Police(_)) => refuse("police", "the router does not support police"),
        Stage::Shaper(_) | Stage::Queue(_) | Stage::Transit => {
            refuse("discipline", "the router's queue supports only droptail")
        }
    })
}

fn refuse<T>(key: &str, why: &str) -> Result<T, Unsupported> {
    let why = format!("{why}; remove the key, or use --world model or kernel");
    Err(Unsupported { what: format!("network.{key}"), why })
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;

    use super::*;

    fn of(text: &str) -> Result<[ShapedLink; 2], Unsupported> {
        shaped_links(&toml::from_str(text).unwrap())
    }

    #[test]
    fn the_settings_of_one_path_apply_to_both_directions() {
        let [up, down] = of("delay = '20ms'\njitter = '2ms'\njitter_distribution = 'normal'\nloss = '3%'\nqueue = '50p'\nrate = '5Mbit'
             overhead = '38B'\nreorder = '1%'\nreorder_by = '3ms'\ncorrupt = '1%'\ndown = { delay = '5ms' }")
        .unwrap();
        assert_eq!((up.name.as_str(), down.name.as_str()), ("link/1/up", "link/1/down"));
        assert_eq!(up.settings.delay, Duration::from_millis(20));
        assert_eq!(down.settings.delay, Duration::from_millis(5));
        of("loss = { good_to_bad = '1%', bad_to_good = '30%' }").unwrap();
        of("").unwrap();
    }

    #[test]
    fn unsupported_keys_are_refused_with_a_remedy() {
        for (text, key) in [
            ("events = [{ at = '1s', down = true }]", "network.events"),
            ("trace = 'a.csv'", "network.trace"),
            ("paths = [{}, {}]", "network.paths"),
            ("nodes = ['client', 'server']\nlinks = [{ from = 'client', to = 'server' }]", "network.nodes"),
            ("ip = 'v6'", "network.ip"),
            ("mtu = '1400B'", "network.mtu"),
            ("duplicate = '1%'", "network.duplicate"),
            ("queue = '64KiB'", "network.queue"),
            ("down = { queue = '64KiB' }", "network.queue"),
            ("loss = { good_for = '15s', bad_for = '1s' }", "network.loss = { good_for"),
            ("loss = { drop = [3] }", "network.loss = { drop"),
            ("police = { rate = '1Mbit', burst = '10kB' }", "network.police"),
            ("discipline = 'codel'", "network.discipline"),
            ("jitter = '1ms'\njitter_correlation = '50%'", "network.jitter_correlation"),
            ("channel = 'air'", "network.channel"),
        ] {
            let problem = of(text).unwrap_err().to_string();
            assert!(problem.contains(&format!("`{key}")) && problem.contains("model"), "{text}: {problem}");
        }
    }
}
