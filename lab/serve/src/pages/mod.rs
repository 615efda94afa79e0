//! The HTML pages: readable without scripts, which add editing and live updates.

mod account;
mod compare;
mod experiment;
mod files;
mod home;
mod layout;
mod new;
mod studies;
mod visitor;

use axum::Router;
use axum::routing::get;

use crate::server::SharedServer;

pub use visitor::RefusalPage;

/// Returns the routes of all pages.
pub fn routes() -> Router<SharedServer> {
    Router::new()
        .route("/", get(home::page))
        .route("/new", get(new::page))
        .route("/experiments/{id}", get(experiment::page))
        .route("/compare", get(compare::page))
        .route("/files", get(files::page))
        .route("/studies", get(studies::page))
        .route("/login", get(account::login))
        .route("/register", get(account::register))
        .route("/account", get(account::page))
}
