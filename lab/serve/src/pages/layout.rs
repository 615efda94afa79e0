//! What all pages have.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

use crate::requester::Requester;
use crate::server::{Access, Server};

/// Where a page is, and what it loads.
pub struct Page<'p> {
    /// Its heading in the browser.
    pub title: &'p str,
    /// The place in the navigation that it is.
    pub here: &'p str,
    /// Its script, without the ending.
    pub script: &'p str,
}

const PLACES: [(&str, &str); 4] =
    [("/", "Experiments"), ("/studies", "Studies"), ("/files", "Files"), ("/new", "New")];

impl Page<'_> {
    /// Returns the page with its navigation.
    pub fn show(&self, server: &Server, requester: &Requester, body: &Markup) -> Markup {
        whole(
            self.title,
            Some(self.script),
            &html! {
                header {
                    a.brand href="/" { "headofline" }
                    nav aria-label="Lab" {
                        div.row.places {
                            @for (path, name) in PLACES {
                                a href=(path) aria-current=[(path == self.here).then_some("page")] { (name) }
                            }
                            @if server.config.access == Access::Accounts {
                                a href="/account" aria-current=[(self.here == "/account").then_some("page")] { (requester.name) }
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
pub fn bare(title: &str, body: &Markup) -> Markup {
    whole(
        title,
        Some("forms"),
        &html! { header { a.brand href="/" { "headofline" } } main id="main" { (body) } },
    )
}

fn whole(title: &str, script: Option<&str>, body: &Markup) -> Markup {
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
                a.skip href="#main" { "To the content" }
                (body)
            }
        }
    }
}

/// Data for a page's script. No `<` ends it before its time.
pub fn given(id: &str, value: &impl Serialize) -> Markup {
    let json = serde_json::to_string(value).expect("what is given to a page is JSON").replace('<', "\\u003c");
    html! { script type="application/json" id=(id) { (PreEscaped(json)) } }
}

/// A field of a form with its label.
pub fn field(label: &str, input: &Markup, id: &str) -> Markup {
    html! { div.field { label for=(id) { (label) } (input) } }
}
