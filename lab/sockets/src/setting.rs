//! Where the kernel keeps its settings, and what they are.

use std::fs;

/// What a kernel setting is in the network namespace that this thread is in, its words one space apart; `None` if there is none
/// of this name.
pub fn setting(name: &str) -> Option<String> {
    let text = fs::read_to_string(setting_path(name)).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The kernel's release and version, as `uname` gives them.
pub fn kernel_version() -> String {
    ["kernel/osrelease", "kernel/version"].map(|name| setting(name).unwrap_or_default()).join(" ")
}

/// Where a setting is: those of modules are not among the namespace's.
pub fn setting_path(name: &str) -> String {
    if name.starts_with("module/") { format!("/sys/{name}") } else { format!("/proc/sys/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_one_space_between_its_words() {
        let ports = setting("net/ipv4/ip_local_port_range").unwrap();
        assert_eq!(ports.split(' ').filter(|port| port.parse::<u16>().is_ok()).count(), 2, "{ports:?}");
        assert_eq!(setting("net/ipv4/no_such_setting"), None);
    }
}
