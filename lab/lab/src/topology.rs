//! `topology = "testlink.ns"`: an ns script as the network of an experiment.
//!
//! The `[network]` table starts from the script's network, so that its links can be swept and overridden like any others:
//! `"network.links.testlink.queue" = ["6p", "32p"]`, or `[network.links.testlink] jitter = "2ms"`.

use std::ops::Range;

use hol_testbed::Script;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::dotted_key::{assign, with_span};

/// The position of a mistake, and its description.
type Mistake = (Range<usize>, String);

/// Keys of `[network]` that an experiment with a script must not set, because the script sets them.
const SCRIPT_KEYS: [&str; 6] = ["nodes", "links", "lans", "paths", "up", "down"];

/// Returns the name of the script in `table`, and its position.
pub(crate) fn script_name(table: &DeTable<'_>) -> Result<Option<Spanned<String>>, Mistake> {
    let Some(value) = table.get("topology") else { return Ok(None) };
    match value.get_ref() {
        DeValue::String(name) => Ok(Some(Spanned::new(value.span(), name.to_string()))),
        _ => {
            let problem = "`topology` must be the name of an ns script, such as topology = \"testlink.ns\"";
            Err((value.span(), problem.to_owned()))
        }
    }
}

/// Returns the network of the script as the text of a `[network]` table.
pub(crate) fn network_text(script: &Script) -> String {
    toml::to_string(&script.network).expect("a network is a table")
}

/// Merges the script's network into the network of `table`, whose keys take precedence. Every position in the script's
/// network becomes `span`.
pub(crate) fn merge<'s>(
    table: &mut DeTable<'s>,
    network: &'s str,
    span: &Range<usize>,
) -> Result<(), Mistake> {
    let network = DeTable::parse(network).expect("the network is a table").into_inner();
    let mut network = with_span(network, span);
    if let Some(own) = table.remove("network") {
        let DeValue::Table(own) = own.into_inner() else {
            let problem = "beside `topology`, `network` must be a table, as in [network.links.NAME]";
            return Err((span.clone(), problem.to_owned()));
        };
        for (key, value) in own {
            if let ("links" | "lans", DeValue::Table(_)) = (key.get_ref().as_ref(), value.get_ref()) {
                refine(&mut network, key.get_ref(), value.into_inner())?;
                continue;
            }
            if SCRIPT_KEYS.contains(&key.get_ref().as_ref()) {
                let problem =
                    format!("the script of `topology` already defines {:?}; remove this key", key.get_ref());
                return Err((key.span(), problem));
            }
            network.remove(&key);
            network.insert(key, value);
        }
    }
    table.insert(
        Spanned::new(span.clone(), "network".into()),
        Spanned::new(span.clone(), DeValue::Table(network)),
    );
    Ok(())
}

/// Merges the keys that the experiment sets for single links or LANs into the script's network, by their names.
fn refine<'s>(network: &mut DeTable<'s>, list: &str, own: DeValue<'s>) -> Result<(), Mistake> {
    let DeValue::Table(own) = own else { return Ok(()) };
    for (name, settings) in own {
        let DeValue::Table(settings) = settings.into_inner() else {
            let problem = format!("{0:?} is a link or LAN; write [network.{list}.{0}]", name.get_ref());
            return Err((name.span(), problem));
        };
        for (key, value) in settings {
            if key.get_ref() == "path" {
                let problem = "`path` has no effect, because the script sets the rate, delay and queue of its links; set single keys \
                    instead";
                return Err((key.span(), problem.to_owned()));
            }
            let path = [list, name.get_ref(), key.get_ref()].map(str::to_owned);
            assign(network, &path, &key.span(), value).map_err(|problem| (name.span(), problem))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hol_network::Topology;

    use crate::error::InputError;
    use crate::experiment::Experiment;
    use crate::source::Source;

    const SCRIPT: &str = "set ns [new Simulator]\nset client [$ns node]\nset server [$ns node]\n\
        set testlink [$ns duplex-link $client $server 0.4Mb 25ms DropTail]\ntb-set-hardware $client pc850\n";

    fn parse(text: &str) -> Result<Experiment, InputError> {
        let text = format!("transports = ['tcp']\nmessages = 100\n{text}");
        Experiment::parse("t", &Source::new("t.toml", text).with_file("link.ns", SCRIPT))
    }

    #[test]
    fn the_script_is_the_network_and_its_links_can_be_swept_by_name() {
        let experiment = parse(
            "topology = 'link.ns'\n[network]\nmtu = '1400B'\n[sweep]\n\
             'network.links.testlink.queue' = ['6p', '32p']",
        )
        .unwrap();
        let queues: Vec<String> = experiment
            .points
            .iter()
            .map(|point| {
                let topology = Topology::new(&point.network).unwrap();
                let settings = &topology.links()[1].settings;
                assert_eq!((settings.rate.bits_per_second(), settings.mtu.0), (400_000, 1400));
                settings.queue.to_string()
            })
            .collect();
        assert_eq!(queues, ["6p", "32p"]);
        assert_eq!(
            experiment.ignored,
            ["link.ns:5: tb-set-hardware $client pc850: hosts are determined by the experiment's world"]
        );
    }

    #[test]
    fn the_command_line_may_name_another_script() {
        let mut source = Source::new("t.toml", "transports = ['tcp']\nmessages = 100\ntopology = 'none.ns'");
        source = source.with_file("link.ns", SCRIPT);
        source.set("--set", "topology", "link.ns").unwrap();
        source.set("--set", "network.links.0.delay", "75ms").unwrap();
        let experiment = Experiment::parse("t", &source).unwrap();
        assert_eq!(experiment.points[0].network.links[0].delay.unwrap().to_string(), "75ms");
    }

    #[test]
    fn errors_have_a_position() {
        for (text, place, cure) in [
            ("topology = 'none.ns'", "t.toml:3:12", "not found next to t.toml"),
            ("topology = 3", "t.toml:3:12", "name of an ns script"),
            ("topology = 'link.ns'\n[network]\nnodes = ['a']", "t.toml:5:1", "remove this key"),
            (
                "topology = 'link.ns'\n[network.links.none]\nqueue = '6p'\n[network.links.testlink]\nname = 'x'",
                "t.toml:",
                "",
            ),
            (
                "topology = 'link.ns'\n[network]\nlinks.testlink = '6p'",
                "t.toml:5:7",
                "write [network.links.testlink]",
            ),
            ("topology = 'link.ns'\n[network.links.testlink]\npath = 'lte'", "t.toml:5:1", "set single keys"),
            ("topology = 'link.ns'\n[network]\npath = 'lte'", "t.toml:5:8", "set it for each"),
            ("topology = 'link.ns'\n[network]\nrtae = '1Mbit'", "t.toml:5:1", "did you mean"),
            ("topology = 'link.ns'\n[sweep]\ntopology = ['link.ns']", "t.toml:5", "cannot be swept"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.starts_with(place) && error.contains(cure), "{text}: {error}");
        }
        let source = Source::new("t.toml", "transports = ['tcp']\ntopology = 'bad.ns'")
            .with_file("bad.ns", "set x $y");
        let error = Experiment::parse("t", &source).unwrap_err().to_string();
        assert!(error.starts_with("bad.ns:1:7: "), "{error}");
    }
}
