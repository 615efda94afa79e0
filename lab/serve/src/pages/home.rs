//! The home page: running, waiting and completed experiments.

use axum::extract::State as Extract;
use hol_base::percent_encoded;
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::Page;
use super::visitor::{RefusalPage, Visitor};
use crate::blocking::run_blocking;
use crate::experiment::{Experiment, Filter, State};
use crate::extract::QueryParameters;
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::{Access, Server, SharedServer};
use crate::store::Project;

/// Number of experiments on a page.
const PAGE_LENGTH: usize = 30;

/// The query of this page, which selects experiments. An empty field selects all of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct HomeQuery {
    search: String,
    state: String,
    project: String,
    owner: String,
    /// Only experiments with a smaller number than this, which is the last number of the previous page.
    before: Option<i64>,
}

impl HomeQuery {
    fn filter(&self) -> Filter {
        let chosen = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        Filter {
            state: State::from_word(&self.state),
            project: chosen(&self.project),
            owner: chosen(&self.owner),
            search: chosen(&self.search),
            // One more than the page shows, to find out whether there is another page.
            limit: PAGE_LENGTH + 1,
            before: self.before,
        }
    }

    fn is_filtered(&self) -> bool {
        [&self.search, &self.state, &self.project, &self.owner].iter().any(|text| !text.trim().is_empty())
    }

    /// Returns the path of the next page, which begins after experiment `before`.
    fn older_page(&self, before: i64) -> String {
        let fields = [
            ("search", &self.search),
            ("state", &self.state),
            ("project", &self.project),
            ("owner", &self.owner),
        ];
        let chosen = fields.into_iter().filter(|(_, text)| !text.is_empty());
        let chosen: String = chosen.map(|(key, text)| format!("{key}={}&", percent_encoded(text))).collect();
        format!("/?{chosen}before={before}")
    }
}

/// The content of the page.
struct Home {
    query: HomeQuery,
    experiments: Vec<Experiment>,
    /// The path of the next page, if there is one.
    older: Option<String>,
    counts: Vec<(State, u64)>,
    projects: Vec<Project>,
    cores: (u32, u32),
    has_accounts: bool,
}

impl Home {
    fn read(server: &Server, requester: &Requester, query: HomeQuery) -> Result<Self, Refusal> {
        let mut experiments = server.experiments(requester, &query.filter())?;
        let has_more = experiments.len() > PAGE_LENGTH;
        experiments.truncate(PAGE_LENGTH);
        let older = experiments.last().filter(|_| has_more).map(|last| query.older_page(last.id));
        Ok(Self {
            experiments,
            older,
            query,
            counts: server.counts(requester)?,
            projects: server.store.projects(requester.id, false)?,
            cores: (server.free_cores()?, server.config.cores),
            has_accounts: server.config.access == Access::Accounts,
        })
    }

    fn may_submit(&self) -> bool {
        self.projects.iter().any(|own| own.is_member && own.is_approved)
    }
}

pub async fn page(
    Extract(server): Extract<SharedServer>,
    Visitor(requester): Visitor,
    QueryParameters(query): QueryParameters<HomeQuery>,
) -> Result<Markup, RefusalPage> {
    let read = run_blocking(server, move |server| {
        let home = Home::read(server, &requester, query)?;
        Ok(Page { title: "Experiments", path: "/", script: "home" }.show(server, &requester, &body(&home)))
    });
    Ok(read.await?)
}

fn body(home: &Home) -> Markup {
    let Home { experiments, counts, cores: (free, cores), .. } = home;
    let counted: Vec<String> =
        counts.iter().map(|(state, count)| format!("{count} {}", state.word().replace('_', " "))).collect();
    html! {
        h1 { "Experiments" }
        p.soft { span id="cores" { (free) " of " (cores) " cores free" } @if !counted.is_empty() { " · " (counted.join(", ")) } }
        @if !home.may_submit() { (newcomer(&home.projects)) }
        div.row {
            @if home.may_submit() { a.button.usual href="/new" { "New experiment" } }
            @if experiments.len() > 1 { button type="button" id="compare-chosen" { "Compare selected" } }
            p.said id="say" role="status" {}
        }
        @if !counts.is_empty() { (filter(home)) }
        @if !experiments.is_empty() {
            (list(experiments))
            nav.row aria-label="Pages" {
                @if home.query.before.is_some() { a.button href="/" { "Newest" } }
                @if let Some(older) = &home.older { a.button rel="next" href=(older) { "Older" } }
            }
        } @else if home.query.is_filtered() {
            div.empty { p { "No experiment matches. " a href="/" { "Show all" } } }
        } @else if home.may_submit() {
            div.empty {
                p { "No experiments yet. Fill in a " a href="/new#question" { "form" } ", " a href="/new#drawing" { "draw a network" } ", or run a " a href="/studies" { "study" } "." }
            }
        }
    }
}

/// Draws the text for a user without a project, which explains how to join a project.
fn newcomer(projects: &[Project]) -> Markup {
    let pending: Vec<&str> =
        projects.iter().filter(|own| !own.is_approved).map(|own| own.name.as_str()).collect();
    html! {
        div.empty id="newcomer" {
            h2 { "You are in no project yet" }
            @if !pending.is_empty() {
                p { "An administrator has yet to approve: " (pending.join(", ")) ". You need not do anything else." }
            }
            p { "Each experiment belongs to a project, whose members can see it. There are two ways to get into a project:" }
            ol {
                li { "Request to join a project whose name you know. Its leader decides whether to admit you." }
                li { "Create a project. An administrator of this server must approve it." }
            }
            p { "You can do both on " a href="/account" { "your account's page" } ". Until then you can try the " a href="/new" { "editor" } ", but cannot save or run experiments." }
        }
    }
}

fn filter(home: &Home) -> Markup {
    let HomeQuery { search, state, project, owner, .. } = &home.query;
    html! {
        form.row.filter method="get" action="/" role="search" {
            input type="search" name="search" value=(search) placeholder="Title or name" aria-label="Title or name";
            select name="state" aria-label="State" {
                option value="" { "any state" }
                @for one in State::ALL { option value=(one.word()) selected[one.word() == state] { (one.word().replace('_', " ")) } }
            }
            @if home.has_accounts {
                select name="project" aria-label="Project" {
                    option value="" { "any project" }
                    @for own in &home.projects { option value=(own.name) selected[own.name == *project] { (own.name) } }
                }
                input name="owner" value=(owner) placeholder="Owner" aria-label="Owner" autocomplete="off";
            }
            button { "Filter" }
            @if home.query.is_filtered() { a href="/" { "Show all" } }
        }
    }
}

fn list(experiments: &[Experiment]) -> Markup {
    html! {
        div.scroll {
            table.list {
                thead { tr { th scope="col" { "Compare" } th scope="col" { "Experiment" } th scope="col" { "State" } th scope="col" { "Progress" } th scope="col" { "Submitted" } } }
                tbody { @for experiment in experiments { (row(experiment)) } }
            }
        }
    }
}

fn row(own: &Experiment) -> Markup {
    let Experiment { id, title, state, why, progress, created, project, owner, .. } = own;
    html! {
        tr data-experiment=(id) data-state=(state.word()) {
            td { input type="checkbox" name="chosen" value=(id) aria-label={ "compare " (title) }; }
            td.title { a href={ "/experiments/" (id) } { (title) } " " small { "#" (id) @if project != owner { " · " (project) " · " (owner) } } span.why { (why) } }
            td { span class={ "state s-" (state.word()) } { (state.word().replace('_', " ")) } }
            td.progress { progress max="1" value=(progress.share) aria-label={ "progress of " (title) } {} " " small.left {} }
            td { small { time datetime=(created) { (created.get(..16).unwrap_or(created).replace('T', " ")) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_page_keeps_the_filter() {
        let query =
            HomeQuery { search: "a & b".to_owned(), state: "done".to_owned(), ..HomeQuery::default() };
        assert_eq!(query.older_page(7), "/?search=a%20%26%20b&state=done&before=7");
        assert_eq!(HomeQuery::default().older_page(7), "/?before=7");
        assert!(HomeQuery { state: "nonsense".to_owned(), ..query }.filter().state.is_none());
    }
}
