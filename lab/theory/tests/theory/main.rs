//! The closed form and the event simulation.

mod closed_form;
mod event_simulation;
