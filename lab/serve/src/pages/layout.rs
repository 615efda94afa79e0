//! The layout of all pages.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

use crate::requester::Requester;
use crate::server::{Access, Server};

/// The title of a page, its place in the navigation, and its script.
pub struct Page<'p> {
    /// Title in the browser.
    pub title: &'p str,
    /// Path of the current entry of the navigation.
    pub path: &'p str,
    /// Name of the script, without its suffix.
    pub script: &'p str,
}

const NAVIGATION: [(&str, &str); 4] =
    [("/", "Experiments"), ("/studies", "Studies"), ("/files", "Files"), ("/new", "New")];

impl Page<'_> {
    /// Returns the page with its navigation.
    pub fn show(&self, server: &Server, requester: &Requester, body: &Markup) -> Markup {
        document(
            self.title,
            Some(self.script),
            &html! {
                header {
                    a.brand href="/" { "headofline" }
                    nav aria-label="Lab" {
                        div.row.places {
                            @for (entry, name) in NAVIGATION {
                                a href=(entry) aria-current=[(entry == self.path).then_some("page")] { (name) }
                            }
                            @if server.config.access == Access::Accounts {
                                a href="/account" aria-current=[(self.path == "/account").then_some("page")] { (requester.name) }
                            }
                        }
                    }
                }
                main id="main" { (body) }
            },
        )
    }
}

/// Returns a page for visitors who are not logged in.
pub fn logged_out_page(title: &str, body: &Markup) -> Markup {
    document(
        title,
        Some("forms"),
        &html! { header { a.brand href="/" { "headofline" } } main id="main" { (body) } },
    )
}

fn document(title: &str, script: Option<&str>, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) " · headofline" }
                link rel="icon" href="/web/icon.svg";
                link rel="stylesheet" href="/web/page.css";
                @if let Some(script) = script { script type="module" src={ "/web/" (script) ".js" } {} }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (body)
            }
        }
    }
}

/// Embeds data for a page's script; `<` is escaped, so that the data cannot end the element.
pub fn embedded_json(id: &str, value: &impl Serialize) -> Markup {
    let json = serde_json::to_string(value).expect("the data can be written as JSON").replace('<', "\\u003c");
    html! { script type="application/json" id=(id) { (PreEscaped(json)) } }
}

/// Draws a field of a form with its label.
pub fn field(label: &str, input: &Markup, id: &str) -> Markup {
    html! { div.field { label for=(id) { (label) } (input) } }
}
