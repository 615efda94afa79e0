//! The stacks of `/stacks`, for the tests.

use serde::Deserialize;

use crate::Config;

/// The part of a stack file that is SCTP's.
#[derive(Deserialize)]
struct Stack {
    sctp: Config,
}

/// A stack, with streams enough for the tests.
fn read(text: &str) -> Config {
    let stack: Stack = toml::from_str(text).expect("a stack names every setting and no other");
    Config { streams: 10, ..stack.sctp }
}

/// What the RFCs say today.
pub(crate) fn rfc() -> Config {
    read(include_str!("../../../stacks/rfc.toml"))
}

/// What Linux 6.12 does.
pub(crate) fn linux() -> Config {
    read(include_str!("../../../stacks/linux-6.12.toml"))
}

/// What Linux 2.6.16 did, as far as is known.
pub(crate) fn linux_2_6() -> Config {
    read(include_str!("../../../stacks/linux-2.6.toml"))
}

#[test]
fn a_stack_names_every_setting_and_no_other() {
    let whole = toml::to_string(&rfc()).expect("settings have a text");
    assert_eq!(toml::from_str::<Config>(&whole).as_ref(), Ok(&rfc()));
    assert!(toml::from_str::<Config>(&format!("unknown = 1\n{whole}")).is_err());
    assert!(toml::from_str::<Config>(&whole.replacen("rto_min", "# ", 1)).is_err());
}
