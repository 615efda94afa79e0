//! Figures, tables, claims and the page of a report.
//!
//! [`write()`] turns a result directory into `report.html` and its figures; everything on the page is computed from the
//! stored runs, the study's `figures.toml` and its `claims.toml`.

mod ceiling;
pub mod claims;
mod closed_form;
pub mod data;
pub mod figures;
mod from_results;
pub mod metric;
mod other_measurement;
pub mod over_time;
mod page;
pub mod plot;
mod provenance;
mod region;
mod report;
mod ro_crate;
pub mod sequence;
pub mod survey;
mod swept_options;
#[cfg(test)]
mod testing;
pub mod topology;
pub mod two_worlds;
pub mod validation;

pub use other_measurement::{OtherMeasurement, OtherSeries};
pub use provenance::Provenance;
pub use report::{Report, ReportError, write};
pub use ro_crate::{PublicationDetails, write_crate};
