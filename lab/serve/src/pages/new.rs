//! The page of a new experiment, with three views: a form ("question"), a drawing, and a text. A change of one view updates the others.

use axum::extract::State as Extract;
use hol_kernel::Image;
use hol_workloads::WorkloadKind;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::layout::{Page, embedded_json, field};
use super::visitor::{RefusalPage, Visitor};
use crate::blocking::run_blocking;
use crate::draft;
use crate::experiment::Format;
use crate::extract::QueryParameters;
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::{Server, SharedServer};

/// Initial text of a new experiment.
const INITIAL_TEXT: &str = "\
title = \"TCP and SCTP under loss\"
transports = [\"tcp\", \"sctp:streams=8\"]

[network]
rate = \"100Mbit\"
delay = \"10ms\"
loss = \"1%\"

[workload]
kind = \"simco\"
rate = \"100/s\"
";

/// A field of the form: key, label, and default value.
type Field = (&'static str, &'static str, &'static str);
const PATH_FIELDS: [Field; 4] = [
    ("network.delay", "One-way delay", "10ms"),
    ("network.loss", "Loss", "0%"),
    ("network.rate", "Rate", "100Mbit"),
    ("network.queue", "Queue", "1000p"),
];
const APPLICATION_FIELDS: [Field; 4] = [
    ("workload.kind", "Kind of workload", "simco"),
    ("workload.rate", "Messages per second", "100/s"),
    ("workload.arrivals", "Arrivals", "periodic"),
    ("workload.size", "Size of a message", "128B"),
];
const RUN_FIELDS: [Field; 4] = [
    ("messages", "Messages", "10000"),
    ("repetitions", "Repetitions", "10"),
    ("seed", "Seed", "1"),
    ("world", "World", "model"),
];

/// The query of this page.
#[derive(Debug, Deserialize)]
pub struct NewExperimentQuery {
    /// Number of the experiment whose text is copied.
    of: Option<i64>,
    /// If given, the page changes the text of experiment `of` instead of copying it.
    edit: Option<u8>,
}

/// The text with which the editor starts.
#[derive(Serialize)]
struct InitialText {
    text: String,
    format: Format,
    /// Number of the experiment whose text is changed; `None` for a new experiment.
    id: Option<i64>,
}

pub async fn page(
    Extract(server): Extract<SharedServer>,
    Visitor(requester): Visitor,
    QueryParameters(query): QueryParameters<NewExperimentQuery>,
) -> Result<Markup, RefusalPage> {
    let read = run_blocking(server, move |server| {
        let start = initial_text(server, &requester, &query)?;
        let projects = server.store.projects(requester.id, false)?;
        let projects =
            projects.into_iter().filter(|own| own.is_member && own.is_approved).map(|own| own.name);
        let body = body(&start, &projects.collect::<Vec<_>>(), server.config.cores);
        let title = if start.id.is_some() { "Change" } else { "New experiment" };
        Ok(Page { title, path: "/new", script: "new" }.show(server, &requester, &body))
    });
    Ok(read.await?)
}

fn initial_text(
    server: &Server,
    requester: &Requester,
    query: &NewExperimentQuery,
) -> Result<InitialText, Refusal> {
    let Some(id) = query.of else {
        return Ok(InitialText { text: INITIAL_TEXT.to_owned(), format: Format::Toml, id: None });
    };
    server.entry(requester, id)?;
    let text = server.store.text(id, None)?.ok_or_else(Refusal::not_found)?;
    Ok(InitialText { text: text.text, format: text.format, id: query.edit.map(|_| id) })
}

/// Returns the worlds in which an experiment can run here: the model, and each kernel that is installed.
fn worlds() -> Vec<(String, String)> {
    let kernels = Image::list().into_iter().map(|image| {
        (format!("kernel:{}", image.release), format!("Linux {} in a virtual machine", image.release))
    });
    let usual = [
        ("model".to_owned(), "simulated endpoints and links".to_owned()),
        ("kernel".to_owned(), "Linux in a virtual machine".to_owned()),
    ];
    usual.into_iter().chain(kernels).collect()
}

fn body(start: &InitialText, projects: &[String], cores: u32) -> Markup {
    let (keys, worlds) = (draft::completions(), worlds());
    html! {
        h1 { @if let Some(id) = start.id { "Change experiment " (id) } @else { "New experiment" } }
        div role="tablist" aria-label="Views of the experiment" {
            @for (name, label) in [("question", "Question"), ("drawing", "Drawing"), ("text", "Text")] {
                button type="button" role="tab" id={ (name) "-tab" } data-tab=(name) aria-controls={ (name) "-panel" } { (label) }
            }
        }
        div role="tabpanel" id="question-panel" aria-labelledby="question-tab" { (question_form()) }
        div role="tabpanel" id="drawing-panel" aria-labelledby="drawing-tab" hidden { div id="drawing-view" {} }
        div role="tabpanel" id="text-panel" aria-labelledby="text-tab" hidden { (text_editor()) }
        ul id="faults" hidden role="alert" {}
        p.said id="say" role="status" {}
        (run_cost())
        (submission_form(start, projects, cores))
        datalist id="all-transports" { @for spec in keys.transports { option value=(spec) {} } }
        datalist id="worlds" { @for (world, label) in worlds { option value=(world) { (label) } } }
        datalist id="kinds" { @for kind in WorkloadKind::all() { option value=(kind.workload().name()) {} } }
        (embedded_json("keys", &keys))
        (embedded_json("start", start))
    }
}

fn question_form() -> Markup {
    html! {
        div id="question-view" {
            fieldset {
                legend { "Transports" }
                ul id="transports" {}
                button type="button" class="small" id="add-transport" { "Add a transport" }
            }
            @for (legend, fields) in [("Path", PATH_FIELDS), ("Application", APPLICATION_FIELDS), ("Runs", RUN_FIELDS)] {
                fieldset { legend { (legend) } div.fields { @for one in fields { (input(one)) } } }
            }
            p.soft { "Several values separated by commas, as in 0%, 1%, 2%, become an axis." }
            div.line { pre id="line" tabindex="0" {} button type="button" id="copy" { "Copy" } }
        }
    }
}

fn input((key, label, usual): Field) -> Markup {
    let id = key.replace('.', "-");
    let list = match key {
        "workload.kind" => Some("kinds"),
        "world" => Some("worlds"),
        _ => None,
    };
    field(
        label,
        &html! { input id=(id) data-key=(key) placeholder=(usual) list=[list] autocomplete="off" spellcheck="false"; },
        &id,
    )
}

fn text_editor() -> Markup {
    html! {
        div.tools role="toolbar" aria-label="Language" {
            button type="button" data-format="toml" { "Experiment file" }
            button type="button" data-format="ns" { "ns script" }
            span.gap {}
            input.unseen type="file" id="file" accept=".toml,.ns,.tcl,text/plain";
            label.button for="file" { "Open a file" }
        }
        div id="editor" {}
    }
}

/// Draws the section with the number of runs and their duration.
fn run_cost() -> Markup {
    html! {
        section id="plan" hidden aria-labelledby="plan-heading" {
            h2 id="plan-heading" { "Runs and their duration" }
            p id="sizes" {}
            ul id="cannot" {}
            ul id="ignored" {}
            details id="mapping" { summary { "Nodes, links and addresses" } div.tables {} }
        }
    }
}

fn submission_form(start: &InitialText, projects: &[String], cores: u32) -> Markup {
    html! {
        form id="send" {
            @if start.id.is_none() {
                div.fields {
                    (field("Name", &html! { input id="name" name="name" autocomplete="off" placeholder="from the title" pattern="[A-Za-z0-9._\\-]+"; }, "name"))
                    @if projects.len() > 1 {
                        (field("Project", &html! { select id="project" name="project" { @for own in projects { option { (own) } } } }, "project"))
                    }
                    (field("Cores", &html! { input id="cores" name="cores" type="number" min="1" max=(cores) placeholder=(format!("all {cores}")); }, "cores"))
                    (field("Idle swap, minutes without progress", &html! { input id="idle-swap" name="idle_swap" type="number" min="1" max="500000" placeholder="never"; }, "idle-swap"))
                    (field("Auto swap, after minutes", &html! { input id="auto-swap" name="auto_swap" type="number" min="1" max="500000" placeholder="never"; }, "auto-swap"))
                    (field("Priority", &html! { input id="priority" name="priority" type="number" min="-1000" max="1000" value="0"; }, "priority"))
                }
            }
            div.check {
                input type="checkbox" id="batch" name="batch" checked hidden[start.id.is_some()];
                @if start.id.is_none() { label for="batch" { "wait for free cores (batch mode) instead of being swapped out" } }
            }
            div.row {
                button.usual type="submit" id="submit" { @if start.id.is_some() { "Save" } @else { "Run" } }
                button type="button" id="hold" hidden[start.id.is_some()] { "Save without starting" }
            }
        }
    }
}
