//! Reads the kernel's settings.

use std::fs;

/// Returns the value of a kernel setting in this thread's network namespace, with its words separated by single spaces;
/// `None` if the setting does not exist.
pub fn kernel_setting(name: &str) -> Option<String> {
    let text = fs::read_to_string(setting_path(name)).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns the kernel's release and version, as in `uname`.
pub fn kernel_version() -> String {
    ["kernel/osrelease", "kernel/version"].map(|name| kernel_setting(name).unwrap_or_default()).join(" ")
}

/// Returns the path of a kernel setting's file. Settings of modules are not specific to a network namespace.
pub fn setting_path(name: &str) -> String {
    if name.starts_with("module/") { format!("/sys/{name}") } else { format!("/proc/sys/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_one_space_between_its_words() {
        let ports = kernel_setting("net/ipv4/ip_local_port_range").unwrap();
        assert_eq!(ports.split(' ').filter(|port| port.parse::<u16>().is_ok()).count(), 2, "{ports:?}");
        assert_eq!(kernel_setting("net/ipv4/no_such_setting"), None);
    }
}
