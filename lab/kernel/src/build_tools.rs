//! The programs of the host that builds of kernels and modules need.

use crate::KernelError;

/// Returns an error that names those of `tools` that are missing, and their packages.
pub(crate) fn check_installed(tools: &[(&'static str, &'static str)]) -> Result<(), KernelError> {
    let places = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| std::env::split_paths(&places).any(|place| place.join(program).is_file());
    let missing = tools.iter().copied().filter(|(program, _)| !is_there(program));
    let (programs, packages): (Vec<_>, Vec<_>) = missing.unzip();
    if programs.is_empty() { Ok(()) } else { Err(KernelError::ToolsMissing { programs, packages }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_named_with_their_packages() {
        assert!(check_installed(&[("sh", "dash")]).is_ok());
        let error = check_installed(&[("sh", "dash"), ("no-such-program", "its-package")]).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("no-such-program") && error.contains("its-package") && !error.contains("dash"),
            "{error}"
        );
    }
}
