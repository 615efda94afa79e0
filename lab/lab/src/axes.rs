//! The axes of a sweep: the lists under `[sweep]` are combined into a grid; the lists of a `[[zip]]` advance together.

use std::collections::BTreeSet;
use std::ops::Range;

use hol_stack::ProtocolKind;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::dotted_key::{assign, key_path};
use crate::error::InputError;
use crate::source::Source;
use crate::transport_options;
use crate::value_label::label;

/// Maximum number of points; a larger number is considered a mistake.
const MAX_POINTS: usize = 100_000;

/// A key and the value that is assigned to it.
#[derive(Debug, Clone)]
pub(crate) struct Assignment<'s> {
    /// The dotted key, as the user wrote it.
    pub key: String,
    /// Index of the axis to which the assignment belongs, in the order of the file.
    axis: usize,
    path: Vec<String>,
    span: Range<usize>,
    value: Spanned<DeValue<'s>>,
}

/// The steps of one axis; each step may assign several keys.
type Axis<'s> = Vec<Vec<Assignment<'s>>>;

impl Assignment<'_> {
    /// Returns whether the assignment sets the top-level key `key`.
    pub fn sets(&self, key: &str) -> bool {
        self.path == [key]
    }

    /// Returns the name of the transport whose option the key sets; `None` if it sets something else.
    fn transport(&self) -> Option<&str> {
        transport_options::is_option(&self.path).then(|| self.path[0].as_str())
    }

    /// Returns the value as the user wrote it, but without quotes; tables and lists are written in a normalised
    /// form.
    pub fn text(&self) -> String {
        match self.value.get_ref() {
            DeValue::String(text) => text.to_string(),
            other => label(other),
        }
    }
}

impl<'s> Assignment<'s> {
    /// Sets the key in an experiment's table to the value.
    pub fn apply(&self, table: &mut DeTable<'s>, source: &Source) -> Result<(), InputError> {
        if transport_options::is_option(&self.path) {
            return transport_options::assign(table, &self.path, &self.value.span(), &self.text())
                .map_err(|problem| source.error(&self.span, problem));
        }
        assign(table, &self.path, &self.span, self.value.clone())
            .map_err(|problem| source.error(&self.span, problem))
    }
}

/// Returns the keys of a combination that affect a transport, with their values as written. Keys that set options of
/// other transports are left out.
pub(crate) fn keys_of_transport(step: &[Assignment<'_>], transport: ProtocolKind) -> Vec<(String, String)> {
    let matters = |axis: usize| {
        let mut keys = step.iter().filter(|set| set.axis == axis);
        keys.any(|set| set.transport().is_none_or(|name| name == transport.name()))
    };
    let of_transport = step.iter().filter(|set| matters(set.axis));
    of_transport.map(|set| (set.key.clone(), set.text())).collect()
}

/// Removes `sweep` and `zip` from `table`. Returns every combination of the values of their axes; the last axis
/// changes fastest.
pub(crate) fn take_combinations<'s>(
    table: &mut DeTable<'s>,
    source: &Source,
) -> Result<Vec<Vec<Assignment<'s>>>, InputError> {
    let mut combinations = vec![Vec::new()];
    for axis in axes(table, source)? {
        if combinations.len() * axis.len() > MAX_POINTS {
            let problem = format!("the sweep has more than {MAX_POINTS} points; shorten its lists of values");
            return Err(source.error(&axis[0][0].span, problem));
        }
        let extend = |done: Vec<Assignment<'s>>| {
            axis.iter().map(move |step| done.iter().chain(step).cloned().collect()).collect::<Vec<_>>()
        };
        combinations = combinations.into_iter().flat_map(extend).collect();
    }
    Ok(combinations)
}

/// Returns the axes in the order of the file.
fn axes<'s>(table: &mut DeTable<'s>, source: &Source) -> Result<Vec<Axis<'s>>, InputError> {
    let mut axes = Vec::new();
    if let Some(sweep) = table.remove("sweep") {
        for (key, values) in tables(
            sweep,
            source,
            "[sweep] must be a table of lists, as in \"network.loss\" = [\"0%\", \
            \"1%\"]",
        )?
        .into_iter()
        .flatten()
        {
            axes.extend(zipped(vec![(key, values)], source)?);
        }
    }
    if let Some(zip) = table.remove("zip") {
        for lists in tables(zip, source, "each [[zip]] must be a table of lists, as in seed = [1, 2]")? {
            axes.extend(zipped(lists.into_iter().collect(), source)?);
        }
    }
    axes.sort_by_key(|axis| axis[0][0].span.start);
    for (index, axis) in axes.iter_mut().enumerate() {
        axis.iter_mut().flatten().for_each(|assignment| assignment.axis = index);
    }
    Ok(axes)
}

/// Returns the tables in a value, which may be one table or a list of tables.
fn tables<'s>(
    value: Spanned<DeValue<'s>>,
    source: &Source,
    expected: &str,
) -> Result<Vec<DeTable<'s>>, InputError> {
    let span = value.span();
    let parts = match value.into_inner() {
        DeValue::Array(list) => list.into_iter().map(Spanned::into_inner).collect(),
        other => vec![other],
    };
    let table = |part| match part {
        DeValue::Table(table) => Ok(table),
        _ => Err(source.error(&span, expected)),
    };
    parts.into_iter().map(table).collect()
}

/// Returns the axis of a `[[zip]]` table, whose lists advance together; `None` if the command line sets all of its
/// keys.
fn zipped<'s>(
    lists: Vec<(Spanned<toml::de::DeString<'s>>, Spanned<DeValue<'s>>)>,
    source: &Source,
) -> Result<Option<Axis<'s>>, InputError> {
    let mut axis: Axis<'s> = Vec::new();
    for (key, values) in lists {
        let (span, name) = (key.span(), key.into_inner().into_owned());
        let refuse = |problem: String| Err(source.error(&span, problem));
        let Some(path) = key_path(&name) else {
            return refuse(format!(
                "{name:?} is not a dotted key; write a key such as \
            \"network.loss\""
            ));
        };
        if ["transports", "sweep", "zip", "title", "records", "series", "figure"].contains(&path[0].as_str())
        {
            return refuse(format!(
                "{name:?} cannot be swept; `transports` is an axis already, and the other keys apply to the whole \
                experiment"
            ));
        }
        if source.is_set(&path) {
            continue;
        }
        let values = match values.into_inner() {
            DeValue::Array(values) if !values.is_empty() => values,
            _ => return refuse(format!("{name:?} needs a list of values, as in [\"0%\", \"1%\"]")),
        };
        if axis.is_empty() {
            axis = vec![Vec::new(); values.len()];
        }
        if axis.len() != values.len() {
            return refuse(format!(
                "all lists of a [[zip]] need the same length; this one has {} values, others {}",
                values.len(),
                axis.len()
            ));
        }
        for (step, value) in axis.iter_mut().zip(values) {
            step.push(Assignment {
                key: name.clone(),
                axis: 0,
                path: path.clone(),
                span: span.clone(),
                value,
            });
        }
    }
    let mut seen = BTreeSet::new();
    for step in &axis {
        let values: Vec<String> = step.iter().map(Assignment::text).collect();
        if seen.contains(&values) {
            let problem = format!("the value {} occurs twice; remove one", values.join(" with "));
            return Err(source.error(&step[0].value.span(), problem));
        }
        seen.insert(values);
    }
    Ok((!axis.is_empty()).then_some(axis))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &Source) -> Result<Vec<String>, InputError> {
        let mut table = source.table()?;
        let combinations = take_combinations(&mut table, source)?;
        let show = |step: Vec<Assignment<'_>>| {
            step.iter().map(|a| format!("{}={}", a.key, a.text())).collect::<Vec<_>>().join(" ")
        };
        Ok(combinations.into_iter().map(show).collect())
    }

    #[test]
    fn a_grid_has_every_combination_and_the_last_axis_is_fastest() {
        let source = Source::new("a", "[sweep]\n'b.x' = ['0%', '1%']\n'a.y' = [1, 2]\n");
        assert_eq!(read(&source).unwrap(), ["b.x=0% a.y=1", "b.x=0% a.y=2", "b.x=1% a.y=1", "b.x=1% a.y=2"]);
    }

    #[test]
    fn zipped_lists_advance_together() {
        let source = Source::new("a", "[sweep]\nz = [7]\n[[zip]]\nx = [1, 2]\ny = ['a', 'b']\n");
        assert_eq!(read(&source).unwrap(), ["z=7 x=1 y=a", "z=7 x=2 y=b"]);
        let error = read(&Source::new("a", "[[zip]]\nx = [1, 2]\ny = [1]\n")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a:3:1: all lists of a [[zip]] need the same length; this one has 1 values, others 2"
        );
    }

    #[test]
    fn tables_and_lists_are_shown_in_a_normalised_layout() {
        let written = "[sweep]\nq = ['droptail', { red = { max = '15p', min = '5p' } }, true, [3, 7], { to = 'a,b' }]\n";
        let labels = ["q=droptail", "q={red={max=15p,min=5p}}", "q=true", "q=[3,7]", "q={to=\"a,b\"}"];
        assert_eq!(read(&Source::new("a", written)).unwrap(), labels);
        let otherwise = written.replace("max = '15p', min = '5p'", "min=\"5p\",  max=\"15p\"");
        let otherwise = format!("# a comment\n{}", otherwise.replace("[3, 7]", "[\n  3, # three\n  7,\n]"));
        assert_eq!(read(&Source::new("a", otherwise)).unwrap(), labels);
        let twice = "[sweep]\nx = [{ a = 1, b = 2 }, { b = 2, a = 1 }]\n";
        assert!(read(&Source::new("a", twice)).unwrap_err().problem.contains("occurs twice"));
    }

    #[test]
    fn a_repeated_value_of_an_axis_is_refused() {
        let error = read(&Source::new("a", "[sweep]\nx = ['0%', '1%', '0%']\n")).unwrap_err();
        assert_eq!(error.to_string(), "a:2:18: the value 0% occurs twice; remove one");
        assert!(read(&Source::new("a", "[[zip]]\nx = [1, 1]\ny = [1, 2]\n")).is_ok());
        assert!(read(&Source::new("a", "[[zip]]\nx = [1, 1]\ny = [2, 2]\n")).is_err());
    }

    #[test]
    fn keys_set_on_the_command_line_are_not_swept() {
        let mut source = Source::new("a", "[sweep]\nx = [1, 2]\ny = [1, 2]\n");
        source.set("--set x=5", "x", "5").unwrap();
        assert_eq!(read(&source).unwrap(), ["y=1", "y=2"]);
    }

    #[test]
    fn a_sweep_needs_lists() {
        for text in
            ["[sweep]\nx = 1\n", "[sweep]\nx = []\n", "sweep = 3\n", "[sweep]\ntransports = ['tcp']\n"]
        {
            assert!(read(&Source::new("a", text)).is_err(), "{text}");
        }
    }
}
