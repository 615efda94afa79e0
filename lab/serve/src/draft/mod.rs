//! Lossless conversion between forms, drawings and texts.
//!
//! A draft is one text, an experiment file or an ns script. A drawing ([`Graph`]) and a form ([`Question`])
//! are views of it: they are parsed from the text, and change only the parts that differ. An untouched view
//! leaves every octet. An ns script holds the whole experiment, with comments for what ns cannot express
//! ([`ns`]).

mod drawing_edits;
mod file;
mod graph;
mod idle;
mod keys;
mod movie;
mod ns;
mod places;
mod question;
mod reading;
mod values;

#[cfg(test)]
mod tests;

use hol_lab::Permission;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use file::File;
pub use file::experiment;
pub use graph::Graph;
pub use idle::{network, with_placeholder_traffic};
pub use keys::keys;
pub use movie::{Movie, movie};
pub use question::Question;
pub use reading::{ReadRequest, Reading, read};

use crate::experiment::Format;

/// A view of a text that was changed, to be put into it.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = DraftChange)]
pub struct Change {
    /// The text that the view was read from.
    pub text: String,
    /// Its language.
    pub format: Format,
    /// The project whose files it names; the user's first by default.
    pub project: Option<String>,
    /// The drawing.
    pub graph: Option<Graph>,
    /// The form.
    pub question: Option<Question>,
}

/// One text in both languages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Translation {
    /// As an experiment file.
    pub toml: String,
    /// As an ns script, if ns can say it.
    pub ns: Option<String>,
    /// Why not.
    pub ns_cannot: Option<String>,
}

/// The text with a changed view in it; or what stands in the way.
pub fn write(change: &Change, permission: &Permission) -> Result<Translation, String> {
    let before = match change.format {
        Format::Toml => change.text.clone(),
        Format::Ns => ns::toml_of(&change.text, permission).map_err(|e| e.to_string())?,
    };
    let mut text = before.clone();
    if let Some(question) = &change.question {
        text = question.put(&text)?;
    }
    if let Some(graph) = &change.graph {
        text = drawing_edits::apply_graph(&text, graph, permission)?;
    }
    let mut written = Translation::of(File::read(text, permission));
    if change.format == Format::Ns && written.toml == before {
        written.ns = Some(change.text.clone());
    }
    Ok(written)
}

impl Translation {
    fn of(file: File) -> Self {
        let ns = ns::ns_of(&file);
        let ns_cannot = ns.as_ref().err().map(|why| format!("ns cannot say {why}"));
        Self { toml: file.text, ns: ns.ok(), ns_cannot }
    }
}
