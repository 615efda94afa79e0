//! `path = "lte"`: replaces the name of a path with the path's settings, so that a result contains every
//! setting.
//!
//! This precedes deserialization, because afterwards a key that the file sets cannot be distinguished from a
//! default.

use hol_network::NamedPath;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::dotted_key::with_span;
use crate::error::InputError;
use crate::link_tables::for_each_link;
use crate::source::Source;

/// Keys of a `[network]` that consists of several links; each of these may have its own `path`.
const LONG_FORM_KEYS: [&str; 3] = ["nodes", "links", "lans"];

/// Replaces every `path` in the network of `table` with its settings.
pub(crate) fn resolve_paths(table: &mut DeTable<'_>, source: &Source) -> Result<(), InputError> {
    for_each_link(table, |link| {
        let has_links = LONG_FORM_KEYS.iter().any(|key| link.contains_key(*key));
        if let Some(name) = link.get("path").filter(|_| has_links) {
            let problem = "`path` describes one link, but this network has several; set it for each, as in \
                           links = [{ from = \"client\", to = \"router\", path = \"lte\" }]";
            return Err(source.error(&name.span(), problem));
        }
        replace(link, source)
    })
}

/// Replaces the `path` of one table with its settings. A key of the table overrides the path's key in both directions; a key of its
/// `up` or `down` overrides it in that direction.
fn replace(own: &mut DeTable<'_>, source: &Source) -> Result<(), InputError> {
    let Some(name) = own.remove("path") else { return Ok(()) };
    let path = match name.get_ref() {
        DeValue::String(name) => name.parse::<NamedPath>(),
        _ => Err("`path` needs a name in quotes, as in path = \"lte\"; `hol list paths` shows all names"
            .to_owned()),
    };
    let path = path.map_err(|problem| source.error(&name.span(), problem))?;
    let settings = DeTable::parse(path.text()).expect("a test reads every path").into_inner();
    let mut settings = with_span(settings, &name.span());
    for direction in ["up", "down"] {
        let Some(DeValue::Table(of_path)) = settings.get_mut(direction).map(Spanned::as_mut) else {
            continue;
        };
        own.keys().for_each(|key| drop(of_path.remove(key)));
        if let Some(DeValue::Table(of_own)) = own.get_mut(direction).map(Spanned::as_mut) {
            add(of_own, std::mem::take(of_path));
        }
    }
    add(own, settings);
    Ok(())
}

/// Adds to `own` the keys of `others` that it lacks.
fn add<'s>(own: &mut DeTable<'s>, others: DeTable<'s>) {
    for (key, value) in others {
        own.entry(key).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use hol_network::{NetworkSpec, Settings};

    use super::*;
    use crate::experiment::Experiment;

    fn parse(text: &str) -> Result<Experiment, InputError> {
        Experiment::parse_for_any_machine(
            "t",
            &Source::new("t.toml", format!("transports = ['tcp']\nmessages = 100\n{text}")),
        )
    }

    fn network(text: &str) -> NetworkSpec {
        parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).points[0].network.clone()
    }

    fn of_file(path: NamedPath) -> NetworkSpec {
        toml::from_str(path.text()).unwrap()
    }

    #[test]
    fn a_name_is_replaced_by_the_keys_of_its_file() {
        for path in NamedPath::ALL.iter().copied() {
            assert_eq!(network(&format!("network = {{ path = '{path}' }}")), of_file(path), "{path}");
        }
        let mut source = Source::new("command line", "transports = ['tcp']");
        source.set("--path lte", "network.path", "\"lte\"").unwrap();
        let experiment = Experiment::parse_for_any_machine("t", &source).unwrap();
        assert_eq!(experiment.points[0].network, of_file(NamedPath::Lte));
    }

    #[test]
    fn keys_next_to_a_name_override_one_or_both_directions() {
        let [up, down] = of_file(NamedPath::Lte).directions();
        let whole = network("[network]\npath = 'lte'\nrate = '1Mbit'\nloss = '1%'").directions();
        let rate = "1Mbit".parse().unwrap();
        assert_eq!(whole.clone().map(|settings| settings.rate), [rate, rate]);
        assert_eq!(
            whole.map(|settings| (settings.delay, settings.queue)),
            [(up.delay, up.queue), (down.delay, down.queue)]
        );
        let one = network("[network]\npath = 'lte'\nup.rate = '1Mbit'").directions();
        assert_eq!(one, [Settings { rate, ..up }, down]);
        let both = network("[network]\npath = 'lte'\nrate = '9Mbit'\nup.rate = '1Mbit'").directions();
        assert_eq!(both.map(|settings| settings.rate.to_string()), ["1Mbit", "9Mbit"]);
    }

    #[test]
    fn names_and_keys_next_to_them_can_be_swept() {
        let experiment =
            parse("[sweep]\n'network.path' = ['wifi', 'lte', 'starlink']\n'network.loss' = ['0%', '2%']")
                .unwrap();
        let points: Vec<_> =
            experiment.points.iter().map(|point| (point.to_string(), point.network.directions())).collect();
        assert_eq!(points.len(), 6);
        assert_eq!(points[3].0, "t: tcp network.path=lte network.loss=2%");
        let expected = of_file(NamedPath::Lte)
            .directions()
            .map(|settings| Settings { loss: points[3].1[0].loss.clone(), ..settings });
        assert_eq!(points[3].1, expected);
        assert_eq!(serde_json::to_value(&points[3].1[0].loss).unwrap(), "2%");
    }

    #[test]
    fn each_of_several_paths_and_links_may_have_a_name() {
        let spec = network("network.paths = [{ path = 'wifi' }, { path = 'lte', up = { rate = '1Mbit' } }]");
        assert_eq!(spec.directions(), of_file(NamedPath::Wifi).directions());
        let lte = spec.paths[1].clone();
        assert_eq!(lte.up.and_then(|up| up.rate).unwrap().to_string(), "1Mbit");
        assert_eq!(lte.down, of_file(NamedPath::Lte).down);
        let spec = network(
            "network.nodes = ['client', 'server']\nnetwork.links = [{ from = 'client', to = 'server', path = 'geo' }]",
        );
        assert_eq!(spec.links[0].delay.unwrap().to_string(), "300ms");
    }

    #[test]
    fn errors_have_a_position() {
        for (text, place, cure) in [
            ("network.path = 'wfi'", "t.toml:3:16", "did you mean \"wifi\"?"),
            ("network.path = 4", "t.toml:3:16", "path = \"lte\""),
            ("network.paths = [{}, { path = 'moon' }]", "t.toml:3:31", "use one of wifi, lte"),
            ("[sweep]\n'network.path' = ['lte', 'moon']", "t.toml:4:26", "use one of wifi, lte"),
            ("[network]\npath = 'lte'\nnodes = ['client', 'server']", "t.toml:4:8", "set it for each"),
            ("[network]\npath = 'lte'\ndelay = '1ms'", "t.toml:4:8", "lower `jitter` or raise `delay`"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.starts_with(place) && error.contains(cure), "{text}: {error}");
        }
    }
}
