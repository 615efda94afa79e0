//! `[[program]]`: resolves paths of files, derives the workload, and locates errors.

use std::ops::Range;
use std::path::Path;

use hol_scenario::{Content, Program, Root};
use hol_workloads::{Programs, WorkloadSpec};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::InputError;
use crate::source::Source;

/// Makes the paths of a program's files absolute; they are relative to the experiment file. If the command names files
/// of the experiment file's directory, this directory becomes the working directory.
pub(crate) fn resolve_files(program: &mut Spanned<Program>, source: &Source) -> Result<(), InputError> {
    let span = program.span();
    let Program { command, directory, files, .. } = program.get_mut();
    if directory.is_none() && command.possible_file_names().into_iter().any(|name| source.has_file(name)) {
        *directory = source.absolute_path(Path::new(".")).ok();
    }
    files.values_mut().try_for_each(|content| match content {
        Content::From(path) | Content::Tar(path) => {
            *path = source.absolute_path(path).map_err(|problem| source.error(&span, problem))?;
            Ok(())
        }
        Content::Text(_) | Content::Size(_) => Ok(()),
    })
}

/// Makes the path of the root absolute.
pub(crate) fn resolve_root(root: &mut Spanned<Root>, source: &Source) -> Result<(), InputError> {
    let span = root.span();
    if let Root::Path(path) = root.get_mut() {
        *path = source.absolute_path(path).map_err(|problem| source.error(&span, problem))?;
    }
    Ok(())
}

/// Returns the workload of programs; `None` if there are none. Its client node is that of the first program that
/// is not a service, its server node that of the first service.
pub(crate) fn workload(programs: &[Spanned<Program>]) -> Option<WorkloadSpec> {
    programs.first()?;
    let node_of = |is_awaited| {
        let found = programs.iter().find(|program| program.get_ref().is_awaited() == is_awaited);
        found.map(|program| program.get_ref().node.clone())
    };
    Some(WorkloadSpec { from: node_of(true), to: node_of(false), ..WorkloadSpec::new(Programs::default()) })
}

/// Returns the position of the [[program]] command that the error `problem` names.
pub(crate) fn command_span(table: &DeTable<'_>, problem: &str) -> Option<Range<usize>> {
    let DeValue::Array(programs) = table.get("program")?.get_ref() else { return None };
    let mut commands = programs.iter().filter_map(|program| program.get_ref().get("command"));
    let first = |command: &DeValue<'_>| match command {
        DeValue::Array(words) => Some(words.first()?.get_ref().as_str()?.to_owned()),
        line => Some(line.as_str()?.to_owned()),
    };
    let named = |command: &&Spanned<DeValue<'_>>| {
        first(command.get_ref()).is_some_and(|name| problem.contains(&format!("`command` names {name:?}")))
    };
    commands.find(named).map(Spanned::span)
}
