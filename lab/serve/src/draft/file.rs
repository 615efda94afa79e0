//! Reads an experiment file or an ns script as an experiment.

use hol_lab::{Experiment, InputError, Source};
use hol_network::NetworkSpec;
use serde::Deserialize;
use toml_edit::DocumentMut;

use crate::experiment::Format;

/// Name of texts in messages.
const NAME_TOML: &str = "experiment.toml";
pub(super) const NAME_NS: &str = "script.ns";

/// A parsed experiment file, parsed only once since it may have many points.
pub(super) struct File {
    pub(super) text: String,
    pub(super) whole: Result<Experiment, InputError>,
}

impl File {
    pub(super) fn read(text: String) -> Self {
        Self { whole: experiment("draft", &text, Format::Toml), text }
    }

    /// Returns the network of its first point, or of its table if the file is incomplete.
    pub(super) fn network(&self) -> Result<NetworkSpec, String> {
        #[derive(Deserialize)]
        struct Alone {
            network: NetworkSpec,
        }
        if let Ok(whole) = &self.whole {
            return Ok(whole.points[0].network.clone());
        }
        let document: DocumentMut = self.text.parse().map_err(|e: toml_edit::TomlError| e.to_string())?;
        let network = document.get("network").ok_or("no network")?;
        let mut alone = DocumentMut::new();
        alone.insert("network", network.clone());
        toml::from_str::<Alone>(&alone.to_string())
            .map(|alone| alone.network)
            .map_err(|e| e.message().to_owned())
    }
}

/// Reads a text as an experiment, whatever this machine can run.
pub fn experiment(name: &str, text: &str, format: Format) -> Result<Experiment, InputError> {
    Experiment::anywhere(name, &source(text, format)?)
}

fn source(text: &str, format: Format) -> Result<Source, InputError> {
    match format {
        Format::Toml => Ok(Source::new(NAME_TOML, text)),
        Format::Ns => Source::of_script(NAME_NS, text),
    }
}
