//! The page with the files of a user or a project.

use axum::extract::State as Extract;
use hol_base::percent_encoded;
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::Page;
use super::visitor::{RefusalPage, Visitor};
use crate::blocking::run_blocking;
use crate::directory::{FileEntry, list_files};
use crate::extract::QueryParameters;
use crate::folders::Folder;
use crate::server::SharedServer;

/// The query of this page, which names the owner of the files.
#[derive(Debug, Deserialize)]
pub struct FilesQuery {
    /// Name of the project; by default the user is the owner.
    project: Option<String>,
}

pub async fn page(
    Extract(server): Extract<SharedServer>,
    Visitor(requester): Visitor,
    QueryParameters(FilesQuery { project }): QueryParameters<FilesQuery>,
) -> Result<Markup, RefusalPage> {
    let read = run_blocking(server, move |server| {
        let projects = server.store.projects(requester.id, false)?;
        let projects = projects.into_iter().filter(|own| own.is_member && own.is_approved);
        let projects: Vec<String> = projects.map(|own| own.name).collect();
        let folder = project.clone().map_or(Folder::Mine, Folder::Project);
        let files = list_files(&server.folder(&requester, &folder)?)?;
        let body = body(project.as_deref(), &projects, &files);
        Ok(Page { title: "Files", path: "/files", script: "files" }.show(server, &requester, &body))
    });
    Ok(read.await?)
}

fn body(project: Option<&str>, projects: &[String], files: &[FileEntry]) -> Markup {
    let base = project.map_or("/api/me/files/".to_owned(), |name| format!("/api/projects/{name}/files/"));
    html! {
        h1 { @match project { Some(name) => { "Files of " (name) } None => { "Your files" } } }
        nav.row aria-label="Owner of the files" {
            a.button href="/files" aria-current=[project.is_none().then_some("page")] { "Yours" }
            @for name in projects {
                a.button href={ "/files?project=" (name) } aria-current=[(project == Some(name.as_str())).then_some("page")] { (name) }
            }
        }
        @match project {
            Some(_) => { p.soft { "Experiments of this project can use these files: write " code { "project:" } " before the path, as in " code { "trace = \"project:lte.csv\"" } "." } }
            None => { p.soft { "Only you can see these files. Experiments can use only the files of their project." } }
        }
        form.row id="upload" data-base=(base) {
            label for="file" { "Upload" }
            input type="file" id="file" multiple required;
            label for="folder" { "into" }
            input id="folder" placeholder="folder, if any" autocomplete="off";
            button.usual { "Upload" }
        }
        p.said id="say" role="status" {}
        @if files.is_empty() {
            div.empty { p { "No files yet." } }
        } @else {
            div.scroll {
                table.list {
                    thead { tr { th scope="col" { "File" } th scope="col" { "Octets" } th scope="col" { "Delete" } } }
                    tbody {
                        @for FileEntry { path, size } in files {
                            tr {
                                td.title { a href={ (base) (percent_encoded(path)) } download { (path) } }
                                td { (size) }
                                td { button.small type="button" data-delete={ (base) (percent_encoded(path)) } aria-label={ "delete " (path) } { "Delete" } }
                            }
                        }
                    }
                }
            }
        }
    }
}
