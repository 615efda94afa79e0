//! The stacks that come with the program.

/// The stack of a specification that names none.
pub const DEFAULT_STACK: &str = "linux-6.12";

/// A named set of behaviours for every protocol.
#[derive(Debug, Clone, Copy)]
pub struct Stack {
    /// Its name, as in `tcp:stack=linux-2.6`.
    pub name: &'static str,
    /// The text of its file: tables `[tcp]`, `[sctp]` and `[udp]`, each value with its reason.
    pub text: &'static str,
}

/// Every stack, the default first.
pub fn stacks() -> &'static [Stack] {
    const STACKS: [Stack; 3] = [
        Stack { name: DEFAULT_STACK, text: include_str!("../../../stacks/linux-6.12.toml") },
        Stack { name: "linux-2.6", text: include_str!("../../../stacks/linux-2.6.toml") },
        Stack { name: "rfc", text: include_str!("../../../stacks/rfc.toml") },
    ];
    &STACKS
}

/// The stack called `name`.
pub fn stack(name: &str) -> Option<&'static Stack> {
    stacks().iter().find(|stack| stack.name == name)
}

impl Stack {
    /// The behaviours of one protocol (`"tcp"`, `"sctp"` or `"udp"`) as the file names them.
    ///
    /// # Panics
    /// If a file that comes with the program is broken; a test reads them all.
    pub fn table(&self, protocol: &str) -> toml::Table {
        let file: toml::Table = self.text.parse().unwrap_or_else(|e| panic!("stack {}: {e}", self.name));
        match file.get(protocol) {
            Some(toml::Value::Table(table)) => table.clone(),
            other => panic!("stack {} has no table [{protocol}]: {other:?}", self.name),
        }
    }
}
