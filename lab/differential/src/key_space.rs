//! The keys and options that a scenario may have, from the JSON Schema and the stacks, so that every new key is drawn.

use hol_base::Rng;
use hol_stack::TransportSpec;
use serde_json::Value;

/// The deepest level of tables within tables.
const MAX_TABLE_DEPTH: usize = 3;

/// The keys of experiment files and the options of transports, from which random scenarios are drawn.
#[derive(Debug)]
pub struct KeySpace {
    schema: Value,
}

/// A key that may be drawn.
#[derive(Debug, Clone)]
pub(crate) struct Key<'s> {
    pub(crate) path: String,
    schema: &'s Value,
}

impl KeySpace {
    /// Reads the keys from the schema of experiment files.
    pub fn new() -> Self {
        Self { schema: hol_lab::schema() }
    }

    /// Resolves the `$ref`s of a schema: returns the schema to which they lead.
    fn resolve<'s>(&'s self, mut schema: &'s Value) -> &'s Value {
        loop {
            let one = schema["allOf"].get(0).unwrap_or(schema);
            let Some(name) = one["$ref"].as_str() else { return one };
            schema = &self.schema["definitions"][name.rsplit('/').next().unwrap_or_default()];
        }
    }

    /// Returns the names of workloads.
    pub(crate) fn workloads(&self) -> Vec<&str> {
        let kinds = self.schema["definitions"]["WorkloadSpec"]["oneOf"].as_array();
        kinds.into_iter().flatten().filter_map(|kind| kind["properties"]["kind"]["const"].as_str()).collect()
    }

    /// Returns the keys that may be drawn: those of a kind of workload, of the network, of each of its directions,
    /// and of the server's host.
    pub(crate) fn keys(&self, workload: &str) -> Vec<Key<'_>> {
        let kinds = self.schema["definitions"]["WorkloadSpec"]["oneOf"].as_array();
        let is_it = |kind: &&Value| kind["properties"]["kind"]["const"] == workload;
        let kind = kinds.into_iter().flatten().find(is_it);
        let direction = &self.schema["definitions"]["Overrides"];
        let tables = [
            ("workload", kind.unwrap_or(&Value::Null)),
            ("network", &self.schema["definitions"]["NetworkSpec"]),
            ("network.up", direction),
            ("network.down", direction),
            ("hosts.server", &self.schema["definitions"]["HostSpec"]),
        ];
        let keys = tables.into_iter().flat_map(|(table, schema)| {
            let keys = schema["properties"].as_object().into_iter().flatten();
            keys.filter(|(key, _)| *key != "kind")
                .map(move |(key, schema)| Key { path: format!("{table}.{key}"), schema })
        });
        keys.collect()
    }

    /// Draws a value of a key, as TOML; `None` if no valid value can be drawn, as for the name of a file.
    pub(crate) fn draw_value(&self, key: &Key<'_>, rng: &mut Rng) -> Option<String> {
        self.draw(key.schema, rng, 0)
    }

    fn draw(&self, schema: &Value, rng: &mut Rng, depth: usize) -> Option<String> {
        let schema = self.resolve(schema);
        let choices = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
        if let Some(choices) = choices {
            return self.draw(pick(rng, choices)?, rng, depth);
        }
        if let Some(word) = schema["const"].as_str() {
            return Some(format!("{word:?}"));
        }
        if let Some(words) = schema["enum"].as_array() {
            return pick(rng, words)?.as_str().map(|word| format!("{word:?}"));
        }
        match schema["type"].as_str()? {
            "boolean" => Some(rng.chance(0.5).to_string()),
            "integer" => Some(whole_number(schema, rng).to_string()),
            "number" => Some(format!("{:.4}", log_uniform(rng, 0.001, 1.0))),
            "string" => draw_quantity(schema["description"].as_str().unwrap_or_default(), rng),
            "object" if depth < MAX_TABLE_DEPTH => self.draw_table(schema, rng, depth + 1),
            "array" if depth < MAX_TABLE_DEPTH => {
                let items = (0..1 + rng.below(2)).map(|_| self.draw(&schema["items"], rng, depth + 1));
                Some(format!("[{}]", items.collect::<Option<Vec<_>>>()?.join(", ")))
            }
            _ => None,
        }
    }

    /// Draws a table with its required keys and some of the others.
    fn draw_table(&self, schema: &Value, rng: &mut Rng, depth: usize) -> Option<String> {
        let required = schema["required"].as_array();
        let is_required = |key: &str| required.is_some_and(|keys| keys.iter().any(|name| name == key));
        let mut entries = Vec::new();
        for (key, schema) in schema["properties"].as_object()? {
            let value = if is_required(key) {
                Some(self.draw(schema, rng, depth)?)
            } else {
                rng.chance(0.3).then(|| self.draw(schema, rng, depth)).flatten()
            };
            entries.extend(value.map(|value| format!("{key} = {value}")));
        }
        Some(format!("{{ {} }}", entries.join(", ")))
    }

    /// Draws options of a transport, each with a valid value. Options whose values are words are left out, because the
    /// schema does not list these words.
    pub(crate) fn draw_options(&self, protocol: &str, rng: &mut Rng) -> Vec<(String, String)> {
        let Ok(spec) = protocol.parse::<TransportSpec>() else { return Vec::new() };
        let varied = |(key, value): (&String, &toml::Value)| Some((key.clone(), vary(value, rng)?));
        let mut options: Vec<(String, String)> = spec.option_values().iter().filter_map(varied).collect();
        let extra: &[(&str, &str)] = match protocol {
            "tcp" => &[
                ("connections", "3"),
                ("nagle", "on"),
                ("cc", "reno"),
                ("cc", "bbr"),
                ("cc", "dctcp"),
                ("tls", "full"),
                ("tls", "resumed"),
                ("tls", "early"),
            ],
            "sctp" => &[
                ("streams", "8"),
                ("associations", "2"),
                ("single_homed", "true"),
                ("unordered", "true"),
                ("lifetime", "150ms"),
                ("retransmissions", "1"),
                ("scheduler", "rr"),
                ("socket", "one-to-many"),
                // So short that cookies become stale.
                ("valid_cookie_life", "20ms"),
            ],
            "quic" => &[
                ("connections", "3"),
                ("per_message", "true"),
                ("datagrams", "true"),
                ("zero_rtt", "true"),
                ("congestion", "bbr"),
                ("congestion", "newreno"),
                ("time_threshold", "1.5"),
            ],
            _ => &[],
        };
        options.extend(extra.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        options
    }
}

impl Default for KeySpace {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns a value of an option that differs from its default; `None` if there is none.
fn vary(value: &toml::Value, rng: &mut Rng) -> Option<String> {
    match value {
        toml::Value::Boolean(is_on) => Some((!is_on).to_string()),
        toml::Value::Integer(number) => {
            let number = if rng.chance(0.5) { number * 2 } else { number / 2 };
            Some(number.max(1).to_string())
        }
        toml::Value::String(text) => {
            let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
            let factor = *pick(rng, &[0.25, 0.5, 2.0, 4.0])?;
            Some(format!("{}{unit}", (number * factor).round().max(1.0)))
        }
        _ => None,
    }
}

/// Returns a random element of `choices`; `None` if there are none.
pub(crate) fn pick<'c, T>(rng: &mut Rng, choices: &'c [T]) -> Option<&'c T> {
    let count = choices.len() as u64;
    (count > 0).then(|| &choices[rng.below(count) as usize])
}

/// Draws a number between `low` and `high` whose logarithm is uniformly distributed.
pub(crate) fn log_uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.uniform())
}

fn whole_number(schema: &Value, rng: &mut Rng) -> u64 {
    let min = schema["minimum"].as_u64().unwrap_or(0).max(1);
    let max = schema["maximum"].as_u64().unwrap_or(u64::MAX).min(min.saturating_add(20));
    min + rng.below(max - min + 1)
}

/// Draws a quantity, such as a time, with its unit. `about` is the description of its type in the schema, which
/// names the quantity.
fn draw_quantity(about: &str, rng: &mut Rng) -> Option<String> {
    let text = if about.starts_with("a time") {
        format!("{:.1}ms", log_uniform(rng, 0.2, 300.0))
    } else if about.starts_with("a percentage") {
        format!("{:.2}%", log_uniform(rng, 0.1, 10.0))
    } else if about.starts_with("a bit rate") {
        format!("{:.0}kbit", log_uniform(rng, 200.0, 1_000_000.0))
    } else if about.starts_with("a rate") {
        format!("{:.1}/s", log_uniform(rng, 1.0, 2000.0))
    } else if about.starts_with("a size") {
        format!("{:.0}B", log_uniform(rng, 1.0, 65_000.0))
    } else if about.starts_with("a queue limit") {
        format!("{:.0}p", log_uniform(rng, 3.0, 1000.0))
    } else {
        return None;
    };
    Some(format!("{text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Seed;

    #[test]
    fn every_key_with_a_unit_has_values() {
        let space = KeySpace::new();
        let mut rng = Seed(1).rng();
        let keys = space.keys("echo");
        for path in [
            "workload.size",
            "workload.rate",
            "network.delay",
            "network.up.loss",
            "network.ip",
            "network.path",
        ] {
            let key = keys.iter().find(|key| key.path == path).unwrap_or_else(|| panic!("{path}"));
            assert!((0..20).any(|_| space.draw_value(key, &mut rng).is_some()), "{path}");
        }
        assert!(space.workloads().contains(&"bulk"));
    }

    #[test]
    fn options_are_varied_except_those_with_names_as_values() {
        let options = KeySpace::new().draw_options("sctp", &mut Seed(1).rng());
        let value =
            |key: &str| options.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
        assert_eq!(value("partial_reliability"), Some("false"));
        assert!(value("rto_min").is_some_and(|value| value.ends_with('s')));
        assert_eq!(value("idle_decay"), None);
        // Options that are off by default are drawn, too.
        let options = KeySpace::new().draw_options("tcp", &mut Seed(1).rng());
        for key in ["user_timeout", "keepalive", "keepalive_interval", "keepalive_probes"] {
            assert!(options.iter().any(|(known, value)| known == key && value != "0s"), "{key}");
        }
    }

    /// A new option is drawn, or is listed here because the worlds cannot differ in it or only one has it.
    #[test]
    fn options_that_are_never_drawn_are_known() {
        let never: [(&str, &[&str]); 4] = [
            // Kernel world only; rules of other kernels and of RFCs, which Linux 6.12 cannot be set to.
            ("tcp", &["metrics_cache", "congestion_unit", "rate_halving", "recovery", "rtt_estimator"]),
            // Kernel world only; fixed in Linux; read by the schedulers other than `rr`.
            ("sctp", &["no_checksums", "auth_hash", "idle_decay", "stream_values"]),
            // Retransmissions of the application, which is the same in both worlds.
            ("udp", &["sip"]),
            ("quic", &[]),
        ];
        for (protocol, never) in never {
            let spec: TransportSpec = protocol.parse().unwrap();
            let mut drawn = KeySpace::new().draw_options(protocol, &mut Seed(1).rng());
            drawn
                .iter_mut()
                .filter(|(key, _)| key == "cc")
                .for_each(|(key, _)| *key = "congestion".to_owned());
            let of_application = spec.kind().application_options().iter().map(|(name, _)| *name);
            let values = spec.option_values();
            let all = of_application.chain(values.keys().map(String::as_str));
            let missing: Vec<&str> =
                all.filter(|name| !drawn.iter().any(|(known, _)| known == name)).collect();
            assert_eq!(missing, never, "{protocol}");
        }
    }
}
