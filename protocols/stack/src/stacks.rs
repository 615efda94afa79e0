//! The built-in stacks.

use std::sync::OnceLock;

/// The stack of specifications that do not name one. If it does not support the protocol, another stack is used.
pub const DEFAULT_STACK: &str = "linux-6.12";

/// A named set of defaults for every protocol.
#[derive(Debug, Clone, Copy)]
pub struct Stack {
    /// Name of the stack, as in `tcp:stack=linux-2.6.16`.
    pub name: &'static str,
    /// Text of the stack's file: tables such as `[tcp]` and `[quic]`, each value with its source.
    pub text: &'static str,
}

/// Number of built-in stacks.
const STACK_COUNT: usize = 9;

/// Returns every stack, the default first.
pub fn stacks() -> &'static [Stack] {
    const STACKS: [Stack; STACK_COUNT] = [
        Stack { name: DEFAULT_STACK, text: include_str!("../stacks/linux-6.12.toml") },
        Stack { name: "linux-7.3", text: include_str!("../stacks/linux-7.3.toml") },
        Stack { name: "linux-2.6.16", text: include_str!("../stacks/linux-2.6.16.toml") },
        Stack { name: "linux-2.6.15", text: include_str!("../stacks/linux-2.6.15.toml") },
        Stack { name: "linux-2.6.10", text: include_str!("../stacks/linux-2.6.10.toml") },
        Stack { name: "dcsctp", text: include_str!("../stacks/dcsctp.toml") },
        Stack { name: "usrsctp", text: include_str!("../stacks/usrsctp.toml") },
        Stack { name: "quinn-0.11", text: include_str!("../stacks/quinn-0.11.toml") },
        Stack { name: "rfc", text: include_str!("../stacks/rfc.toml") },
    ];
    &STACKS
}

/// Returns the stack called `name`; `None` if there is none.
pub fn stack(name: &str) -> Option<&'static Stack> {
    stacks().iter().find(|stack| stack.name == name)
}

/// Returns the newest stack of Linux that is not newer than this release. For a kernel older than the default
/// stack, returns the default.
pub fn stack_of_linux(release: &str) -> &'static Stack {
    let version = |stack: &&Stack| stack.name.strip_prefix("linux-").map(linux_version);
    let kernel = linux_version(release).max(linux_version(DEFAULT_STACK));
    let not_newer = stacks().iter().filter(|stack| version(stack).is_some_and(|own| own <= kernel));
    not_newer.max_by_key(version).unwrap_or(&stacks()[0])
}

/// Returns the first two numbers of a Linux release such as `6.12.117+deb12-amd64`; a missing number is
/// zero.
pub fn linux_version(release: &str) -> [u32; 2] {
    let release = release.trim_start_matches("linux-");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|digits| digits.parse().ok());
    [(); 2].map(|()| numbers.next().unwrap_or(0))
}

impl Stack {
    /// Returns the defaults of one protocol (`"tcp"`, `"sctp"`, `"quic"` or `"udp"`) as in the stack's file;
    /// `None` if it has none.
    ///
    /// # Panics
    /// If a built-in file is invalid; a test reads them all.
    pub fn table(&self, protocol: &str) -> Option<toml::Table> {
        match self.file().get(protocol) {
            None => None,
            Some(toml::Value::Table(table)) => Some(table.clone()),
            other => panic!("stack {} has no table [{protocol}]: {other:?}", self.name),
        }
    }

    /// Returns the parsed content of the stack's file. Each file is parsed once, because a study resolves
    /// thousands of transports.
    fn file(&self) -> &'static toml::Table {
        static FILES: [OnceLock<toml::Table>; STACK_COUNT] = [const { OnceLock::new() }; STACK_COUNT];
        let place = stacks().iter().position(|stack| stack.name == self.name).expect("the stack is built in");
        FILES[place].get_or_init(|| {
            self.text.parse().unwrap_or_else(|problem| panic!("stack {}: {problem}", self.name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_gets_the_newest_stack_up_to_its_release() {
        let name = |release| stack_of_linux(release).name;
        assert_eq!(["7.3.4+deb13-amd64", "7.3", "7.10.1", "8.0"].map(name), ["linux-7.3"; 4]);
        assert_eq!(
            ["6.12.117+deb12-amd64", "7.2.12", "6.1.0-56-amd64", "2.6.16", ""].map(name),
            [DEFAULT_STACK; 5]
        );
    }

    /// The study ikr53 runs its TCP once for both.
    #[test]
    fn linux_2_6_15_and_2_6_16_have_the_same_tcp() {
        let tcp = |name: &str| stack(name).unwrap().table("tcp").unwrap();
        assert_eq!(tcp("linux-2.6.15"), tcp("linux-2.6.16"));
    }

    #[test]
    fn named_configurations_equal_the_stack_files() {
        let tcp = |name: &str| stack(name).unwrap().table("tcp").unwrap().try_into().unwrap();
        assert_eq!(hol_tcp::Config::linux_6_12(), tcp("linux-6.12"));
        assert_eq!(hol_tcp::Config::linux_7_3(), tcp("linux-7.3"));
        assert_eq!(hol_tcp::Config::linux_2_6_16(), tcp("linux-2.6.16"));
        assert_eq!(hol_tcp::Config::linux_2_6_15(), tcp("linux-2.6.15"));
        assert_eq!(hol_tcp::Config::linux_2_6_10(), tcp("linux-2.6.10"));
        assert_eq!(hol_tcp::Config::rfc9293(), tcp("rfc"));
        let sctp = |name: &str| stack(name).unwrap().table("sctp").unwrap().try_into().unwrap();
        assert_eq!(hol_sctp::Config::linux_6_12(), sctp("linux-6.12"));
        assert_eq!(hol_sctp::Config::linux_7_3(), sctp("linux-7.3"));
        assert_eq!(hol_sctp::Config::linux_2_6_16(), sctp("linux-2.6.16"));
        assert_eq!(hol_sctp::Config::linux_2_6_15(), sctp("linux-2.6.15"));
        assert_eq!(hol_sctp::Config::linux_2_6_10(), sctp("linux-2.6.10"));
        assert_eq!(hol_sctp::Config::dcsctp(), sctp("dcsctp"));
        assert_eq!(hol_sctp::Config::usrsctp(), sctp("usrsctp"));
        assert_eq!(hol_sctp::Config::rfc9260(), sctp("rfc"));
        let quic = |name: &str| stack(name).unwrap().table("quic").unwrap().try_into().unwrap();
        assert_eq!(hol_quic::Config::quinn_0_11(), quic("quinn-0.11"));
        assert_eq!(hol_quic::Config::rfc9000(), quic("rfc"));
        let udp = stack("rfc").unwrap().table("udp").unwrap().try_into().unwrap();
        assert_eq!(hol_udp::Config::rfc768(), udp);
    }
}
