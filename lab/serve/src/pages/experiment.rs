//! The page of one experiment: its state and its results.

use axum::extract::State as Extract;
use maud::{Markup, html};

use super::layout::{Page, embedded_json};
use super::visitor::{RefusalPage, Visitor};
use crate::blocking::run_blocking;
use crate::experiment::Experiment;
use crate::extract::PathParameter;
use crate::server::SharedServer;

/// Actions and the labels of their buttons.
const ACTIONS: [(&str, &str); 5] = [
    ("start", "Start"),
    ("swap-in", "Swap in"),
    ("swap-out", "Swap out"),
    ("edit", "Change"),
    ("terminate", "Terminate"),
];

pub async fn page(
    Extract(server): Extract<SharedServer>,
    Visitor(requester): Visitor,
    PathParameter(id): PathParameter<i64>,
) -> Result<Markup, RefusalPage> {
    let read = run_blocking(server, move |server| {
        let own = server.experiment(&requester, id)?;
        let has_shell = server.config.permission.programs && own.study.is_none();
        let page = Page { title: &own.title, path: "", script: "experiment" };
        Ok(page.show(server, &requester, &body(&own, has_shell, server.store.count_shares(id)?)))
    });
    Ok(read.await?)
}

fn body(own: &Experiment, has_shell: bool, shares: u64) -> Markup {
    let Experiment { id, name, title, project, owner, .. } = own;
    html! {
        p.eyebrow { (project) " · " (name) }
        h1 { (title) }
        p.soft { "Experiment " (id) " of " (owner) ", submitted " time datetime=(own.created) { (own.created.get(..16).unwrap_or(&own.created).replace('T', " ")) } }
        div.row { span id="state" class={ "state s-" (own.state.word()) } { (own.state.word().replace('_', " ")) } span.soft id="why" { (own.why) } }
        progress id="progress" max="1" value=(own.progress.share) aria-label="progress" {}
        p.soft id="left" {}
        div.row {
            @for (action, label) in ACTIONS { button type="button" data-do=(action) hidden { (label) } }
            a.button.usual id="report" href=(own.links.report) hidden { "Report" }
            a.button href={ "/new?of=" (id) "#text" } { "Copy to a new experiment" }
            button type="button" id="share" { "Share" }
            button type="button" id="unshare" hidden[shares == 0] { "End shared links" }
            button type="button" id="delete" { "Delete" }
        }
        p.unseen id="spoken" role="status" {}
        p.said id="say" role="status" {}
        p id="shared" {}
        section id="answer" aria-label="Answer" hidden {}
        section id="results" hidden aria-labelledby="results-heading" {
            h2 id="results-heading" { "Results so far" }
            div id="curves" {}
            section id="split-part" hidden aria-labelledby="split-heading" {
                h2 id="split-heading" { "Where the time goes" }
                div id="split" {}
            }
            h2 { "All points" }
            div id="points" {}
        }
        @if own.study.is_none() { details id="text-part" { summary { "Text" } pre id="own-text" tabindex="0" {} } }
        @if own.study.is_none() { (animation()) }
        @if has_shell { (terminal()) }
        details id="log-part" hidden { summary { "Log" } pre id="log" tabindex="0" {} }
        details id="files-part" hidden { summary { "Files" } ul.files id="files" {} }
        (rerun_form())
        dialog id="sure" aria-labelledby="sure-heading" {
            form method="dialog" {
                h2 id="sure-heading" { "Delete the experiment and all its results?" }
                div.row { button value="yes" { "Delete" } button value="no" autofocus { "Keep" } }
            }
        }
        (embedded_json("experiment", own))
    }
}

fn animation() -> Markup {
    html! {
        details id="movie-part" {
            summary { "Animation of one run" }
            form.row id="movie-load" {
                div.axes id="movie-point" role="group" aria-label="Point" {}
                div.field {
                    label for="movie-repetition" { "repetition, from 0" }
                    input id="movie-repetition" type="number" min="0" value="0" required;
                }
                button { "Show" }
            }
            p.said id="movie-said" role="status" {}
            div id="movie" {}
        }
    }
}

fn terminal() -> Markup {
    html! {
        details id="shell-part" {
            summary { "Terminal on the nodes" }
            p.soft {
                "Linux on the experiment's network, with the programs of this machine. Virtual time stops between commands. "
                code { ":link loss=3%" } " changes the path, and " code { ":help" } " lists all commands."
            }
            form.row id="shell-open" {
                div.axes id="shell-point" role="group" aria-label="Point" {}
                button { "Open" }
            }
            pre id="shell-said" role="log" tabindex="0" aria-label="Transcript" hidden {}
            div id="shell-live" hidden {
                div.row id="shell-nodes" role="group" aria-label="Go to a node" {}
                form.row id="shell-form" {
                    label for="shell-line" id="shell-prompt" {}
                    input id="shell-line" autocomplete="off" autocapitalize="off" spellcheck="false";
                    button { "Run" }
                }
                div.row {
                    button type="button" id="shell-interrupt" disabled { "Interrupt" }
                    button type="button" id="shell-end" { "End" }
                }
            }
            p.said id="shell-trouble" role="status" {}
            ul.files id="shell-files" {}
        }
    }
}

fn rerun_form() -> Markup {
    html! {
        details {
            summary { "Run again with other values" }
            form id="again" {
                label for="with" { "KEY = VALUE, one per line" }
                textarea id="with" placeholder="network.delay = 40ms" spellcheck="false" {}
                div.row { button { "Run again" } span.said id="again-said" role="status" {} }
            }
        }
    }
}
