//! The stacks as the tests use them: straight from their files.

use crate::Config;

fn read(file: &str) -> Config {
    let file: toml::Table = file.parse().expect("a stack file is TOML");
    file["tcp"].clone().try_into().expect("a stack file names every behaviour")
}

pub(crate) fn linux_6_12() -> Config {
    read(include_str!("../../../stacks/linux-6.12.toml"))
}

pub(crate) fn rfc() -> Config {
    read(include_str!("../../../stacks/rfc.toml"))
}
