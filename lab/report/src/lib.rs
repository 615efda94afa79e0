//! Figures, tables, claims and the page.
//!
//! [`write()`] turns a result directory into `report.html` and its figures; everything on the page is
//! computed from the stored runs, the study's `figures.toml` and its `claims.toml`.

mod beside;
mod ceiling;
pub mod claims;
mod closed_form;
pub mod data;
pub mod figures;
mod from_results;
pub mod metric;
pub mod over_time;
mod page;
pub mod plot;
mod provenance;
mod region;
mod report;
mod ro_crate;
pub mod sequence;
pub mod survey;
#[cfg(test)]
mod testing;
pub mod topology;
pub mod two_worlds;
pub mod validation;

pub use beside::{OtherMeasurement, OtherSeries};
pub use provenance::Provenance;
pub use report::{Report, ReportError, write};
pub use ro_crate::{Published, write_crate};
