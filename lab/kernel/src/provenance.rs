//! The origin of a run's results: the engine, and whether it ran its threads in a fixed order (exact stepping).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cache::cache_directory;

/// The engine of a run, its version and its mode.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Provenance {
    /// The name of the engine: `qemu` or `uml`.
    pub engine: String,
    /// Version of the engine, such as `7.2.22`.
    pub version: String,
    /// Whether the engine runs its threads in a fixed order, so that runs are reproducible.
    pub stepping: StepExactness,
    /// Speed of the virtual processor in instructions per ns; `None` unless user programs run and computing takes
    /// virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_per_ns: Option<u32>,
    /// Properties of the host that the user's programs can see despite the isolation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposed: Option<String>,
}

/// Whether virtual time is exact: a guest's time advances in the same way in each run, however busy the host is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepExactness {
    /// Virtual time is exact: the same kernel, scenario and seed give the same digest.
    Exact,
    /// It is not guaranteed that virtual time is exact; contains the reason.
    Absent(String),
}

impl Provenance {
    /// Returns a warning if virtual time is not exact: what that means for the results, and how to avoid it.
    pub fn warning(&self) -> Option<String> {
        let Self { engine, version, stepping: StepExactness::Absent(reason), .. } = self else { return None };
        let snapshots = cache_directory().join("snapshots");
        Some(format!(
            "{engine} {version} does not run its threads in a fixed order ({reason}): runs are slower, and the digests of two \
             runs with one seed may differ; use QEMU 7.2, which Debian 12 has, and then remove {} to repeat the test",
            snapshots.display()
        ))
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, version, stepping, instructions_per_ns, exposed } = self;
        write!(f, "{engine} {version}, {stepping}")?;
        instructions_per_ns.iter().try_for_each(|pace| match pace {
            1 => f.write_str(", 1 instruction a ns"),
            pace => write!(f, ", {pace} instructions a ns"),
        })?;
        exposed.iter().try_for_each(|exposed| write!(f, ", {exposed}"))
    }
}

impl fmt::Display for StepExactness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact stepping"),
            Self::Absent(reason) => write!(f, "no exact stepping ({reason})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qemu(version: &str, stepping: StepExactness) -> Provenance {
        let (engine, version) = ("qemu".to_owned(), version.to_owned());
        Provenance { engine, version, stepping, instructions_per_ns: None, exposed: None }
    }

    #[test]
    fn both_modes_have_a_text_and_survive_json() {
        let exact = qemu("7.2.22", StepExactness::Exact);
        let absent = qemu("8.2.0", StepExactness::Absent("function qemu_get_cpu not found".to_owned()));
        assert_eq!(exact.to_string(), "qemu 7.2.22, exact stepping");
        assert_eq!(absent.to_string(), "qemu 8.2.0, no exact stepping (function qemu_get_cpu not found)");
        let exposed = Provenance { exposed: Some("cpuid of the host".to_owned()), ..exact.clone() };
        assert_eq!(exposed.to_string(), "qemu 7.2.22, exact stepping, cpuid of the host");
        let fast = Provenance { instructions_per_ns: Some(8), ..exact.clone() };
        assert_eq!(fast.to_string(), "qemu 7.2.22, exact stepping, 8 instructions a ns");
        for provenance in [exact, absent, exposed, fast] {
            let text = serde_json::to_string(&provenance).unwrap();
            assert_eq!(serde_json::from_str::<Provenance>(&text).unwrap(), provenance, "{text}");
        }
    }

    #[test]
    fn only_inexact_stepping_has_a_warning_with_a_remedy() {
        assert_eq!(qemu("7.2.22", StepExactness::Exact).warning(), None);
        let warning = qemu("8.2.0", StepExactness::Absent("it was not tried".to_owned())).warning().unwrap();
        let words = ["qemu 8.2.0", "it was not tried", "slower", "digests", "QEMU 7.2"];
        assert!(words.iter().all(|word| warning.contains(word)), "{warning}");
    }
}
