//! Lossless conversion between forms, drawings and texts.
//!
//! A draft is one text, an experiment file or an ns script. A drawing ([`Graph`]) and a form ([`Question`]) are views
//! of the text: they are parsed from it, and a change of a view changes only the parts of the text that differ. A
//! view without changes does not change the text. An ns script contains the whole experiment, with comments for what
//! ns cannot express ([`ns`]).

mod analysis;
mod completions;
mod drawing_edits;
mod file;
mod graph;
mod idle;
mod movie;
mod ns;
mod positions;
mod question;
mod values;

#[cfg(test)]
mod tests;

use hol_lab::Permission;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use analysis::{ReadRequest, Reading, read};
pub use completions::completions;
use file::File;
pub use file::experiment;
pub use graph::Graph;
pub use idle::{network, with_placeholder_traffic};
pub use movie::{Movie, movie};
pub use question::Question;

use crate::experiment::Format;

/// A text with a changed view, to be applied to the text.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = DraftChange)]
pub struct Change {
    /// Text from which the view was read.
    pub text: String,
    /// Language of the text.
    pub format: Format,
    /// Project whose files the text names; by default the user's first.
    pub project: Option<String>,
    /// The drawing, if it was changed.
    pub graph: Option<Graph>,
    /// The form, if it was changed.
    pub question: Option<Question>,
}

/// A text in both languages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Translation {
    /// The text as an experiment file.
    pub toml: String,
    /// The text as an ns script, if ns can express it.
    pub ns: Option<String>,
    /// Why ns cannot express the text.
    pub ns_cannot: Option<String>,
}

/// Returns the text after a change of a view; the error says why the text does not allow the change.
pub fn write(change: &Change, permission: &Permission) -> Result<Translation, String> {
    let before = match change.format {
        Format::Toml => change.text.clone(),
        Format::Ns => ns::to_experiment_file(&change.text, permission).map_err(|e| e.to_string())?,
    };
    let mut text = before.clone();
    if let Some(question) = &change.question {
        text = question.apply(&text)?;
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
        let ns = ns::from_experiment_file(&file);
        let ns_cannot = ns.as_ref().err().map(|why| format!("no ns script: {why}"));
        Self { toml: file.text, ns: ns.ok(), ns_cannot }
    }
}
