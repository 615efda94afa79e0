//! A script: its settings, and its steps.

use std::path::Path;

use hol_base::Duration;
use hol_stack::Kind;

use crate::call::Call;
use crate::source::{Statement, statements};
use crate::step_time::StepTime;
use crate::sysctl::Setting;
use crate::tokens::{Tokens, number};
use crate::{PlayError, Rules, shell};

/// What has to happen.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// The application makes a system call.
    Call(Call),
    /// This packet comes.
    Arrives(String),
    /// This packet leaves.
    Leaves(String),
    /// Nothing leaves up to then.
    Silence,
    /// `%{ assert name == value }%`.
    Code(String),
    /// `` `sysctl ...` ``.
    Configure(Vec<Setting>),
}

/// What happens at a time.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) when: StepTime,
    pub(crate) act: Action,
}

/// A script that can be read.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// Nothing if it names none.
    stacks: Vec<String>,
    /// What differs from the stack, as in a specification: `sack=false`.
    options: Vec<String>,
    /// A step later or earlier than it says by this much is in time.
    pub(crate) tolerance: Duration,
    /// One step of the clock behind timestamps, where they are to be checked.
    pub(crate) timestamp_tick: Option<Duration>,
    /// A packet that leaves is one, and not several that follow each other.
    pub(crate) strict_segments: bool,
    pub(crate) steps: Vec<Step>,
}

impl Script {
    /// Reads `text`, whose commands are those of files in `folder`.
    pub(crate) fn parse(text: &str, folder: Option<&Path>, rules: &Rules) -> Result<Self, PlayError> {
        let mut script = Self {
            stacks: Vec::new(),
            options: Vec::new(),
            tolerance: rules.tolerance,
            timestamp_tick: None,
            strict_segments: false,
            steps: Vec::new(),
        };
        for Statement { line, text } in statements(text, &rules.defines)? {
            let read = if text.starts_with("--") {
                text.split_whitespace().try_for_each(|word| script.set(word))
            } else {
                step(&text, folder).map(|(when, act)| script.steps.push(Step { line, when, act }))
            };
            read.map_err(|problem| PlayError::new(problem).at(line))?;
        }
        Ok(script)
    }

    /// The stacks it is for.
    pub(crate) fn stacks(&self, rules: &Rules) -> Vec<String> {
        match &rules.stack {
            Some(stack) => vec![stack.clone()],
            // Those of TCP are those of SCTP.
            None if self.stacks.is_empty() => Kind::Tcp.stacks().map(|stack| stack.name.to_owned()).collect(),
            None => self.stacks.clone(),
        }
    }

    /// The specification of `protocol` as `stack` has it, with what the script says differs, and `settings` behind it.
    pub(crate) fn specification(&self, protocol: &str, stack: &str, settings: &[Setting]) -> String {
        let mut options: Vec<String> = self.options.clone();
        for Setting { option, value, .. } in settings.iter().filter(|setting| setting.protocol == protocol) {
            options.retain(|earlier| earlier.split('=').next() != Some(option));
            options.push(format!("{option}={value}"));
        }
        options.iter().fold(format!("{protocol}:stack={stack}"), |all, option| all + "," + option)
    }

    /// What a program's sockets have unless it says otherwise, beside what a stack has: Nagle's rule, and 10 streams each way as far as the
    /// peer serves them (Linux: SCTP_DEFAULT_OUTSTREAMS).
    pub(crate) fn defaults(&self) -> Vec<Setting> {
        let defaults = [("tcp", "nagle", "on"), ("sctp", "nagle", "on"), ("sctp", "streams", "10")];
        let is_open = |name: &str| !self.options.iter().any(|option| option.split('=').next() == Some(name));
        let defaults = defaults.into_iter().filter(|(_, option, _)| is_open(option));
        defaults
            .map(|(protocol, option, value)| Setting { protocol, option, value: value.to_owned() })
            .collect()
    }

    /// `--stack=rfc,linux-6.12`, `--tolerance_usecs=4000`, an option of packetdrill's, or one of a specification such as
    /// `--sack=false`.
    fn set(&mut self, word: &str) -> Result<(), String> {
        let option =
            word.strip_prefix("--").ok_or_else(|| format!("{word:?} is no setting; begin it with \"--\""))?;
        match option.split_once('=') {
            None if option == "strict_segments" => self.strict_segments = true,
            Some(("stack", names)) => self.stacks = names.split(',').map(str::to_owned).collect(),
            Some(("tolerance_usecs", span)) => self.tolerance = micros(word, span)?,
            Some(("tcp_ts_tick_usecs", span)) => self.timestamp_tick = Some(micros(word, span)?),
            // And names of addresses, ports and devices, which no script sees.
            Some(
                ("ip_version", "ipv4")
                | ("mtu", "1500")
                | ("local_ip" | "remote_ip" | "gateway_ip" | "netmask_ip" | "local_linux_ip", _)
                | ("bind_port" | "connect_port" | "speed" | "tun_dev", _),
            ) => {}
            Some(("ip_version" | "mtu" | "udp_encaps", _)) => {
                return Err(format!("{word} cannot be had; the network is IPv4 with an MTU of 1500"));
            }
            _ => self.options.push(option.to_owned()),
        }
        Ok(())
    }
}

/// A span of a setting: an hour at most.
fn micros(word: &str, span: &str) -> Result<Duration, String> {
    const MOST: u64 = 3_600_000_000;
    match number(word, span)? {
        micros if micros <= MOST => Ok(Duration::from_micros(micros)),
        _ => Err(format!("{word} is too long; write {MOST} at most")),
    }
}

fn step(text: &str, folder: Option<&Path>) -> Result<(StepTime, Action), String> {
    let mut words = Tokens::new(text);
    let now = StepTime::After(Duration::ZERO);
    if words.take("%{") {
        return Ok((now, Action::Code(words.until("}%")?.to_owned())));
    }
    if words.take("`") {
        return Ok((now, Action::Configure(shell::settings(words.until("`")?, folder)?)));
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
    let when = StepTime::parse(&time)?;
    let act = if words.take("<") {
        Action::Arrives(words.rest().to_owned())
    } else if words.take(">") {
        Action::Leaves(words.rest().to_owned())
    } else if words.take("%{") {
        Action::Code(words.until("}%")?.to_owned())
    } else if words.take("`") {
        Action::Configure(shell::settings(words.until("`")?, folder)?)
    } else if words.is_empty() {
        Action::Silence
    } else {
        Action::Call(Call::parse(words.rest())?)
    };
    Ok((when, act))
}
