//! Parses the text of a submitted experiment, or reports its errors with their positions.

use axum::http::StatusCode;
use hol_lab::{Experiment, InputError, LabError, Permission, Source};

use crate::experiment::Format;
use crate::mistakes::find_mistakes;
use crate::refusal::{Problem, Refusal};

/// Maximum number of octets of a text.
pub const MAX_TEXT_SIZE: usize = 1 << 20;

/// Maximum number of octets to parse over all points. 10,000 points of a typical text need two thirds of this number.
const MAX_WORK: usize = 16 << 20;

/// Maximum number of nodes of an experiment whose author does not own the machine.
const MAX_NODES: usize = 300;
/// Maximum number of links of an experiment whose author does not own the machine.
const MAX_LINKS: usize = 600;
/// Maximum number of points of an experiment whose author does not own the machine.
const MAX_POINTS: usize = 10_000;
/// Maximum number of routes of an experiment whose author does not own the machine. It limits the time and the memory
/// for parsing: the routes of a chain of 300 nodes take half a second.
const MAX_ROUTES: usize = 250_000;
/// Maximum number of octets of files that an experiment reads. Each line of a trace becomes an event of some 50 octets
/// in every point.
const MAX_FILE_OCTETS: usize = 16 << 20;

/// Parses `text`; error messages call it `name`. The experiment may use only what `permission` grants, and no
/// files of the server other than the files of its project.
pub fn read(name: &str, text: &str, format: Format, permission: &Permission) -> Result<Experiment, Refusal> {
    check_size(text, format, permission)?;
    parse(name, text, format, permission).map_err(|error| match (&error, format) {
        (LabError::Input(_), Format::Toml) => {
            let read = |text: &str| parse(name, text, format, permission).map(drop).or_else(text_error);
            let found = find_mistakes(text, octets_to_parse(text), read);
            Refusal::invalid_text(found.into_iter().map(|error| to_problem(&error.into())).collect())
        }
        _ => Refusal::invalid_text(vec![to_problem(&error)]),
    })
}

/// Returns the error if it is about the text, and not about this machine.
fn text_error(error: LabError) -> Result<(), InputError> {
    match error {
        LabError::Input(error) => Err(error),
        _ => Ok(()),
    }
}

/// Returns the number of octets to parse for an experiment file: the text is parsed once for each point.
pub fn octets_to_parse(text: &str) -> usize {
    points(text).saturating_mul(text.len())
}

/// Returns the resources that experiments may use if their authors do not own this machine; `live` lists the `live`
/// worlds granted to them.
pub fn permission_for_users(live: &[String]) -> Permission {
    Permission {
        programs: false,
        live: Some(live.to_vec()),
        nodes: MAX_NODES,
        links: MAX_LINKS,
        points: MAX_POINTS,
        routes: MAX_ROUTES,
        file_octets: MAX_FILE_OCTETS,
        project: None,
    }
}

/// Rejects texts that are too long.
pub fn check_length(text: &str) -> Result<(), Refusal> {
    if text.len() > MAX_TEXT_SIZE {
        let problem = format!("the text is longer than the maximum of {} MiB", MAX_TEXT_SIZE >> 20);
        return Err(Refusal::too_large(problem));
    }
    Ok(())
}

/// Rejects texts that would take too long to parse, because the whole text may be parsed for each point.
pub fn check_size(text: &str, format: Format, permission: &Permission) -> Result<(), Refusal> {
    check_length(text)?;
    let points = experiment_text(text, format, permission).map_or(1, |said| points(&said));
    if points.saturating_mul(text.len()) > MAX_WORK {
        let problem =
            format!("the text has too many points for its length: {points} points, {} octets", text.len());
        return Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            problem,
            "sweep fewer values, or use `hol run` on your own machine",
        ));
    }
    Ok(())
}

/// Returns the approximate number of points of a text, including the axis of transports; 1 if the text is invalid.
fn points(text: &str) -> usize {
    let Ok(table) = text.parse::<toml::Table>() else { return 1 };
    let lengths =
        |axes: &toml::Table| axes.values().filter_map(|list| Some(list.as_array()?.len())).collect();
    let of_table = |value: &toml::Value| value.as_table().map_or(Vec::new(), lengths);
    let mut axes: Vec<usize> = table.get("sweep").map_or(Vec::new(), of_table);
    let zips = match table.get("zip") {
        Some(toml::Value::Array(zips)) => zips.iter().collect(),
        zip => Vec::from_iter(zip),
    };
    // The lists of a zip advance together, so they are one axis.
    axes.extend(zips.into_iter().filter_map(|zip| of_table(zip).into_iter().max()));
    axes.extend(table.get("transports").and_then(toml::Value::as_array).map(Vec::len));
    axes.into_iter().fold(1, |all, length| all.saturating_mul(length.max(1)))
}

/// Returns the paths, without `project:`, of the project's files that an experiment reads. The experiment
/// names them, or its script sources them.
pub fn project_files(
    name: &str,
    text: &str,
    format: Format,
    permission: &Permission,
) -> Result<Vec<String>, Refusal> {
    let refuse = |error: LabError| Refusal::invalid_text(vec![to_problem(&error)]);
    check_size(text, format, permission)?;
    let source = source(name, text, format, permission).map_err(refuse)?;
    Experiment::parse(name, &source).map_err(|error| refuse(error.into()))?;
    Ok(source.project_files())
}

fn parse(name: &str, text: &str, format: Format, permission: &Permission) -> Result<Experiment, LabError> {
    Ok(Experiment::parse(name, &source(name, text, format, permission)?)?)
}

fn source(name: &str, text: &str, format: Format, permission: &Permission) -> Result<Source, LabError> {
    let file = format!("{name}.{}", format.word());
    Ok(match format {
        Format::Toml => Source::new(file, text).with_permission(permission.clone()),
        Format::Ns => Source::of_script(&file, text, permission)?,
    })
}

/// Returns the text itself if it is an experiment file; if it is an ns script, the experiment file that describes the
/// script's traffic.
fn experiment_text(text: &str, format: Format, permission: &Permission) -> Option<String> {
    match format {
        Format::Toml => Some(text.to_owned()),
        Format::Ns => Some(Source::of_script("script.ns", text, permission).ok()?.text().to_owned()),
    }
}

/// Converts an error to a problem, with its position if the error has one (`file:line:column`).
pub fn to_problem(error: &LabError) -> Problem {
    let LabError::Input(InputError { place, problem }) = error else {
        return Problem { line: None, column: None, message: error.to_string(), cure: String::new() };
    };
    let mut parts = place.rsplitn(3, ':').map(str::parse::<u32>);
    let (line, column) = match (parts.next(), parts.next()) {
        (Some(Ok(column)), Some(Ok(line))) => (Some(line), Some(column)),
        (Some(Ok(line)), _) => (Some(line), None),
        _ => (None, None),
    };
    let (message, cure) = problem.split_once("; ").unwrap_or((problem, ""));
    Problem { line, column, message: message.to_owned(), cure: cure.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, format: Format) -> Problem {
        read("test", text, format, &permission_for_users(&[])).unwrap_err().problems[0].clone()
    }

    #[test]
    fn mistake_is_reported_with_its_position() {
        let problem = refused("transports = ['tcp']\nmessages = -1\n", Format::Toml);
        assert_eq!((problem.line, problem.column), (Some(2), Some(12)), "{problem:?}");
        assert!(refused("set ns [new Simulator]\nnonsense\n", Format::Ns).line.is_some());
    }

    #[test]
    fn files_of_the_server_are_not_read() {
        let texts = [
            "transports = ['tcp']\ntopology = '/etc/passwd'\n",
            "transports = ['tcp']\nroot = '/etc'\n",
            "transports = ['tcp']\n[[program]]\nnode = 'client'\ncommand = 'cat /etc/shadow'\n",
            "transports = ['tcp']\nprogram = [{node='client', command='x', files={'/x'={from='/nowhere'}}}]\n",
        ];
        for text in texts {
            let problem = refused(text, Format::Toml);
            assert!(!problem.message.contains("root:"), "{problem:?}");
            assert!(!problem.message.contains("No such file"), "{problem:?}");
        }
    }

    #[test]
    fn points_are_counted_before_they_are_created() {
        assert_eq!(
            points("a = 1\n[sweep]\n'x' = [1, 2, 3]\ny = [1, 2]\n[[zip]]\nb = [1, 2]\nc = [3, 4]\n"),
            12
        );
        assert_eq!(points("[zip]\nb = [1, 2, 3]\n"), 3);
        assert_eq!(points("nothing of it"), 1);
        let list = format!("[{}]", "1,".repeat(40_000));
        let sweep = format!("transports = ['tcp']\n[sweep]\na = {list}\nb = {list}\n");
        let refused = read("test", &sweep, Format::Toml, &Permission::default()).unwrap_err();
        assert!(refused.to_string().contains("1600000000 points"), "{refused}");
    }

    #[test]
    fn file_size_counts_once_per_point_that_reads_it() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("lte.csv"), "0 1000\n".repeat(100_000)).unwrap();
        let permission = Permission {
            project: Some(root.path().to_owned()),
            file_octets: 2_000_000,
            ..permission_for_users(&[])
        };
        let text = |losses| {
            format!(
                "transports = ['tcp']\nnetwork.trace = 'project:lte.csv'\n[sweep]\n'network.loss' = {losses}\n"
            )
        };
        let refused =
            |losses| read("test", &text(losses), Format::Toml, &permission).err().map(|e| e.to_string());
        let two = refused("['0%', '1%']");
        assert!(!two.is_some_and(|why| why.contains("octets")));
        assert!(refused("['0%', '1%', '2%']").unwrap().contains("more than 2000000 octets"));
    }

    #[test]
    fn a_long_text_is_refused_before_it_is_read() {
        let refused =
            read("test", &"#".repeat(MAX_TEXT_SIZE + 1), Format::Toml, &Permission::default()).unwrap_err();
        assert_eq!(refused.status, axum::http::StatusCode::PAYLOAD_TOO_LARGE);
    }
}
