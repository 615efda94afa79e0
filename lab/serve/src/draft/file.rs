//! An experiment file or an ns script as the experiment that it is.

use hol_lab::{Experiment, InputError, Source};
use hol_network::NetworkSpec;
use serde::Deserialize;
use toml_edit::DocumentMut;

use crate::experiment::Format;

/// What texts are called in messages.
const NAME_TOML: &str = "experiment.toml";
pub(super) const NAME_NS: &str = "script.ns";

/// An experiment file with what it says: it is read once, for it may have many points.
pub(super) struct File {
    pub(super) text: String,
    pub(super) whole: Result<Experiment, InputError>,
}

impl File {
    pub(super) fn read(text: String) -> Self {
        Self { whole: experiment("draft", &text, Format::Toml), text }
    }

    /// The network of its first point, or what its table says while it is not whole.
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

/// The experiment that a text is, read as far as it is right whatever this machine can do.
pub fn experiment(name: &str, text: &str, format: Format) -> Result<Experiment, InputError> {
    Experiment::anywhere(name, &source(text, format)?)
}

fn source(text: &str, format: Format) -> Result<Source, InputError> {
    match format {
        Format::Toml => Ok(Source::new(NAME_TOML, text)),
        Format::Ns => Source::of_script(NAME_NS, text.to_owned()),
    }
}
