//! A random scenario: settings of an experiment file, each of which can be removed.

use hol_lab::{Experiment, InputError, Point, Source};
use hol_stack::{DEFAULT_STACK, TransportSpec, stack_of_linux};

/// Options that set the memory that a packet uses, with the values of a distribution's kernel. Such a kernel reserves
/// room for the headers of wireless LAN and tunnels (MAX_TCP_HEADER and SKB_SMALL_HEAD_CACHE_SIZE).
const PACKET_MEMORY_OPTIONS: [(&str, (&str, &str)); 2] =
    [("tcp", ("packet_head", "640B")), ("sctp", ("send_buffer_small_block", "704B"))];

/// Returns the options that the model needs for a comparison with the world called `other`: the stack of that
/// world's kernel and, for a distribution's kernel, the memory of a packet or, for User-Mode Linux, a wake-up time
/// of zero.
pub fn assumed_options(protocol: &str, other: &str) -> Vec<(&'static str, &'static str)> {
    let Some(kernel) = other.strip_prefix("kernel:") else { return Vec::new() };
    let mut options = Vec::new();
    let stack = stack_of_linux(kernel);
    if stack.name != DEFAULT_STACK && stack.table(protocol).is_some() {
        options.push(("stack", stack.name));
    }
    if !has_instant_computation(other) {
        options.extend(
            PACKET_MEMORY_OPTIONS.into_iter().filter(|(own, _)| *own == protocol).map(|(_, option)| option),
        );
    } else if has_wakeup(protocol) {
        options.push(("wakeup", "0s"));
    }
    options
}

/// Returns a point of the model with the options that a comparison with the world called `other` needs.
/// Options that the user set keep their values.
pub fn point_to_compare(point: &Point, other: &str) -> Point {
    let mut transport = point.transport.to_string();
    let named: Vec<String> =
        transport.split([':', ',']).filter_map(|option| Some(option.split_once('=')?.0.to_owned())).collect();
    let options = assumed_options(point.transport.kind().name(), other);
    for (key, value) in options.into_iter().filter(|(key, _)| !named.iter().any(|own| own == key)) {
        let separator = if transport.contains(':') { ',' } else { ':' };
        transport.push_str(&format!("{separator}{key}={value}"));
    }
    let transport = transport.parse().expect("the transport has this option");
    let mut beside = Point { transport, ..point.clone() };
    beside.id = beside.identity();
    beside
}

/// Returns whether computation takes no time in the world of this name: the model, or User-Mode Linux.
pub(crate) fn has_instant_computation(world: &str) -> bool {
    !world.starts_with("kernel:") || world.ends_with("-uml")
}

/// Returns whether the model's endpoints of this protocol have the option `wakeup`.
fn has_wakeup(protocol: &str) -> bool {
    protocol.parse::<TransportSpec>().is_ok_and(|spec| spec.option_values().contains_key("wakeup"))
}

/// A random scenario, stored as the keys that it sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomScenario {
    /// The name of the scenario and, with `.toml`, of its experiment file.
    pub name: String,
    /// The transport protocol, such as `tcp`.
    pub protocol: String,
    /// Options of the transport, with their names and values as in `sctp:streams=8`.
    pub options: Vec<(String, String)>,
    /// Options that the first world needs to behave like the second one.
    pub assumed: Vec<(String, String)>,
    /// Dotted keys of the experiment file, with their values as TOML.
    pub settings: Vec<(String, String)>,
}

impl RandomScenario {
    /// Returns the transport with its options as text: `sctp:streams=8`.
    pub fn transport(&self) -> String {
        self.specification(self.options.iter())
    }

    fn specification<'o>(&self, options: impl Iterator<Item = &'o (String, String)>) -> String {
        let options: Vec<String> = options.map(|(key, value)| format!("{key}={value}")).collect();
        if options.is_empty() {
            self.protocol.clone()
        } else {
            format!("{}:{}", self.protocol, options.join(","))
        }
    }

    /// Returns the value of a key.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Returns the scenario's family: the transport's protocol and the workload as one name.
    pub fn family(&self) -> String {
        format!("{} {}", self.protocol, self.kind())
    }

    /// Returns the kind of the scenario's workload, such as `rpc`.
    pub(crate) fn kind(&self) -> &str {
        self.value("workload.kind").unwrap_or("simco").trim_matches('"')
    }

    /// Returns whether the packets depend on the seed. They do if the scenario sets a probability, if its
    /// path is a named one (with jitter or loss), or if its transport is MPTCP (with random keys).
    pub fn has_randomness(&self) -> bool {
        let is_by_chance = |(key, value): &(String, String)| {
            key == "network.path" || value.contains('%') || value.contains("poisson")
        };
        self.protocol == "mptcp" || self.settings.iter().any(is_by_chance)
    }

    fn source(&self, transport: &str) -> Result<Source, InputError> {
        let mut source = Source::new(format!("{}.toml", self.name), "repetitions = 1\n");
        source.set("transports", "transports", &format!("[{transport:?}]"))?;
        self.settings.iter().try_for_each(|(key, value)| source.set(key, key, value))?;
        Ok(source)
    }

    /// Returns the only point of the scenario's experiment, or an error if settings contradict each other.
    pub fn point(&self) -> Result<Point, InputError> {
        self.point_over(&self.transport())
    }

    /// Returns the only point of the scenario's experiment with the assumed options, for the first world.
    pub fn point_with_assumed_options(&self) -> Result<Point, InputError> {
        self.point_over(&self.specification(self.options.iter().chain(&self.assumed)))
    }

    fn point_over(&self, transport: &str) -> Result<Point, InputError> {
        let source = self.source(transport)?;
        // The worlds decide themselves whether they can run the point.
        let mut points = Experiment::parse_for_any_machine(&self.name, &source)?.points;
        points.truncate(1);
        points.pop().ok_or_else(|| InputError { place: self.name.clone(), problem: "no point".to_owned() })
    }

    /// Returns the text of the scenario's experiment file.
    pub fn experiment_text(&self) -> Result<String, InputError> {
        self.source(&self.transport())?.merged().map(|table| table.to_string())
    }

    /// Returns the command of hol that runs the scenario.
    pub fn command(&self) -> String {
        let settings = self.settings.iter().map(|(key, value)| format!(" --set '{key}={value}'"));
        format!("hol trace {} --repetitions 1{}", self.transport(), settings.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The model's QUIC was compared with a kernel that wakes programs at once, and took 25 µs for it.
    #[test]
    fn wakeup_time_is_removed_for_every_protocol_that_has_it() {
        let with_wakeup: Vec<&str> =
            ["tcp", "sctp", "quic", "udp"].into_iter().filter(|protocol| has_wakeup(protocol)).collect();
        assert_eq!(with_wakeup, ["tcp", "sctp", "quic"]);
        assert!("quic:wakeup=0s".parse::<TransportSpec>().is_ok());
    }

    #[test]
    fn options_that_the_user_named_stay() {
        for (transport, other, expected) in [
            ("tcp", "kernel:6.12.117-uml", "tcp:wakeup=0s"),
            ("tcp:wakeup=25us", "kernel:6.12.117-uml", "tcp:wakeup=25us"),
            ("tcp:cc=reno,packet_head=512B", "kernel:6.12.117", "tcp:cc=reno,packet_head=512B"),
            ("tcp:stack=linux-6.12", "kernel:7.3.4-uml", "tcp:stack=linux-6.12,wakeup=0s"),
            ("sctp:stack=rfc", "kernel:6.12.117", "sctp:stack=rfc,send_buffer_small_block=704B"),
        ] {
            let source = Source::new("t.toml", format!("transports = ['{transport}']"));
            let point = &Experiment::parse("t", &source).unwrap().points[0];
            let beside = point_to_compare(point, other);
            let expected: TransportSpec = expected.parse().unwrap();
            assert_eq!(beside.transport, expected, "{transport} beside {other}");
            assert_eq!(beside.id, beside.identity());
        }
    }

    #[test]
    fn the_model_is_configured_as_the_kernel_that_it_is_compared_with() {
        let options = |world, protocol| {
            let options = assumed_options(protocol, world);
            options.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
        };
        assert_eq!(options("model", "tcp"), "");
        assert_eq!(options("kernel:6.12.117-uml", "tcp"), "wakeup=0s");
        assert_eq!(options("kernel:6.12.117+deb12-amd64", "tcp"), "packet_head=640B");
        assert_eq!(options("kernel:7.3.4+deb13-amd64", "tcp"), "stack=linux-7.3,packet_head=640B");
        assert_eq!(
            options("kernel:7.3.4+deb13-amd64", "sctp"),
            "stack=linux-7.3,send_buffer_small_block=704B"
        );
        assert_eq!(options("kernel:7.3.4-uml", "quic"), "wakeup=0s");
        for options in ["tcp:stack=linux-7.3,packet_head=640B", "sctp:send_buffer_small_block=704B"] {
            assert!(options.parse::<TransportSpec>().is_ok(), "{options}");
        }
    }
}
