//! The stacks that come with the program.

/// The stack of a specification that names none, if the kernel has the protocol.
pub const DEFAULT_STACK: &str = "linux-6.12";

/// A named set of behaviours for every protocol.
#[derive(Debug, Clone, Copy)]
pub struct Stack {
    /// Its name, as in `tcp:stack=linux-2.6.16`.
    pub name: &'static str,
    /// The text of its file: tables such as `[tcp]` and `[quic]`, each value with its reason.
    pub text: &'static str,
}

/// Every stack, the default first.
pub fn stacks() -> &'static [Stack] {
    const STACKS: [Stack; 6] = [
        Stack { name: DEFAULT_STACK, text: include_str!("../../../stacks/linux-6.12.toml") },
        Stack { name: "linux-2.6.16", text: include_str!("../../../stacks/linux-2.6.16.toml") },
        Stack { name: "linux-2.6.15", text: include_str!("../../../stacks/linux-2.6.15.toml") },
        Stack { name: "linux-2.6.10", text: include_str!("../../../stacks/linux-2.6.10.toml") },
        Stack { name: "quinn-0.11", text: include_str!("../../../stacks/quinn-0.11.toml") },
        Stack { name: "rfc", text: include_str!("../../../stacks/rfc.toml") },
    ];
    &STACKS
}

/// The stack called `name`.
pub fn stack(name: &str) -> Option<&'static Stack> {
    stacks().iter().find(|stack| stack.name == name)
}

impl Stack {
    /// The behaviours of one protocol (`"tcp"`, `"sctp"`, `"quic"` or `"udp"`) as the file names them; `None` if it has none.
    ///
    /// # Panics
    /// If a file that comes with the program is broken; a test reads them all.
    pub fn table(&self, protocol: &str) -> Option<toml::Table> {
        let file: toml::Table = self.text.parse().unwrap_or_else(|e| panic!("stack {}: {e}", self.name));
        match file.get(protocol) {
            None => None,
            Some(toml::Value::Table(table)) => Some(table.clone()),
            other => panic!("stack {} has no table [{protocol}]: {other:?}", self.name),
        }
    }
}
