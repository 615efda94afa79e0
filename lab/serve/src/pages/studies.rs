//! The page of the studies that come with the program.

use axum::extract::State as Extract;
use hol_lab::Study;
use maud::{Markup, html};

use super::layout::Page;
use super::visitor::Visitor;
use crate::server::SharedServer;

pub async fn page(Extract(server): Extract<SharedServer>, Visitor(requester): Visitor) -> Markup {
    let body = html! {
        h1 { "Studies" }
        p.soft { "Published evaluations, repeated as experiments with figures and claims. The button runs a study with a twentieth of its messages, which is enough for a first look." }
        p.said id="say" role="status" {}
        ul.cards {
            @for (name, title) in Study::all() {
                li { b { (name) } p { (title) } button type="button" data-study=(name) aria-label={ "run " (name) } { "Run" } }
            }
        }
    };
    Page { title: "Studies", path: "/studies", script: "home" }.show(&server, &requester, &body)
}
