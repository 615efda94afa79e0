//! A parsed script: its settings and steps.

use std::path::Path;

use hol_base::Duration;
use hol_stack::ProtocolKind;

use crate::call::Call;
use crate::source::{Statement, split_statements};
use crate::step_time::StepTime;
use crate::sysctl::Setting;
use crate::tokens::{Tokens, number};
use crate::{PlayError, PlayRules, shell};

/// The action of a step.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// The application makes a system call.
    Call(Call),
    /// A packet arrives from the peer.
    Inbound(String),
    /// The endpoint must send this packet.
    Outbound(String),
    /// The endpoint must send nothing until the time of the step.
    Silence,
    /// Python code of the script, such as `%{ assert name == value }%`.
    Code(String),
    /// A shell command that changes settings: `` `sysctl ...` ``.
    Configure(Vec<Setting>),
}

/// A step of a script: an action and its time.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// Line number of the step in the script.
    pub(crate) line: usize,
    pub(crate) time: StepTime,
    pub(crate) action: Action,
}

/// A script whose lines have been parsed.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// The stacks that the script names for playing it; empty if it names none.
    stacks: Vec<String>,
    /// Transport options that override those of the stack, such as `sack=false`.
    options: Vec<String>,
    /// Maximum deviation of a step's time from the script.
    pub(crate) tolerance: Duration,
    /// Length of one tick of the timestamp clock; `None` if timestamps are not checked.
    pub(crate) timestamp_tick: Option<Duration>,
    /// Whether each outbound packet in the script describes exactly one packet, never several consecutive
    /// segments.
    pub(crate) strict_segments: bool,
    pub(crate) steps: Vec<Step>,
}

impl Script {
    /// Parses a script. Paths of command files are relative to `folder` or to a folder above it.
    pub(crate) fn parse(text: &str, folder: Option<&Path>, rules: &PlayRules) -> Result<Self, PlayError> {
        let mut script = Self {
            stacks: Vec::new(),
            options: Vec::new(),
            tolerance: rules.tolerance,
            timestamp_tick: None,
            strict_segments: false,
            steps: Vec::new(),
        };
        for Statement { line, text } in split_statements(text, &rules.defines)? {
            let read = if text.starts_with("--") {
                text.split_whitespace().try_for_each(|word| script.parse_option(word))
            } else {
                parse_step(&text, folder).map(|(time, action)| script.steps.push(Step { line, time, action }))
            };
            read.map_err(|problem| PlayError::new(problem).at_line(line))?;
        }
        Ok(script)
    }

    /// Returns the stacks with which to play the script.
    pub(crate) fn stacks(&self, rules: &PlayRules) -> Vec<String> {
        match &rules.stack {
            Some(stack) => vec![stack.clone()],
            // Every stack with TCP has SCTP, too.
            None if self.stacks.is_empty() => {
                ProtocolKind::Tcp.stacks().map(|stack| stack.name.to_owned()).collect()
            }
            None => self.stacks.clone(),
        }
    }

    /// Returns a transport specification: `protocol` with `stack` and the script's options; `settings` override
    /// both.
    pub(crate) fn specification(&self, protocol: &str, stack: &str, settings: &[Setting]) -> String {
        let mut options: Vec<String> = self.options.clone();
        for Setting { option, value, .. } in settings.iter().filter(|setting| setting.protocol == protocol) {
            options.retain(|earlier| earlier.split('=').next() != Some(option));
            options.push(format!("{option}={value}"));
        }
        options.iter().fold(format!("{protocol}:stack={stack}"), |all, option| all + "," + option)
    }

    /// Returns the defaults of a program's sockets that are not part of a stack: Nagle's algorithm, and 10 streams
    /// each way if the peer accepts them (Linux: SCTP_DEFAULT_OUTSTREAMS).
    pub(crate) fn defaults(&self) -> Vec<Setting> {
        let defaults = [("tcp", "nagle", "on"), ("sctp", "nagle", "on"), ("sctp", "streams", "10")];
        let is_open = |name: &str| !self.options.iter().any(|option| option.split('=').next() == Some(name));
        let defaults = defaults.into_iter().filter(|(_, option, _)| is_open(option));
        defaults
            .map(|(protocol, option, value)| Setting { protocol, option, value: value.to_owned() })
            .collect()
    }

    /// Parses an option of a script: `--stack=rfc,linux-6.12`, `--tolerance_usecs=4000`, another option of
    /// packetdrill, or a transport option such as `--sack=false`.
    fn parse_option(&mut self, word: &str) -> Result<(), String> {
        let option = word
            .strip_prefix("--")
            .ok_or_else(|| format!("{word:?} is not a setting; begin it with \"--\""))?;
        match option.split_once('=') {
            None if option == "strict_segments" => self.strict_segments = true,
            Some(("stack", names)) => self.stacks = names.split(',').map(str::to_owned).collect(),
            Some(("tolerance_usecs", span)) => self.tolerance = parse_micros(word, span)?,
            Some(("tcp_ts_tick_usecs", span)) => self.timestamp_tick = Some(parse_micros(word, span)?),
            // Names of addresses, ports and devices are ignored too, because no script depends on them.
            Some(
                ("ip_version", "ipv4")
                | ("mtu", "1500")
                | ("local_ip" | "remote_ip" | "gateway_ip" | "netmask_ip" | "local_linux_ip", _)
                | ("bind_port" | "connect_port" | "speed" | "tun_dev", _),
            ) => {}
            Some(("ip_version" | "mtu" | "udp_encaps", _)) => {
                return Err(format!(
                    "{word} is not supported; remove it: the network is IPv4 with an MTU of 1500"
                ));
            }
            _ => self.options.push(option.to_owned()),
        }
        Ok(())
    }
}

/// Parses a duration in µs of at most one hour.
fn parse_micros(word: &str, span: &str) -> Result<Duration, String> {
    const MAX_MICROSECONDS: u64 = 3_600_000_000;
    match number(word, span)? {
        micros if micros <= MAX_MICROSECONDS => Ok(Duration::from_micros(micros)),
        _ => Err(format!("{word} is too long; the maximum is {MAX_MICROSECONDS}")),
    }
}

fn parse_step(text: &str, folder: Option<&Path>) -> Result<(StepTime, Action), String> {
    let mut words = Tokens::new(text);
    let now = StepTime::After(Duration::ZERO);
    if words.take("%{") {
        return Ok((now, Action::Code(words.until("}%")?.to_owned())));
    }
    if words.take("`") {
        return Ok((now, Action::Configure(shell::parse_settings(words.until("`")?, folder)?)));
    }
    let mut time = words.next().to_owned();
    if time == "+" {
        time += words.next();
    }
    for between in ["...", "~"] {
        if words.take(between) {
            time = time + between + words.next();
        }
    }
    let time = StepTime::parse(&time)?;
    let action = if words.take("<") {
        Action::Inbound(words.rest().to_owned())
    } else if words.take(">") {
        Action::Outbound(words.rest().to_owned())
    } else if words.take("%{") {
        Action::Code(words.until("}%")?.to_owned())
    } else if words.take("`") {
        Action::Configure(shell::parse_settings(words.until("`")?, folder)?)
    } else if words.is_empty() {
        Action::Silence
    } else {
        Action::Call(Call::parse(words.rest())?)
    };
    Ok((time, action))
}
