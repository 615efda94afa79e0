//! Who one is, and with whom: forms for the API.

use axum::extract::State as Extract;
use maud::{Markup, html};

use super::layout::{Page, bare, field};
use super::visitor::{Apology, Visitor};
use crate::leisure::at_leisure;
use crate::refusal::Refusal;
use crate::server::{Server, Shared};
use crate::store::{Member, Project};
use crate::viewer::Viewer;

pub async fn login() -> Markup {
    bare(
        "Log in",
        &html! {
            h1 { "Log in" }
            form.narrow data-to="/api/login" data-then="/" {
                (field("Name", &html! { input id="name" name="name" required autocomplete="username"; }, "name"))
                (field("Password", &html! { input id="password" name="password" type="password" required autocomplete="current-password"; }, "password"))
                button.usual { "Log in" }
                p.said role="status" {}
            }
            p { a href="/register" { "Make an account" } }
        },
    )
}

pub async fn register() -> Markup {
    let password = |id: &str| html! { input id=(id) name=(id) type="password" required minlength="8" autocomplete="new-password"; };
    bare(
        "Make an account",
        &html! {
            h1 { "Make an account" }
            form.narrow data-to="/api/users" data-then="/login" {
                (field("Name", &html! { input id="name" name="name" required autocomplete="username"; }, "name"))
                (field("Mail", &html! { input id="mail" name="mail" type="email" required autocomplete="email"; }, "mail"))
                (field("Password", &password("password"), "password"))
                (field("Password again", &password("again"), "again"))
                (field("Project to be in, if any", &html! { input id="project" name="project" autocomplete="off"; }, "project"))
                button.usual { "Make it" }
                p.said role="status" {}
            }
            p { a href="/login" { "Log in" } }
        },
    )
}

pub async fn page(Extract(server): Extract<Shared>, Visitor(viewer): Visitor) -> Result<Markup, Apology> {
    let read = at_leisure(server, move |server| {
        let projects = server.store.projects(viewer.id, viewer.is_administrator)?;
        let parts =
            projects.iter().map(|own| project(server, &viewer, own)).collect::<Result<Vec<_>, _>>()?;
        Ok(Page { title: "Account", here: "/account", script: "forms" }.show(
            server,
            &viewer,
            &body(&viewer, &parts),
        ))
    });
    Ok(read.await?)
}

fn body(viewer: &Viewer, projects: &[Markup]) -> Markup {
    html! {
        h1 { (viewer.name) }
        form data-to="/api/logout" data-then="/login" { button { "Log out" } p.said role="status" {} }
        h2 { "Projects" }
        @for project in projects { (project) }
        @if projects.is_empty() { p.soft { "None yet: found one, or ask to be in one when you make an account." } }
        h2 { "Found a project" }
        form.narrow data-to="/api/projects" {
            (field("Name", &html! { input id="project-name" name="name" required; }, "project-name"))
            (field("In a line", &html! { input id="project-title" name="title" required; }, "project-title"))
            button { "Ask for it" }
            p.said role="status" {}
        }
        h2 { "A token for programs" }
        form.narrow data-to="/api/tokens" data-show="Keep it, it is shown this once:" data-field="token" {
            (field("What for", &html! { input id="token-name" name="name" required; }, "token-name"))
            (field("Days that it lasts", &html! { input id="token-days" name="days" type="number" min="1" max="366" value="90" required; }, "token-days"))
            button { "Make it" }
            p.said role="status" {}
        }
    }
}

/// A project, with those who wait to be let in where that is for `viewer` to say.
fn project(server: &Server, viewer: &Viewer, own: &Project) -> Result<Markup, Refusal> {
    let leads = own.leader == viewer.name;
    let id = server.store.project(&own.name, viewer.id)?.map(|(id, _)| id);
    let used = id.map(|id| server.store.usage(id)).transpose()?;
    let members = match (leads, id) {
        (true, Some(id)) => server.store.members(id)?,
        _ => Vec::new(),
    };
    Ok(html! {
        h3 { (own.name) " " small { (own.title) ", led by " (own.leader) @if !own.is_approved { ", not approved yet" } } }
        @if viewer.is_administrator && !own.is_approved {
            form data-to={ "/api/projects/" (own.name) "/approve" } { button { "Approve" } p.said role="status" {} }
        }
        @if let Some(used) = used { p.soft { "Used: " (server.config.quota.line(&used)) } }
        ul { @for one in &members { (member(&own.name, one)) } }
    })
}

fn member(project: &str, one: &Member) -> Markup {
    let path = format!("/api/projects/{project}/members/{}", one.name);
    html! {
        li {
            (one.name)
            @if !one.is_admitted {
                form data-to=(path) data-method="PUT" { button.small { "Admit" } p.said role="status" {} }
            }
        }
    }
}
