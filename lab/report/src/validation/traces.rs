//! The commands that write the packets of a run in both worlds.

use hol_lab::Point;
use hol_network::NetworkSpec;
use hol_stack::TransportSpec;
use hol_workloads::{WorkloadKind, WorkloadSpec};
use serde_json::Value;

use super::ComparedPoint;

/// Settings with a flag of their own.
const FLAGS: [(&str, &str); 8] = [
    ("network.delay", "--delay"),
    ("network.loss", "--loss"),
    ("network.rate", "--bandwidth"),
    ("network.queue", "--queue"),
    ("workload.kind", "--workload"),
    ("workload.rate", "--rate"),
    ("workload.arrivals", "--arrivals"),
    ("workload.size", "--size"),
];

impl ComparedPoint {
    /// Returns the commands that write the packets of the repetition [`furthest_repetition`](Self::furthest_repetition): in the
    /// kernel, in the model.
    pub fn trace_commands(&self) -> [String; 2] {
        let world = &self.point.world;
        let world = if world.is_default() { String::new() } else { format!(" --world {world}") };
        let kernel = self.trace_command(&self.point.transport);
        let model = self.trace_command(&self.model_transport);
        [format!("{kernel}{world} --pcap kernel.pcapng"), format!("{model} --pcap model.pcapng")]
    }

    /// Returns `hol trace` with every setting that is not the default.
    fn trace_command(&self, transport: &TransportSpec) -> String {
        let Point { messages, repetitions, seed, workload, .. } = &self.point;
        let network = self.point.network_of(self.furthest_repetition);
        let json = |settings: Result<Value, serde_json::Error>| settings.expect("settings are JSON");
        let usual = default_of_kind(workload);
        let mut text = format!("hol trace {}", quote(&transport.to_string()));
        for (table, settings, usual) in [
            ("network", serde_json::to_value(&*network), serde_json::to_value(NetworkSpec::default())),
            ("workload", serde_json::to_value(workload), serde_json::to_value(usual)),
        ] {
            let (settings, usual) = (json(settings), json(usual));
            for (key, value) in settings.as_object().into_iter().flatten() {
                if usual.get(key) != Some(value) {
                    text += &setting(&format!("{table}.{key}"), value);
                }
            }
        }
        let (min, furthest_repetition) = (repetitions.min, self.furthest_repetition);
        text + &format!(
            " --count {messages} --repetitions {min} --seed {seed} --repetition {furthest_repetition}"
        )
    }
}

/// Returns a workload of the same kind with default keys.
fn default_of_kind(workload: &WorkloadSpec) -> WorkloadSpec {
    let name = workload.kind.workload().name();
    let kind = WorkloadKind::all().into_iter().find(|kind| kind.workload().name() == name);
    WorkloadSpec::new(kind.unwrap_or_else(|| workload.kind.clone())).with_defaults()
}

fn setting(key: &str, value: &Value) -> String {
    let flag = FLAGS.iter().find(|(known, _)| *known == key).filter(|_| value.is_string());
    let inline = || toml::Value::try_from(value).map_or(String::new(), |value| value.to_string());
    let value = value.as_str().map_or_else(inline, str::to_owned);
    match flag {
        Some((_, flag)) => format!(" {flag} {}", quote(&value)),
        None => format!(" --set {}", quote(&format!("{key}={value}"))),
    }
}

/// Quotes a word for the shell.
fn quote(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "%./:=,_-".contains(letter);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::super::test_points::compared;

    #[test]
    fn trace_command_has_only_settings_that_are_not_defaults() {
        let text = "transports = ['sctp:streams=8']\nmessages = 2000\nrepetitions = 2\nseed = 7\n\
                    [network]\nloss = '1%'\njitter = '2ms'\n[workload]\nkind = 'simco'\nlate_limit = '1h'";
        let [kernel, model] = compared(text, &[20, 40], &[21, 21]).trace_commands();
        let run = "hol trace sctp:streams=8 --set network.jitter=2ms --loss 1% --set workload.late_limit=3600s \
                   --count 2000 --repetitions 2 --seed 7 --repetition 1";
        assert_eq!(model, format!("{run} --pcap model.pcapng"));
        assert_eq!(kernel, format!("{run} --pcap kernel.pcapng"), "the test's point is one of the model");
    }

    #[test]
    fn the_model_has_the_options_of_the_comparison() {
        let text = "transports = ['sctp']\nmessages = 200\nrepetitions = 2";
        let mut compared = compared(text, &[20, 40], &[21, 21]);
        compared.model_transport = "sctp:wakeup=0s".parse().unwrap();
        let [kernel, model] = compared.trace_commands();
        assert!(kernel.starts_with("hol trace sctp --") && model.starts_with("hol trace sctp:wakeup=0s --"));
    }

    /// The command starts a single run, so it lists the events of that run.
    #[test]
    fn trace_command_lists_events_for_a_random_start() {
        let text = "transports = ['tcp']\nmessages = 200\nrepetitions = 2\n[network]\ntrace = 'trace.csv'\ntrace_start = 'random'";
        let compared = compared(text, &[20, 40], &[21, 21]);
        let [_, model] = compared.trace_commands();
        assert!(!model.contains("network.trace"), "{model}");
        let event = compared.point.scenario(1).network.events[1].clone();
        let written = format!("at = \"{}\", direction = \"both\", rate = \"9Mbit\"", event.at);
        assert!(model.contains("--set 'network.events=[") && model.contains(&written), "{written}: {model}");
        assert_ne!(compared.point.scenario(0).network.events[1], event);
    }
}
