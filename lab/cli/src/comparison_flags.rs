//! The flags that describe one comparison; each stands for a key of an experiment file.

use clap::Args;
use hol_base::BitRate;
use hol_lab::{Experiment, FLAGS, InputError, Source};
use hol_network::{NamedPath, NetworkSpec};
use hol_stack::TransportSpec;
use hol_workloads::WorkloadKind;

use crate::failure::Failure;
use crate::number::{parse_positive_number, parse_whole_number};
use crate::peer::PeerArgs;

/// The workload and the conditions of a comparison.
#[derive(Debug, Args)]
pub struct ComparisonFlags {
    /// Workload [default: rpc; simco with --mix or --filter]
    #[arg(long, value_name = "KIND", value_parser = workloads())]
    workload: Option<String>,
    /// Messages per second [default: 100/s]
    #[arg(long, value_name = "100/s", allow_hyphen_values = true)]
    rate: Option<String>,
    /// Distribution of the intervals between messages [default: poisson for rpc, otherwise periodic]
    #[arg(long, value_parser = ["periodic", "poisson"])]
    arrivals: Option<String>,
    /// Size of rpc's requests, or sizes with weights, as in 200B=9,5kB=1 [default: 200B]
    #[arg(long, value_name = "200B", allow_hyphen_values = true)]
    request: Option<String>,
    /// Size of rpc's replies, or sizes with weights, as in 1kB=9,200kB=1 [default: 1kB]
    #[arg(long, value_name = "1kB", allow_hyphen_values = true)]
    reply: Option<String>,
    /// Size of the messages of echo, pingpong, oneway and bulk [default: 128B; bulk: 4096B]
    #[arg(long, value_name = "128B", allow_hyphen_values = true)]
    size: Option<String>,
    /// Weights of simco's requests: enable a rule, change its lifetime or delete it [default: enable=1]
    #[arg(long, value_name = "enable=2,lifetime=1,delete=1")]
    mix: Option<String>,
    /// Packet filter with which simco's server enforces rules; nftables only in the kernel world [default: none]
    #[arg(long, value_parser = ["none", "nftables"])]
    filter: Option<String>,
    /// Number of messages in all repetitions together [default: 10000]
    #[arg(long, value_name = "N", value_parser = parse_whole_number, allow_negative_numbers = true)]
    count: Option<u64>,
    #[command(flatten)]
    conditions: Conditions,
}

/// Network, repetitions, seed and world of a comparison.
#[derive(Debug, Args)]
pub struct Conditions {
    /// Named path, which sets delay, jitter, loss, rate and queue; other options override it; `hol list paths` shows all [default: none]
    #[arg(long, value_name = "NAME", value_parser = paths())]
    path: Option<String>,
    /// One-way delay, the same in both directions [default: 10ms]
    #[arg(long, value_name = "10ms", allow_hyphen_values = true)]
    delay: Option<String>,
    /// Round-trip propagation delay, instead of --delay: half of it in each direction
    #[arg(long, value_name = "20ms", allow_hyphen_values = true, conflicts_with = "delay")]
    rtt: Option<String>,
    /// Packet loss in each direction [default: 0%]
    #[arg(long, value_name = "1%", allow_hyphen_values = true)]
    loss: Option<String>,
    /// Bit rate in each direction [default: 100Mbit]
    #[arg(long, value_name = "100Mbit", allow_hyphen_values = true)]
    bandwidth: Option<String>,
    /// Capacity of the queue in each direction, in packets or octets, such as 100p or 150kB [default: 1000p]
    #[arg(long, value_name = "1000p", allow_hyphen_values = true)]
    queue: Option<String>,
    /// Number of independent repetitions; each has its own random losses, the same for all transports [default: 10]
    #[arg(long, value_name = "R", value_parser = parse_positive_number, allow_negative_numbers = true)]
    repetitions: Option<usize>,
    /// Seed of all random numbers [default: 1]
    #[arg(long, value_name = "S", value_parser = parse_whole_number, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Where to run: model (simulated), kernel (Linux in a virtual machine; kernel:6.1 chooses a version, kernel:uml is
    /// User-Mode Linux) or live (this machine's sockets; live:namespaces uses network namespaces; --peer and --router use
    /// other hosts) [default: model; kernel for programs]
    #[arg(long)]
    world: Option<String>,
    #[command(flatten)]
    peer: PeerArgs,
    /// Set any key of an experiment file, as in network.jitter=2ms; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
}

/// Returns the names of all workloads except `programs`, which needs `hol exec`.
fn workloads() -> clap::builder::PossibleValuesParser {
    let ours = WorkloadKind::all().into_iter().filter(|kind| !matches!(kind, WorkloadKind::Programs(_)));
    ours.map(|kind| kind.workload().name()).collect::<Vec<_>>().into()
}

/// Returns the names of all paths.
fn paths() -> clap::builder::PossibleValuesParser {
    NamedPath::ALL.iter().map(|path| path.name()).collect::<Vec<_>>().into()
}

/// The keys that have a default value in a comparison, with this value.
const DEFAULTS: [(&str, &str); 4] =
    [("messages", "10000"), ("repetitions", "10"), ("seed", "1"), ("workload.kind", "rpc")];

impl ComparisonFlags {
    /// Returns the experiment that these flags describe.
    pub fn experiment(&self, transports: &[String]) -> Result<Experiment, InputError> {
        Experiment::parse("compare", &self.source(transports)?)
    }

    /// Returns the experiment as the text of a file.
    pub fn source(&self, transports: &[String]) -> Result<Source, InputError> {
        let mut source = source_with_transports(transports)?;
        self.refuse_mistaken_flags()?;
        self.apply(&mut source)?;
        if !source.sets("workload.kind") && (self.mix.is_some() || self.filter.is_some()) {
            source.set("--mix or --filter", "workload.kind", "simco")?;
        }
        for (key, value) in DEFAULTS {
            if !source.sets(key) {
                source.set(&format!("{key} (the default)"), key, value)?;
            }
        }
        Ok(source)
    }

    /// Returns an error for flags that have another meaning in other tools or for other workloads.
    fn refuse_mistaken_flags(&self) -> Result<(), InputError> {
        if let Some(rate) = self.rate.as_deref().filter(|rate| rate.parse::<BitRate>().is_ok()) {
            let cure = format!(
                "this is the rate of messages; for the bit rate of the path write --bandwidth {rate}"
            );
            return Err(input_error(&format!("--rate {rate}"), cure));
        }
        let is_rpc = self
            .workload
            .as_deref()
            .map_or(self.mix.is_none() && self.filter.is_none(), |kind| kind == "rpc");
        match &self.size {
            Some(size) if is_rpc => {
                let cure = format!("rpc has requests and replies; write --request {size} or --reply {size}");
                Err(input_error(&format!("--size {size}"), cure))
            }
            _ => Ok(()),
        }
    }

    /// Makes the secret in the file of --secret-file available to live runs, if that flag is set.
    pub fn set_secret(&self) -> Result<(), Failure> {
        self.conditions.set_secret()
    }

    /// Returns whether `hol` chooses the number of messages and repetitions, because the user gave neither.
    pub fn has_automatic_counts(&self) -> bool {
        let sets = |key: &str| self.conditions.sets(key);
        self.count.is_none()
            && !self.conditions.has_repetitions()
            && !["messages", "repetitions", "precision"].into_iter().any(sets)
    }

    /// Describes the named path and the settings of `--set`: `, path lte, with network.up.loss=100%`.
    pub fn overrides(&self) -> String {
        self.conditions.overrides()
    }

    /// Returns the first `--set` option that makes the comparison a sweep: one with a key of `[sweep]` or `[[zip]]`.
    pub fn sweep_setting(&self) -> Option<&str> {
        self.conditions.sweep_setting()
    }

    /// Adds to `source` the keys of the flags that the user gave.
    pub fn apply(&self, source: &mut Source) -> Result<(), InputError> {
        let text = |value: &Option<String>| value.as_ref().map(|text| format!("{text:?}"));
        let flags = [
            ("--count", self.count.map(|count| count.to_string())),
            ("--workload", text(&self.workload)),
            ("--rate", text(&self.rate)),
            ("--arrivals", text(&self.arrivals)),
            ("--request", self.request.as_deref().map(sizes_as_toml)),
            ("--reply", self.reply.as_deref().map(sizes_as_toml)),
            ("--size", text(&self.size)),
            ("--mix", self.mix.as_ref().map(|weights| format!("{{{weights}}}"))),
            ("--filter", text(&self.filter)),
        ];
        set_flags(source, flags)?;
        self.conditions.apply(source)
    }
}

impl Conditions {
    /// Adds to `source` the keys of the flags that the user gave.
    pub fn apply(&self, source: &mut Source) -> Result<(), InputError> {
        let world = self.world()?.map(|world| format!("{world:?}"));
        set_flags(source, [("--world", world)])?;
        self.apply_except_world(source)
    }

    /// Adds to `source` the keys of the flags that the user gave, except the world.
    pub fn apply_except_world(&self, source: &mut Source) -> Result<(), InputError> {
        let text = |value: &Option<String>| value.as_ref().map(|text| format!("{text:?}"));
        let flags = [
            ("--repetitions", self.repetitions.map(|count| count.to_string())),
            ("--seed", self.seed.map(|seed| seed.to_string())),
            ("--path", text(&self.path)),
            ("--delay", text(&self.delay)),
            ("--rtt", text(&self.rtt)),
            ("--loss", text(&self.loss)),
            ("--bandwidth", text(&self.bandwidth)),
            ("--queue", text(&self.queue)),
        ];
        set_flags(source, flags)?;
        apply_settings(source, &self.settings)
    }

    /// Returns the name of the world that the user chose, including the other hosts; `None` if no flag names one.
    pub fn world(&self) -> Result<Option<String>, InputError> {
        self.peer.world(self.world.as_ref())
    }

    /// Makes the secret in the file of --secret-file available to live runs, if that flag is set.
    pub fn set_secret(&self) -> Result<(), Failure> {
        self.peer.set_secret()
    }

    /// Returns whether an option `--set` sets this key.
    fn sets(&self, key: &str) -> bool {
        self.settings.iter().any(|setting| setting.split('=').next().is_some_and(|set| set.trim() == key))
    }

    /// Returns whether the user gave the number of repetitions.
    pub const fn has_repetitions(&self) -> bool {
        self.repetitions.is_some()
    }

    /// Describes the named path and the settings of `--set`: `, path lte, with network.up.loss=100%`.
    pub fn overrides(&self) -> String {
        let path = self.path.as_ref().map_or(String::new(), |name| format!(", path {name}"));
        let given = self.settings.join(" ");
        if given.is_empty() { path } else { format!("{path}, with {given}") }
    }

    /// Returns the first `--set` option that makes the comparison a sweep: one with a key of `[sweep]` or `[[zip]]`.
    pub fn sweep_setting(&self) -> Option<&str> {
        let is_sweep = |setting: &&String| {
            let key = setting.split(['=', '.']).next().unwrap_or_default().trim();
            ["sweep", "zip"].contains(&key)
        };
        self.settings.iter().find(is_sweep).map(String::as_str)
    }
}

/// Converts a size or a mix of sizes to TOML: `1kB=9,200kB=1` becomes a table.
fn sizes_as_toml(text: &str) -> String {
    if !text.contains('=') {
        return format!("{text:?}");
    }
    let entry = |entry: &str| match entry.split_once('=') {
        Some((size, weight)) => format!("{:?} = {}", size.trim(), weight.trim()),
        None => format!("{entry:?}"),
    };
    format!("{{ {} }}", text.split(',').map(entry).collect::<Vec<_>>().join(", "))
}

/// Adds to `source` the key of each flag that has a value. Values are TOML.
fn set_flags<const N: usize>(
    source: &mut Source,
    flags: [(&str, Option<String>); N],
) -> Result<(), InputError> {
    for (flag, value) in flags {
        if let Some(value) = value {
            let (_, key) =
                FLAGS.iter().find(|(known, _)| *known == flag).expect("FLAGS has a key for each flag");
            set_flag(source, flag, key, &value)?;
        }
    }
    Ok(())
}

/// Returns the source of an experiment that is given on the command line. It contains only these transports.
pub fn source_with_transports(transports: &[String]) -> Result<Source, InputError> {
    for (transport, number) in transports.iter().zip(1..) {
        let place = format!("transport {number}");
        transport.parse::<TransportSpec>().map_err(|e| input_error(&place, e.to_string()))?;
    }
    // Relative paths refer to the working directory.
    let mut source = Source::new("command line", "").with_directory(std::path::PathBuf::new());
    source.set("TRANSPORT", "transports", &format!("{transports:?}"))?;
    Ok(source)
}

/// Applies the options `--set key=value` to the source.
pub fn apply_settings(source: &mut Source, settings: &[String]) -> Result<(), InputError> {
    for setting in settings {
        let origin = format!("--set {setting}");
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| input_error(&origin, "write key=value, as in --set network.loss=1%".to_owned()))?;
        if is_network_key(key.trim()) {
            let key = key.trim();
            return Err(input_error(
                &origin,
                format!("{key:?} is a key of [network]; write network.{key}={}", value.trim()),
            ));
        }
        source.set(&origin, key.trim(), value.trim())?;
    }
    Ok(())
}

/// Returns whether a key belongs to [network] and not to the top level of a file.
pub fn is_network_key(key: &str) -> bool {
    toml::Table::try_from(NetworkSpec::default()).is_ok_and(|table| table.contains_key(key))
}

fn set_flag(source: &mut Source, flag: &str, key: &str, value: &str) -> Result<(), InputError> {
    source.set(&format!("{flag} {}", value.trim_matches('"')), key, value)
}

fn input_error(place: &str, problem: String) -> InputError {
    InputError { place: place.to_owned(), problem }
}
