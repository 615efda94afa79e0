//! The home page: running, waiting and completed experiments.

use axum::extract::State as Extract;
use maud::{Markup, html};

use super::layout::Page;
use super::visitor::{Apology, Visitor};
use crate::experiment::{Experiment, Filter};
use crate::leisure::at_leisure;
use crate::server::Shared;

pub async fn page(Extract(server): Extract<Shared>, Visitor(viewer): Visitor) -> Result<Markup, Apology> {
    let read = at_leisure(server, move |server| {
        let experiments = server.experiments(&viewer, &Filter::default())?;
        let counts = server.counts(&viewer)?;
        let cores = (server.free_cores()?, server.config.cores);
        let body = body(
            cores,
            &experiments,
            &counts.iter().map(|(state, count)| (state.word().to_owned(), *count)).collect::<Vec<_>>(),
        );
        Ok(Page { title: "Experiments", here: "/", script: "home" }.show(server, &viewer, &body))
    });
    Ok(read.await?)
}

fn body((free, cores): (u32, u32), experiments: &[Experiment], counts: &[(String, u64)]) -> Markup {
    let told: Vec<String> =
        counts.iter().map(|(state, count)| format!("{count} {}", state.replace('_', " "))).collect();
    html! {
        h1 { "Experiments" }
        p.soft { span id="cores" { (free) " of " (cores) " cores free" } @if !told.is_empty() { " · " (told.join(", ")) } }
        div.row {
            a.button.usual href="/new" { "New experiment" }
            @if experiments.len() > 1 { button type="button" id="compare-chosen" { "Compare chosen" } }
            p.said id="say" role="status" {}
        }
        @if experiments.is_empty() {
            div.empty {
                p { "Nothing yet. Ask a " a href="/new#question" { "question" } ", " a href="/new#drawing" { "draw a network" } ", or run a " a href="/studies" { "study" } "." }
            }
        } @else {
            (list(experiments))
        }
    }
}

fn list(experiments: &[Experiment]) -> Markup {
    html! {
        div.scroll {
            table.list {
                thead { tr { th scope="col" { "Compare" } th scope="col" { "Experiment" } th scope="col" { "State" } th scope="col" { "Progress" } th scope="col" { "Came" } } }
                tbody { @for experiment in experiments { (row(experiment)) } }
            }
        }
    }
}

fn row(own: &Experiment) -> Markup {
    let Experiment { id, title, state, why, progress, created, .. } = own;
    html! {
        tr data-experiment=(id) data-state=(state.word()) {
            td { input type="checkbox" name="chosen" value=(id) aria-label={ "compare " (title) }; }
            td.title { a href={ "/experiments/" (id) } { (title) } " " small { "#" (id) } span.why { (why) } }
            td { span class={ "state s-" (state.word()) } { (state.word().replace('_', " ")) } }
            td.progress { progress max="1" value=(progress.share) aria-label={ "progress of " (title) } {} " " small.left {} }
            td { small { time datetime=(created) { (created.get(..16).unwrap_or(created).replace('T', " ")) } } }
        }
    }
}
