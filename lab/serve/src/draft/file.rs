//! Reads an experiment file or an ns script as an experiment.

use hol_lab::{Experiment, InputError, Permission, Source};
use hol_network::NetworkSpec;
use serde::Deserialize;
use toml_edit::DocumentMut;

use crate::experiment::Format;

/// File names of texts in error messages.
const NAME_TOML: &str = "experiment.toml";
pub(super) const NAME_NS: &str = "script.ns";

/// An experiment file with its experiment, parsed only once because it may have many points.
pub(super) struct File {
    pub(super) text: String,
    pub(super) experiment: Result<Experiment, InputError>,
    pub(super) permission: Permission,
}

impl File {
    pub(super) fn read(text: String, permission: &Permission) -> Self {
        let experiment = experiment("draft", &text, Format::Toml, permission);
        Self { experiment, text, permission: permission.clone() }
    }

    /// Returns the network of the first point, or the table `[network]` if the file is incomplete.
    pub(super) fn network(&self) -> Result<NetworkSpec, String> {
        #[derive(Deserialize)]
        struct NetworkOnly {
            network: NetworkSpec,
        }
        if let Ok(experiment) = &self.experiment {
            return Ok(experiment.points[0].network.clone());
        }
        let document: DocumentMut = self.text.parse().map_err(|e: toml_edit::TomlError| e.to_string())?;
        let network = document.get("network").ok_or("the experiment has no [network]; describe one")?;
        let mut alone = DocumentMut::new();
        alone.insert("network", network.clone());
        let alone: NetworkOnly = toml::from_str(&alone.to_string()).map_err(|e| e.message().to_owned())?;
        self.permission.check_network(&alone.network)?;
        Ok(alone.network)
    }
}

/// Reads a text as an experiment, even if this machine cannot run it.
pub fn experiment(
    name: &str,
    text: &str,
    format: Format,
    permission: &Permission,
) -> Result<Experiment, InputError> {
    let source = match format {
        Format::Toml => Source::new(NAME_TOML, text).with_permission(permission.clone()),
        Format::Ns => Source::of_script(NAME_NS, text, permission)?,
    };
    Experiment::parse_for_any_machine(name, &source)
}
