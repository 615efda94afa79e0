//! Several experiments over one another.

use axum::extract::State as Extract;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::layout::{Page, given};
use super::visitor::{Apology, Visitor};
use crate::extract::Wanted;
use crate::leisure::at_leisure;
use crate::server::Shared;

/// Maximum number of curves, for legibility.
const MOST: usize = 12;

/// Which experiments.
#[derive(Debug, Deserialize)]
pub struct Which {
    /// Their numbers, with commas between them.
    of: String,
}

#[derive(Serialize)]
struct Shown {
    id: i64,
    name: String,
    title: String,
}

pub async fn page(
    Extract(server): Extract<Shared>,
    Visitor(viewer): Visitor,
    Wanted(Which { of }): Wanted<Which>,
) -> Result<Markup, Apology> {
    let read = at_leisure(server, move |server| {
        let ids = of.split(',').filter_map(|id| id.trim().parse::<i64>().ok()).take(MOST);
        let experiments = ids.map(|id| server.experiment(&viewer, id)).collect::<Result<Vec<_>, _>>()?;
        let shown: Vec<Shown> = experiments
            .into_iter()
            .map(|own| Shown { id: own.id, name: own.name, title: own.title })
            .collect();
        Ok(Page { title: "Compare", here: "", script: "compare" }.show(server, &viewer, &body(&shown)))
    });
    Ok(read.await?)
}

fn body(shown: &[Shown]) -> Markup {
    html! {
        h1 { "Compare" }
        ul { @for own in shown { li { a href={ "/experiments/" (own.id) } { (own.title) } " " small { (own.name) " (" (own.id) ")" } } } }
        p.said id="say" role="status" {}
        section aria-labelledby="curves-heading" { h2 id="curves-heading" { "Curves" } div id="curves" {} }
        section aria-labelledby="points-heading" { h2 id="points-heading" { "Points" } div id="points" {} }
        (given("experiments", &shown))
    }
}
