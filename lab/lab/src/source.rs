//! The text of an experiment with the overrides of the command line; the position of every value is known.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hol_base::rewrite_parse_error;
use hol_testbed::Script;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::decompression::decompress;
use crate::dotted_key::{assign, key_path, leaf};
use crate::error::{InputError, LabError};
use crate::ns_script;
use crate::origin::{sha256, sha256_of_file};
use crate::other_tool::describe_other_tool;
use crate::permission::{PROJECT_PREFIX, Permission, project_file};
use crate::repetitions::Repetitions;
use crate::toml_reader::{self, ReadError};
use crate::topology;

/// The name of standard input in messages.
const STDIN_NAME: &str = "<stdin>";

/// The largest size of a file that an experiment names, in octets.
const LONGEST_FILE: u64 = 64 << 20;

/// An experiment file and its overrides.
#[derive(Debug, Clone)]
pub struct Source {
    name: String,
    text: String,
    overrides: Vec<Override>,
    /// The directory to which the names of files in the experiment are relative.
    directory: Option<PathBuf>,
    /// Built-in files, by name.
    files: Vec<(String, String)>,
    /// The network that the experiment's topology script defines, as TOML.
    network: OnceLock<String>,
    /// Whether the text was generated from the traffic of a script. Each repetition then plays the whole traffic.
    plays_script: bool,
    /// The resources of this machine that the experiment may use.
    permission: Permission,
    /// The SHA-256 of each file that the experiment names and that has been read, by name.
    read: Arc<Mutex<BTreeMap<String, String>>>,
    /// The total size of the files in `read`, in octets. A file counts each time a point reads it.
    octets_read: Arc<AtomicUsize>,
}

/// An override: one `--set key=value`, or an option that sets a key.
#[derive(Debug, Clone)]
struct Override {
    /// The option as the user wrote it, for messages.
    origin: String,
    path: Vec<String>,
    /// The override as `key = value`. It is preceded by as many blanks as the preceding texts have octets, so that a
    /// span in the error of the parser identifies the override.
    document: String,
    start: usize,
}

impl Source {
    /// Creates an experiment from its text; error messages call it `name`.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let (name, text) = (name.into(), text.into());
        Self {
            name,
            text,
            overrides: Vec::new(),
            directory: None,
            files: Vec::new(),
            network: OnceLock::new(),
            plays_script: false,
            permission: Permission::default(),
            read: Arc::default(),
            octets_read: Arc::default(),
        }
    }

    /// Reads an experiment from a file. If `path` is `-`, reads standard input; files that the experiment names
    /// are then relative to the working directory.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        if path == Path::new("-") {
            let text = io::read_to_string(io::stdin())
                .map_err(|e| LabError::file("read", Path::new(STDIN_NAME), e))?;
            return Ok(Self { directory: Some(PathBuf::new()), ..Self::new(STDIN_NAME, text) });
        }
        let octets = std::fs::read(path).map_err(|e| LabError::file("read", path, e))?;
        let text = text_from_octets(octets).map_err(|problem| InputError {
            place: path.display().to_string(),
            problem: problem.to_owned(),
        })?;
        let directory = path.parent().map(Path::to_owned);
        if ns_script::is_script(path, &text) {
            let beside = Self { directory, ..Self::new(path.display().to_string(), "") };
            return Ok(beside.with_script(&text)?);
        }
        // Neither a file called .toml nor valid TOML is taken for a file of another tool: its programs and comments may contain lines of
        // any tool, and its syntax errors have a position.
        if path.extension() != Some(OsStr::new("toml"))
            && DeTable::parse(&text).is_err()
            && let Some(sentence) = describe_other_tool(text.as_bytes())
        {
            let problem = sentence.to_owned();
            return Err(InputError { place: path.display().to_string(), problem }.into());
        }
        Ok(Self { directory, ..Self::new(path.display().to_string(), text) })
    }

    /// Returns the experiment in an ns script: that in its `#hol` lines or, if there are none, its traffic.
    pub fn of_script(name: &str, text: &str, permission: &Permission) -> Result<Self, InputError> {
        Self::new(name, "").with_permission(permission.clone()).with_script(text)
    }

    /// Returns this source with the experiment of an ns script as its text; name and directory stay the same.
    fn with_script(self, text: &str) -> Result<Self, InputError> {
        let name = self.name.clone();
        let script = self.read_script(&name, text, Path::new(""))?;
        let with_text = |experiment: String| Self { text: experiment, ..self }.with_file(&name, text);
        let Some(experiment) = ns_script::hol_lines(text) else {
            let source = with_text(ns_script::experiment_from_script(&name, &script)?);
            return Ok(Self { plays_script: true, ..source });
        };
        let mut source = with_text(experiment);
        source.set(&name, "topology", &toml::Value::from(name.as_str()).to_string())?;
        Ok(source)
    }

    /// Parses a script. Files that it includes are relative to `directory`, which is relative to the directory of the
    /// experiment.
    pub fn read_script(&self, name: &str, text: &str, directory: &Path) -> Result<Script, InputError> {
        let files = |file: &str| self.read_file(&directory.join(file).to_string_lossy());
        let script = Script::read_with(name, text, &files, &|network| self.permission.check_network(network));
        script.map_err(|e| InputError { place: e.place, problem: e.problem })
    }

    /// Sets the directory of the files that the experiment names.
    pub fn with_directory(self, directory: PathBuf) -> Self {
        Self { directory: Some(directory), ..self }
    }

    /// Sets the resources of this machine that the experiment may use.
    pub fn with_permission(self, permission: Permission) -> Self {
        Self { permission, ..self }
    }

    /// Returns the resources of this machine that the experiment may use.
    pub(crate) fn permission(&self) -> &Permission {
        &self.permission
    }

    /// Returns the text of the experiment without its overrides.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Adds a file that the experiment may name, such as the script of its topology.
    pub fn with_file(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.files.push((name.into(), text.into()));
        self
    }

    /// Returns the name of the experiment in error messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Overrides the dotted `key`. `value` is TOML, or text that needs no quotes. Error messages name `origin`.
    pub fn set(&mut self, origin: &str, key: &str, value: &str) -> Result<(), InputError> {
        let refuse = |problem: String| InputError { place: origin.to_owned(), problem };
        let path = key_path(key)
            .ok_or_else(|| refuse(format!("{key:?} is not a dotted key such as network.loss")))?;
        let quoted = || toml::Value::String(value.to_owned()).to_string();
        let value = if DeValue::parse(value).is_ok() { value.to_owned() } else { quoted() };
        let start = self.overrides.last().map_or(self.text.len(), |last| last.document.len());
        let document = format!("{}{key} = {value}", " ".repeat(start));
        // The topology may now be another script.
        self.network = OnceLock::new();
        self.overrides.push(Override { origin: origin.to_owned(), path, document, start });
        Ok(())
    }

    /// Returns whether the number of messages in the text is for each repetition. This is the case if the text was
    /// generated from the traffic of a script, which each repetition plays as a whole, and if the command line
    /// sets no number.
    pub(crate) fn has_messages_per_repetition(&self) -> bool {
        self.plays_script && !self.is_set(&["messages".to_owned()])
    }

    /// Returns the experiment's name, which is the name of its file without the extension.
    pub fn stem(&self) -> String {
        let name = if self.name == STDIN_NAME { "stdin" } else { &self.name };
        let stem = Path::new(name).file_stem();
        stem.map_or("experiment".to_owned(), |stem| stem.to_string_lossy().into_owned())
    }

    /// Returns the experiment with its overrides as one table, to be written to a file.
    pub fn merged(&self) -> Result<toml::Table, InputError> {
        let table = self.table()?;
        let mut table: toml::Table = toml_reader::from_table(&table).map_err(|e| self.explain(e))?;
        let axes = table.iter_mut().filter(|(name, _)| ["sweep", "zip"].contains(&name.as_str()));
        for (_, axes) in axes {
            let lists = match axes {
                toml::Value::Array(tables) => tables.iter_mut().collect(),
                one => vec![one],
            };
            lists.into_iter().filter_map(toml::Value::as_table_mut).for_each(|lists| {
                lists.retain(|key, _| !key_path(key).is_some_and(|path| self.is_set(&path)));
            });
        }
        self.multiply_messages(&mut table)?;
        Ok(table)
    }

    /// Multiplies the number of messages by the number of repetitions if it is for one repetition, because an
    /// experiment file contains the number for all repetitions.
    fn multiply_messages(&self, table: &mut toml::Table) -> Result<(), InputError> {
        let axes = ["sweep", "zip"].into_iter().filter_map(|kind| table.get(kind));
        let groups = axes.flat_map(|axes| axes.as_array().map_or(std::slice::from_ref(axes), Vec::as_slice));
        let keys = groups.filter_map(toml::Value::as_table).flat_map(toml::Table::keys);
        let swept: Vec<Vec<String>> = keys.filter_map(|key| key_path(key)).collect();
        let sweeps = |key: &str| swept.iter().any(|path| *path == [key]);
        if !self.has_messages_per_repetition() || sweeps("messages") {
            return Ok(());
        }
        if sweeps("repetitions") {
            let problem = "`repetitions` of a script are swept without `messages`; sweep both together, as in \
                zip = { repetitions = [1, 3], messages = [201, 603] }";
            return Err(self.error_of("sweep", &(0..0), problem));
        }
        let repetitions = table.get("repetitions").cloned().map(toml::Value::try_into::<Repetitions>);
        let messages = table.get("messages").and_then(toml::Value::as_integer);
        if let (Some(Ok(repetitions)), Some(messages)) = (repetitions, messages) {
            table.insert("messages".to_owned(), messages.saturating_mul(repetitions.min.into()).into());
        }
        Ok(())
    }

    /// Returns whether the command line sets the dotted `key`, or a table that contains it.
    pub fn sets(&self, key: &str) -> bool {
        key_path(key).is_some_and(|path| self.overrides.iter().any(|set| path.starts_with(&set.path)))
    }

    /// Returns whether the command line sets the key `path`; the key is then not swept.
    pub(crate) fn is_set(&self, path: &[String]) -> bool {
        self.overrides.iter().any(|o| o.path == path)
    }

    /// Returns the experiment with its overrides as one table.
    pub(crate) fn table(&self) -> Result<DeTable<'_>, InputError> {
        let parse = |text| DeTable::parse(text).map_err(|e| self.explain(e)).map(Spanned::into_inner);
        let mut table = parse(&self.text)?;
        if let Some((span, script)) = self.script()? {
            table.remove("topology");
            let network = self.network.get_or_init(|| topology::network_text(&script));
            topology::merge(&mut table, network, &span)
                .map_err(|(span, problem)| self.error(&span, problem))?;
        }
        for set in self.overrides.iter().filter(|set| set.path != ["topology"]) {
            let (span, value) = leaf(parse(&set.document)?, set.path.len());
            assign(&mut table, &set.path, &span, value).map_err(|problem| self.error(&span, problem))?;
        }
        Ok(table)
    }

    /// Returns the script of the experiment's topology, and the position of its name.
    pub(crate) fn script(&self) -> Result<Option<(Range<usize>, Script)>, InputError> {
        let documents =
            self.overrides.iter().rev().filter(|set| set.path == ["topology"]).map(|set| &set.document);
        for document in documents.chain([&self.text]) {
            let table = DeTable::parse(document).map_err(|e| self.explain(e))?.into_inner();
            let name = topology::script_name(&table).map_err(|(span, problem)| self.error(&span, problem))?;
            if let Some(name) = name {
                let text =
                    self.read_file(name.get_ref()).map_err(|problem| self.error(&name.span(), problem))?;
                let is_own = self.files.iter().any(|(known, _)| known == name.get_ref());
                if !is_own
                    && !ns_script::is_script(Path::new(name.get_ref()), &text)
                    && let Some(sentence) = describe_other_tool(text.as_bytes())
                {
                    return Err(self.error(&name.span(), format!("{} {sentence}", name.get_ref())));
                }
                let directory =
                    Path::new(name.get_ref()).parent().filter(|_| !is_own).unwrap_or(Path::new(""));
                return Ok(Some((name.span(), self.read_script(name.get_ref(), &text, directory)?)));
            }
        }
        Ok(None)
    }

    /// Returns the statements of the script that hol ignores: where each is, what it is, and why it has no effect.
    pub(crate) fn ignored_statements(&self) -> Result<Vec<String>, InputError> {
        let Some((_, script)) = self.script()? else { return Ok(Vec::new()) };
        let mut ignored: Vec<String> = script.ignored.iter().map(ToString::to_string).collect();
        let runs_alone = self.files.iter().any(|(file, _)| *file == self.name);
        if let Some(flow) = script.flows.first().filter(|_| !runs_alone) {
            let why = "the experiment defines the traffic; `hol run` on the script itself runs this flow";
            ignored.push(format!("{}: from {} to {}: {why}", flow.place, flow.from, flow.to));
        }
        if let Some(program) = script.programs.first().filter(|_| !runs_alone) {
            let why = "the experiment defines the programs; `hol run` on the script itself runs this program";
            ignored.push(format!("{}: {:?}: {why}", program.place, program.command));
        }
        Ok(ignored)
    }

    /// Returns the SHA-256 of the experiment file and of each file that it names, by path; empty if the
    /// experiment is not in a file.
    pub(crate) fn hashes(&self) -> BTreeMap<String, String> {
        let Some(directory) = &self.directory else { return BTreeMap::new() };
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let built_in = |name: &str| self.files.iter().find(|(known, _)| known == name).map(|(_, text)| text);
        let path = |name: String| match built_in(&name) {
            Some(_) => name,
            None => directory.join(name).display().to_string(),
        };
        // If the experiment was generated from a script, the file is the script.
        let text = built_in(&self.name).unwrap_or(&self.text);
        let own = (self.name.clone(), sha256(text.as_bytes()));
        read.into_iter().map(|(name, hash)| (path(name), hash)).chain([own]).collect()
    }

    /// Returns the names, without `project:`, of the files in the project that the experiment names and that have
    /// been read.
    pub fn project_files(&self) -> Vec<String> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.keys().filter_map(|name| Some(name.strip_prefix(PROJECT_PREFIX)?.to_owned())).collect()
    }

    /// Returns the text of a file that the experiment names. The name is relative to the experiment file, or it is
    /// `project:PATH` for a file of the project.
    pub(crate) fn read_file(&self, name: &str) -> Result<String, String> {
        let text = match self.files.iter().find(|(known, _)| known == name) {
            Some((_, text)) => {
                self.record(name, text.as_bytes());
                text.clone()
            }
            None => self.read_text(name)?,
        };
        let octets = self.octets_read.fetch_add(text.len(), Ordering::Relaxed) + text.len();
        self.permission.check_file_octets(octets)?;
        Ok(text)
    }

    /// Stores the digest of a file that was read. If the file is read again, as by each point of a sweep, the
    /// first digest is kept.
    fn record(&self, name: &str, content: &[u8]) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.entry(name.to_owned()).or_insert_with(|| sha256(content));
    }

    /// Stores the digest of a file of a program. The file may be large, so it is hashed in parts, and only once.
    fn note_file(&self, name: &str, path: &Path) -> io::Result<()> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if !read.contains_key(name) {
            read.insert(name.to_owned(), sha256_of_file(path)?.0);
        }
        Ok(())
    }

    /// Reads a file of this machine, which gzip or zstd may have compressed.
    fn read_text(&self, name: &str) -> Result<String, String> {
        let (path, shown) = match self.project_file(Path::new(name)) {
            // The message must not reveal where the server stores the files of a project.
            Some(path) => (path?, PathBuf::from(name)),
            None => {
                let directory = self.directory.as_deref().ok_or_else(|| {
                    let cure = "paths are relative to the experiment file";
                    format!("{name:?}: not found next to {}; {cure}", self.name)
                })?;
                (directory.join(name), directory.join(name))
            }
        };
        let octets = std::fs::metadata(&path).map_or(0, |file| file.len());
        if octets > LONGEST_FILE {
            let problem = "the maximum is 64 MiB; shorten the file";
            return Err(format!("{} has {octets} octets; {problem}", shown.display()));
        }
        let octets = std::fs::read(&path).map_err(|e| {
            format!("cannot read {}: {e}; paths are relative to {}", shown.display(), self.place_of_files())
        })?;
        self.record(name, &octets);
        let mut content = Vec::new();
        decompress(io::Cursor::new(octets), LONGEST_FILE)
            .and_then(|mut input| input.read_to_end(&mut content))
            .map_err(|problem| format!("cannot read {}: {problem}", shown.display()))?;
        let text = text_from_octets(content).map_err(|problem| format!("{} {problem}", shown.display()))?;
        // Some editors and spreadsheets begin a file with a byte order mark.
        Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
    }

    /// Returns the path of a file that is named as `project:PATH`. It is in the project's directory or, if none is set,
    /// in the directory `project` next to the experiment file.
    fn project_file(&self, name: &Path) -> Option<Result<PathBuf, String>> {
        let beside = || self.directory.as_deref().map(|directory| directory.join("project"));
        project_file(name, self.permission.project.clone().or_else(beside).as_deref())
    }

    /// Returns whether a relative path exists in the experiment's directory.
    pub(crate) fn has_file(&self, name: &str) -> bool {
        let path = Path::new(name);
        self.permission.programs
            && path.is_relative()
            && self.absolute_path(path).is_ok_and(|path| path.is_file())
    }

    /// Returns the absolute path of a file or directory that the experiment names.
    pub(crate) fn absolute_path(&self, path: &Path) -> Result<PathBuf, String> {
        if !self.permission.programs {
            return Err(format!(
                "{}: this server does not let experiments read files of its machine; use files of the project",
                path.display()
            ));
        }
        if let Some(found) = self.project_file(path) {
            let found = found?;
            self.note_file(&path.to_string_lossy(), &found)
                .map_err(|e| format!("{}: {e}", path.display()))?;
            return Ok(found);
        }
        let whole = self.directory.as_deref().unwrap_or(Path::new("")).join(path);
        std::fs::canonicalize(&whole)
            .map_err(|e| format!("{}: {e}; paths are relative to {}", whole.display(), self.place_of_files()))
    }

    /// Returns, as a part of a message, the directory to which the paths of files are relative.
    fn place_of_files(&self) -> &'static str {
        let is_file = !self.text.is_empty() && self.name != STDIN_NAME;
        if is_file { "the experiment file" } else { "the working directory" }
    }

    /// Creates an error at the position `span`.
    pub(crate) fn error(&self, span: &Range<usize>, problem: impl Into<String>) -> InputError {
        InputError { place: self.place(span.start), problem: problem.into() }
    }

    /// Creates an error about a dotted key. Its position is the command-line option if that has set the key,
    /// otherwise `span`.
    pub(crate) fn error_of(&self, key: &str, span: &Range<usize>, problem: impl Into<String>) -> InputError {
        let path = key_path(key).unwrap_or_default();
        match self.overrides.iter().rfind(|set| set.path.starts_with(&path)) {
            Some(set) => InputError { place: set.origin.clone(), problem: problem.into() },
            None => self.error(span, problem),
        }
    }

    /// Converts an error of the TOML parser, and adds a remedy.
    pub(crate) fn explain(&self, error: impl Into<ReadError>) -> InputError {
        let error = error.into();
        self.error(&error.span().unwrap_or(0..0), rewrite_parse_error(error.message()))
    }

    fn place(&self, offset: usize) -> String {
        if let Some(set) = self.overrides.iter().rfind(|o| o.start <= offset) {
            return set.origin.clone();
        }
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        format!("{}:{line}:{column}", self.name)
    }
}

/// Converts the content of a file to text. If it is not text, the error is the end of a sentence that begins with
/// the file's name; if possible, it says which tool writes such files.
pub fn text_from_octets(octets: Vec<u8>) -> Result<String, &'static str> {
    String::from_utf8(octets).map_err(|wrong| {
        describe_other_tool(wrong.as_bytes()).unwrap_or("is not UTF-8 text; save it as UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: &DeTable<'_>, path: [&str; 2]) -> String {
        table[path[0]].get_ref()[path[1]].get_ref().as_str().unwrap().to_owned()
    }

    #[test]
    fn the_last_override_wins_and_needs_no_quotes() {
        let mut source = Source::new("a.toml", "[network]\nloss = '1%'\n");
        source.set("--set", "network.loss", "2%").unwrap();
        source.set("--set", "network.loss", "'3%'").unwrap();
        source.set("--set", "network.delay", "10ms").unwrap();
        let table = source.table().unwrap();
        assert_eq!(
            (text(&table, ["network", "loss"]), text(&table, ["network", "delay"])),
            ("3%".into(), "10ms".into())
        );
    }

    #[test]
    fn positions_are_lines_and_columns_or_the_option() {
        let mut source = Source::new("a.toml", "title = 'é'\nseed = 1\n");
        source.set("--delay 10", "network.delay", "10").unwrap();
        source.set("--loss 1", "network.loss", "1").unwrap();
        let table = source.table().unwrap();
        let place = |path: &[&str]| {
            let mut value = table[path[0]].clone();
            for key in &path[1..] {
                value = value.get_ref()[*key].clone();
            }
            source.error(&value.span(), "").place
        };
        assert_eq!(place(&["title"]), "a.toml:1:9");
        assert_eq!(place(&["seed"]), "a.toml:2:8");
        assert_eq!(place(&["network", "delay"]), "--delay 10");
        assert_eq!(place(&["network", "loss"]), "--loss 1");
    }

    #[test]
    fn keys_of_lists_are_numbered() {
        let mut source = Source::new("a.toml", "[network]\npaths = [{delay = '1ms'}]\n");
        source.set("--set", "network.paths.0.delay", "5ms").unwrap();
        assert!(source.table().is_ok());
        source.set("--set", "network.paths.delay", "6ms").unwrap();
        assert!(source.table().is_ok());
        source.set("--set", "network.paths.7.delay", "5ms").unwrap();
        assert!(source.table().unwrap_err().problem.contains("list of 1"));
    }

    #[test]
    fn syntax_errors_have_a_position() {
        let error = Source::new("a.toml", "seed = 1\nmessages == 2\n").table().unwrap_err();
        assert!(error.place.starts_with("a.toml:2:"), "{error}");
        let mut source = Source::new("a.toml", "");
        assert!(source.set("--set x y=1", "x y", "1").is_err());
    }
}
