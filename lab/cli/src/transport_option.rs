//! The options of transports with their defaults, from the tables that define them.

use hol_stack::{ProtocolKind, TransportSpec, stack};

/// An option of a transport, as in `sctp:streams=8`.
#[derive(Debug)]
pub struct TransportOption {
    /// Name of the option.
    pub name: String,
    /// Default of the option; `None` for an option that is off by default.
    pub default: Option<String>,
    /// Description of the option.
    pub about: &'static str,
}

/// Returns all options of a transport. `mptcp` has the options of `tcp`.
pub fn options_of(kind: ProtocolKind) -> Vec<TransportOption> {
    let uses = kind.application_options().iter();
    let uses = uses.map(|&(name, about)| TransportOption { name: name.to_owned(), default: None, about });
    let spec: TransportSpec = kind.name().parse().expect("a protocol without options is a transport");
    let file = stack(spec.stack()).map_or("", |stack| stack.text);
    let section = if kind == ProtocolKind::Mptcp { ProtocolKind::Tcp } else { kind };
    let behaviour = spec.option_values().iter().map(|(name, value)| TransportOption {
        name: name.clone(),
        default: Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
        about: option_comment(file, section, name),
    });
    uses.chain(behaviour).collect()
}

impl TransportOption {
    /// Returns the option as a line for people.
    pub fn describe(&self) -> String {
        let Self { name, default, about } = self;
        let set = default.as_ref().map_or_else(|| name.clone(), |value| format!("{name}={value}"));
        format!("  {set:<36} {about}\n")
    }
}

/// Returns the comment that explains an option in the file of a stack: the one on the same line, or the one on the line
/// before; empty if there is none.
fn option_comment(text: &'static str, kind: ProtocolKind, name: &str) -> &'static str {
    let head = format!("[{}]", kind.name());
    let mut before = "";
    for line in
        text.lines().skip_while(|line| line.trim() != head).skip(1).take_while(|line| !line.starts_with('['))
    {
        let is_it = line.split_once('=').is_some_and(|(key, _)| key.trim() == name);
        if is_it {
            return line.split_once('#').map_or(before, |(_, comment)| comment.trim());
        }
        before = line.strip_prefix('#').map_or("", str::trim);
    }
    ""
}
