//! The pages to log in and to register, and the page of an account with its projects, tokens and password. All forms are sent to the API.

use axum::extract::State as Extract;
use maud::{Markup, html};

use super::layout::{Page, field, logged_out_page};
use super::visitor::{RefusalPage, Visitor};
use crate::blocking::run_blocking;
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::{Server, SharedServer};
use crate::store::{Key, Member, Project};

pub async fn login() -> Markup {
    logged_out_page(
        "Log in",
        &html! {
            h1 { "Log in" }
            form.narrow data-to="/api/login" data-then="/" {
                (field("Name", &html! { input id="name" name="name" required autocomplete="username"; }, "name"))
                (field("Password", &html! { input id="password" name="password" type="password" required autocomplete="current-password"; }, "password"))
                button.usual { "Log in" }
                p.said role="status" {}
            }
            p { a href="/register" { "Register" } }
        },
    )
}

pub async fn register() -> Markup {
    let password = |id: &str| html! { input id=(id) name=(id) type="password" required minlength="8" autocomplete="new-password"; };
    logged_out_page(
        "Register",
        &html! {
            h1 { "Register" }
            form.narrow data-to="/api/users" data-then="/login" {
                (field("Name", &html! { input id="name" name="name" required autocomplete="username"; }, "name"))
                (field("Mail", &html! { input id="mail" name="mail" type="email" required autocomplete="email"; }, "mail"))
                (field("Password", &password("password"), "password"))
                (field("Password again", &password("again"), "again"))
                (field("Project to join, if any", &html! { input id="project" name="project" autocomplete="off"; }, "project"))
                button.usual { "Register" }
                p.said role="status" {}
            }
            p { a href="/login" { "Log in" } }
        },
    )
}

pub async fn page(
    Extract(server): Extract<SharedServer>,
    Visitor(requester): Visitor,
) -> Result<Markup, RefusalPage> {
    let read = run_blocking(server, move |server| {
        let projects = server.store.projects(requester.id, requester.is_administrator)?;
        let parts =
            projects.iter().map(|own| project(server, &requester, own)).collect::<Result<Vec<_>, _>>()?;
        let tokens = server.store.tokens(requester.id)?;
        Ok(Page { title: "Account", path: "/account", script: "forms" }.show(
            server,
            &requester,
            &body(&requester, &parts, &tokens),
        ))
    });
    Ok(read.await?)
}

fn body(requester: &Requester, projects: &[Markup], tokens: &[Key]) -> Markup {
    html! {
        h1 { (requester.name) }
        form data-to="/api/logout" data-then="/login" { button { "Log out" } p.said role="status" {} }
        h2 { "Projects" }
        @for project in projects { (project) }
        @if projects.is_empty() { p.soft { "You are in no project yet. Join or create one below; until then you cannot submit experiments." } }
        div.halves {
            div {
                h2 { "Join a project" }
                form.narrow data-to="/api/projects/{name}/join" data-show="Your request was sent. If there is a project with this name, its leader decides whether to admit you." {
                    (field("Name of the project", &html! { input id="join-name" name="name" required autocomplete="off"; }, "join-name"))
                    button { "Request to join" }
                    p.said role="status" {}
                }
            }
            div {
                h2 { "Create a project" }
                form.narrow data-to="/api/projects" {
                    (field("Name", &html! { input id="project-name" name="name" required autocomplete="off"; }, "project-name"))
                    (field("Title", &html! { input id="project-title" name="title" required; }, "project-title"))
                    button { "Create" }
                    p.said role="status" {}
                }
            }
        }
        h2 { "Tokens for programs" }
        @if !tokens.is_empty() { (token_table(tokens)) }
        form.narrow data-to="/api/tokens" data-show="Copy the token now; it is shown only once:" data-field="token" {
            (field("Purpose", &html! { input id="token-name" name="name" required pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" title="letters, digits, -, _ and ."; }, "token-name"))
            (field("Lifetime in days", &html! { input id="token-days" name="days" type="number" min="1" max="366" value="90" required; }, "token-days"))
            button { "Create a token" }
            p.said role="status" {}
        }
        h2 { "Password" }
        form.narrow data-to="/api/me/password" data-method="PUT" data-show="The password was changed, and your other sessions have ended." {
            // For password managers. A field without a name is not sent.
            input type="text" autocomplete="username" value=(requester.name) hidden;
            (field("Current password", &html! { input id="old" name="old" type="password" required autocomplete="current-password"; }, "old"))
            (field("New password", &html! { input id="password" name="password" type="password" required minlength="8" autocomplete="new-password"; }, "password"))
            (field("New password again", &html! { input id="again" name="again" type="password" required minlength="8" autocomplete="new-password"; }, "again"))
            button { "Change the password" }
            p.said role="status" {}
        }
    }
}

fn token_table(tokens: &[Key]) -> Markup {
    let day = |time: &str| time.get(..10).unwrap_or(time).to_owned();
    html! {
        table {
            thead { tr { th scope="col" { "Purpose" } th scope="col" { "Created" } th scope="col" { "Expires" } th scope="col" { "Revoke" } } }
            tbody {
                @for own in tokens {
                    tr {
                        td { (own.name) } td { (day(&own.created)) } td { (day(&own.expires)) }
                        td { (button_form("DELETE", &format!("/api/tokens/{}", own.id), "Revoke")) }
                    }
                }
            }
        }
    }
}

/// Draws a form with only a button.
fn button_form(method: &str, to: &str, label: &str) -> Markup {
    html! { form data-to=(to) data-method=(method) { button.small { (label) } p.said role="status" {} } }
}

/// Draws a project with its members, and with its applicants.
fn project(server: &Server, requester: &Requester, own: &Project) -> Result<Markup, Refusal> {
    let leads = own.leader == requester.name;
    let id = server.store.project(&own.name, requester.id)?.map(|(id, _)| id);
    let used = id.map(|id| server.store.usage(id)).transpose()?;
    let members = id.map_or(Ok(Vec::new()), |id| server.store.members(id))?;
    Ok(html! {
        h3 { (own.name) " " small { (own.title) ", led by " (own.leader) @if !own.is_approved { ", not approved yet" } } }
        @if requester.is_administrator && !own.is_approved {
            form data-to={ "/api/projects/" (own.name) "/approve" } { button { "Approve" } p.said role="status" {} }
        }
        @if let Some(used) = used {
            p.soft { "Used: " (server.config.quota.describe(&used)) ". " a href={ "/files?project=" (own.name) } { "Files" } }
        }
        @if members.len() > 1 {
            ul.members aria-label={ "Members of " (own.name) } { @for one in &members { (member(own, one, leads)) } }
        }
    })
}

/// Draws a member or an applicant, with buttons for the leader.
fn member(project: &Project, one: &Member, leads: bool) -> Markup {
    let path = format!("/api/projects/{}/members/{}", project.name, one.name);
    html! {
        li {
            span { (one.name) @if !one.is_admitted { " requests to join" } @else if one.name == project.leader { " (leader)" } }
            @if leads && !one.is_admitted {
                (button_form("PUT", &path, "Admit"))
                (button_form("DELETE", &path, "Reject"))
            } @else if leads && one.name != project.leader {
                (button_form("DELETE", &path, "Remove"))
            }
        }
    }
}
