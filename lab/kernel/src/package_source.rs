//! The distribution's packages: from the package sources of this machine, or from any suite of Debian through a separate apt configuration.
//! Nothing is installed, and the package sources and lists of this machine stay as they are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::KernelError;
use crate::image::version_key;

/// Where Debian packages are downloaded from. By default the package sources of this machine are searched first, then
/// the suites of Debian.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageSource {
    /// The only suite to search, such as `trixie-backports`; `None`: all.
    pub suite: Option<String>,
    /// The mirror of Debian that the user chose.
    pub mirror: Option<String>,
    /// The file with Debian's keys that the user chose.
    pub keyring: Option<PathBuf>,
}

/// The suites that are searched by default. The suites of backports come first: they have the newest kernels, and their
/// package lists are short. `stable-backports` always belongs to Debian's current release.
const DEFAULT_SUITES: [&str; 7] = [
    "trixie-backports",
    "bookworm-backports",
    "stable-backports",
    "trixie",
    "bookworm",
    "testing",
    "unstable",
];

const DEFAULT_MIRROR: &str = "http://deb.debian.org/debian";

/// Paths of files with Debian's keys; the first path was used until Debian 12.
const KEYRINGS: [&str; 2] =
    ["/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp"];

/// What to look for in a list of packages.
pub(crate) struct PackageQuery<'a> {
    /// A description of what the packages contain, for messages.
    pub(crate) what: String,
    /// Further remedies for the error that no package was found; empty, or beginning with ", ".
    pub(crate) cure: &'static str,
    /// The prefix of the names of all suitable packages.
    pub(crate) prefix: &'a str,
    /// Function that chooses the packages to download from all packages of a source.
    pub(crate) choose: &'a dyn Fn(&[String]) -> Option<Vec<String>>,
    /// Function that returns the version in the name of a package. The error message lists such versions as
    /// alternatives.
    pub(crate) version: &'a dyn Fn(&str) -> Option<String>,
}

impl PackageSource {
    /// Downloads the `wanted` packages to the directory `work` and unpacks them there; returns the directory. Passes a description of each
    /// step to `report_step` before the step.
    pub(crate) fn obtain(
        &self,
        wanted: &PackageQuery,
        work: &Path,
        report_step: &impl Fn(&str),
    ) -> Result<PathBuf, KernelError> {
        let mut search = Search::default();
        if *self == Self::default() {
            let apt = Apt { configuration: None };
            match search.search(&apt, "the package sources of this machine", wanted)? {
                Some(packages) => return apt.download(&packages, work, report_step),
                None => report_step("the package sources of this machine do not have this version"),
            }
        }
        let mirror = self.mirror()?;
        let keyring = self.keyring()?;
        let suites = self.suite.as_deref().map_or(DEFAULT_SUITES.to_vec(), |suite| vec![suite]);
        for suite in suites {
            report_step(&format!("searching {suite} of {mirror}"));
            let apt = match Apt::of_suite(suite, &mirror, &keyring, work)? {
                Ok(apt) => apt,
                // Another suite may exist, or be signed with a known key.
                Err(problem) if problem.is_of_suite && self.suite.is_none() => {
                    search.problems.push(problem);
                    continue;
                }
                Err(problem) => return Err(problem.into()),
            };
            if let Some(packages) = search.search(&apt, suite, wanted)? {
                return apt.download(&packages, work, report_step);
            }
        }
        Err(search.into_error(wanted))
    }

    /// Returns the mirror of Debian: that of `--mirror`, or that of this machine's own package sources, if these are
    /// Debian's, or else the default mirror.
    fn mirror(&self) -> Result<String, KernelError> {
        let Some(mirror) = &self.mirror else {
            let mut apt = Command::new("apt-get");
            let format = ["indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Label: Debian"];
            let own = run(apt.args(format), "apt").unwrap_or_default();
            return Ok(own.lines().next().map_or(DEFAULT_MIRROR, |uri| uri.trim_end_matches('/')).to_owned());
        };
        let is_uri = mirror.contains(":/") && !mirror.contains(|c: char| c.is_whitespace() || c == '[');
        if is_uri {
            Ok(mirror.trim_end_matches('/').to_owned())
        } else {
            Err(packages(
                format!("{mirror:?} is not the address of a mirror"),
                format!("give an address such as {DEFAULT_MIRROR}"),
            ))
        }
    }

    fn keyring(&self) -> Result<PathBuf, KernelError> {
        let cure = "install it with `apt-get install debian-archive-keyring`, or name a file with --keyring";
        match &self.keyring {
            // An absolute path, because apt runs in another directory.
            Some(keyring) => fs::canonicalize(keyring).map_err(|e| KernelError::file("read", keyring, e)),
            None => KEYRINGS
                .iter()
                .map(PathBuf::from)
                .find(|keyring| keyring.is_file())
                .ok_or_else(|| packages("no keyring with the keys of Debian was found".to_owned(), cure)),
        }
    }
}

/// The results of a search in package sources so far.
#[derive(Default)]
struct Search {
    places: Vec<String>,
    versions: BTreeSet<(Vec<u64>, String)>,
    problems: Vec<Problem>,
}

impl Search {
    /// Returns the packages to download, if `apt` finds them in its lists.
    fn search(
        &mut self,
        apt: &Apt,
        place: &str,
        wanted: &PackageQuery,
    ) -> Result<Option<Vec<String>>, KernelError> {
        let names = apt.names(wanted.prefix)?;
        self.add(place, &names, wanted);
        Ok((wanted.choose)(&names))
    }

    fn add(&mut self, place: &str, names: &[String], wanted: &PackageQuery) {
        self.places.push(place.to_owned());
        let versions = names.iter().filter_map(|name| (wanted.version)(name));
        self.versions.extend(versions.map(|version| (version_key(&version), version)));
    }

    fn into_error(self, wanted: &PackageQuery) -> KernelError {
        let Self { places, versions, mut problems } = self;
        if places.is_empty() && !problems.is_empty() {
            return problems.remove(0).into();
        }
        let versions: Vec<_> = versions.into_iter().map(|(_, version)| version).collect();
        let known = if versions.is_empty() { "none".to_owned() } else { versions.join(", ") };
        let mut cure = format!("available: {known}; choose another suite with --suite{}", wanted.cure);
        for Problem { what, cure: advice, .. } in problems {
            cure.push_str(&format!("\nnot searched: {what}; {advice}"));
        }
        packages(format!("no {} in {}", wanted.what, places.join(", ")), cure)
    }
}

/// An apt configuration; `None` is the configuration of this machine.
struct Apt {
    configuration: Option<PathBuf>,
}

/// Why the package lists of a suite cannot be downloaded.
struct Problem {
    what: String,
    cure: &'static str,
    /// The output of apt.
    error_output: String,
    /// Whether the problem concerns only this suite, so that another one may work.
    is_of_suite: bool,
}

impl From<Problem> for KernelError {
    fn from(Problem { what, cure, error_output, .. }: Problem) -> Self {
        packages(what, format!("{cure}\n{error_output}"))
    }
}

impl Apt {
    /// Downloads the package lists of a suite to a directory in `work`.
    fn of_suite(
        suite: &str,
        mirror: &str,
        keyring: &Path,
        work: &Path,
    ) -> Result<Result<Self, Problem>, KernelError> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~');
        if suite.is_empty() || suite.starts_with(['-', '.']) || !suite.chars().all(is_name) {
            let cure = "give a name such as trixie-backports";
            return Err(packages(format!("{suite:?} is not the name of a suite"), cure));
        }
        let place = work.join("apt").join(suite);
        let lists = place.join("lists/partial");
        fs::create_dir_all(&lists).map_err(|e| KernelError::file("create", &lists, e))?;
        let store = |name: &str, text: &str| {
            let path = place.join(name);
            fs::write(&path, text).map_err(|e| KernelError::file("write", &path, e)).map(|()| path)
        };
        store("sources.list", &format!("deb [arch=amd64] {mirror} {suite} main\n"))?;
        store("status", "")?;
        let configuration = store("apt.conf", &configuration(&place, keyring))?;
        let apt = Self { configuration: Some(configuration) };
        match run(apt.command("apt-get").arg("update"), "apt") {
            Ok(_) => Ok(Ok(apt)),
            Err(KernelError::Program { error_output, .. }) if !is_full(&error_output) => {
                Ok(Err(diagnose_failure(suite, mirror, keyring, &error_output)))
            }
            Err(error) => Err(error),
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if let Some(path) = &self.configuration {
            // apt-key keeps keyrings there; /tmp may be full or read-only.
            command.arg("-c").arg(path).env("TMPDIR", path.with_file_name(""));
        }
        command
    }

    /// Returns the names of all packages that start with `prefix`.
    fn names(&self, prefix: &str) -> Result<Vec<String>, KernelError> {
        let listed = run(self.command("apt-cache").args(["pkgnames", prefix]), "apt")?;
        Ok(listed.lines().map(|name| name.trim().to_owned()).collect())
    }

    /// Downloads packages to the directory `work` and unpacks them there; returns the directory.
    fn download(
        &self,
        packages: &[String],
        work: &Path,
        report_step: &impl Fn(&str),
    ) -> Result<PathBuf, KernelError> {
        report_step(&format!("downloading {}", packages.join(", ")));
        let (archives, unpacked) = (work.join("archives"), work.join("unpacked"));
        fs::create_dir(&archives).map_err(|e| KernelError::file("create", &archives, e))?;
        // As root, apt would change to a user who cannot write here; this option prevents it.
        let mut apt = self.command("apt-get");
        let apt = apt.current_dir(&archives).args(["-o", "APT::Sandbox::User=root", "download"]);
        run(apt.args(packages), "apt").map_err(download_failed)?;
        for archive in files(&archives)? {
            run(Command::new("dpkg").arg("-x").arg(&archive).arg(&unpacked), "dpkg")?;
        }
        Ok(unpacked)
    }
}

/// Returns a configuration of apt whose directories are all below `place`. apt applies it after this machine's configuration, so proxies
/// and credentials remain in effect. apt.conf(5)
fn configuration(place: &Path, keyring: &Path) -> String {
    let (place, keyring) = (place.display(), keyring.display());
    format!(
        r#"#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Dir::Etc::sourcelist "{place}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::trusted "{keyring}";
Dir::Etc::trustedparts "/dev/null";
Dir::State "{place}";
Dir::State::status "{place}/status";
Dir::Cache "{place}";
Dir::Log "{place}";
"#
    )
}

/// Finds out from apt's output why the lists of a suite could not be downloaded.
fn diagnose_failure(suite: &str, mirror: &str, keyring: &Path, error_output: &str) -> Problem {
    let has = |words: &[&str]| words.iter().any(|word| error_output.contains(word));
    let of_suite =
        |what, cure| Problem { what, cure, error_output: error_output.to_owned(), is_of_suite: true };
    if has(&["NO_PUBKEY", "is not signed", "signatures couldn't be verified", "signatures were invalid"]) {
        let cure = "a new suite is signed with new keys: update the package debian-archive-keyring, or unpack a newer one and name its \
                    file with --keyring";
        return of_suite(format!("{} has no key for {suite} of {mirror}", keyring.display()), cure);
    }
    if has(&["does not have a Release file"]) {
        let cure = "look up its name in dists/ of the mirror; trixie-backports is one";
        return of_suite(format!("{mirror} has no suite {suite}"), cure);
    }
    if has(&["is expired", "is not valid yet"]) {
        let cure = "check the clock of this machine, or use another mirror with --mirror";
        return of_suite(format!("the lists of {suite} of {mirror} are outdated"), cure);
    }
    let cure = "check the network and apt's proxy, or use another mirror with --mirror";
    let what = format!("{mirror} does not answer, or does not have the lists of {suite}");
    Problem { what, cure, error_output: error_output.to_owned(), is_of_suite: false }
}

/// Adds a remedy to the error of a failed download.
fn download_failed(error: KernelError) -> KernelError {
    match error {
        KernelError::Program { error_output, .. } if !is_full(&error_output) => {
            let cure = "update the package lists of this machine with `apt-get update`, or bypass them with --suite or --mirror";
            packages("the download failed".to_owned(), format!("{cure}\n{error_output}"))
        }
        other => other,
    }
}

/// Returns whether the output of a program contains the error message for a full disk.
fn is_full(error_output: &str) -> bool {
    ["No space left on device", "enough free space", "Disk quota exceeded"]
        .iter()
        .any(|word| error_output.contains(word))
}

fn packages(what: String, cure: impl Into<String>) -> KernelError {
    KernelError::Packages { what, cure: cure.into() }
}

/// Returns the files in a directory.
pub(crate) fn files(directory: &Path) -> Result<Vec<PathBuf>, KernelError> {
    let entries = fs::read_dir(directory).map_err(|e| KernelError::file("read", directory, e))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

/// Returns the archive with a kernel's source in the unpacked package.
pub(crate) fn source_archive(unpacked: &Path) -> Result<PathBuf, KernelError> {
    let place = unpacked.join("usr/src");
    let is_archive = |path: &PathBuf| path.to_string_lossy().ends_with(".tar.xz");
    let archive = files(&place)?.into_iter().find(is_archive);
    archive.ok_or_else(|| KernelError::image(&place, "the package contains no linux-source-*.tar.xz"))
}

/// Returns the last lines of a program's output, because on a full disk `dpkg` names each file that it cannot
/// write.
fn last_lines(error_output: &str) -> &str {
    /// Number of last lines of the output that are returned.
    const MAX_LINES: usize = 20;
    error_output
        .rmatch_indices('\n')
        .nth(MAX_LINES - 1)
        .map_or(error_output, |(at, _)| &error_output[at + 1..])
}

/// Runs a program that `package` contains; returns its output if it succeeds.
pub(crate) fn run(command: &mut Command, package: &'static str) -> Result<String, KernelError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.env("LC_ALL", "C").output();
    let output = output.map_err(|_| KernelError::ProgramMissing { program: program.clone(), package })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let whole = String::from_utf8_lossy(&output.stderr);
    let mut error_output = last_lines(whole.trim()).to_owned();
    if is_full(&whole) {
        error_output.push_str("\nfree some space, or set XDG_CACHE_HOME to a directory with space");
    }
    Err(KernelError::Program { program, error_output })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(suite: &str, mirror: &str, keyring: &Path) -> PackageSource {
        PackageSource {
            suite: Some(suite.to_owned()),
            mirror: Some(mirror.to_owned()),
            keyring: Some(keyring.to_owned()),
        }
    }

    fn kernel() -> PackageQuery<'static> {
        PackageQuery {
            what: "kernel 9".to_owned(),
            cure: "",
            prefix: "linux-",
            choose: &|_| None,
            version: &|name| name.strip_prefix("linux-image-").map(str::to_owned),
        }
    }

    #[test]
    fn an_invalid_suite_or_mirror_is_refused_before_apt_starts() {
        let work = tempfile::tempdir().unwrap();
        let keyring = work.path().join("keyring.gpg");
        fs::write(&keyring, "").unwrap();
        let refused = |suite, mirror| {
            let source = source(suite, mirror, &keyring);
            source.obtain(&kernel(), work.path(), &|_| ()).unwrap_err().to_string()
        };
        for suite in ["", "-x", "../x", "a b", "a]", "a\nb"] {
            assert!(refused(suite, DEFAULT_MIRROR).contains("is not the name of a suite"), "{suite:?}");
        }
        for mirror in ["", "debian", "http://a b", "[trusted=yes] http://a/"] {
            assert!(refused("trixie", mirror).contains("is not the address of a mirror"), "{mirror:?}");
        }
    }

    #[test]
    fn each_error_of_apt_has_its_remedy() {
        let cases = [
            (
                "The following signatures couldn't be verified because the public key is not available: NO_PUBKEY 6E\n\
                 E: The repository 'http://m x InRelease' is not signed.",
                ("keys has no key for x of http://m", "debian-archive-keyring", true),
            ),
            (
                "E: The repository 'http://m x Release' does not have a Release file.",
                ("http://m has no suite x", "dists/", true),
            ),
            (
                "E: Release file for http://m/dists/x/InRelease is expired (invalid since 3d).",
                ("the lists of x of http://m are outdated", "clock", true),
            ),
            (
                "E: Failed to fetch http://m/dists/x/InRelease  Could not resolve 'm'",
                ("http://m does not answer", "--mirror", false),
            ),
        ];
        for (error_output, (what, cure, is_of_suite)) in cases {
            let problem = diagnose_failure("x", "http://m", Path::new("keys"), error_output);
            assert!(problem.what.starts_with(what) && problem.cure.contains(cure), "{error_output}");
            assert_eq!(problem.is_of_suite, is_of_suite, "{error_output}");
            assert!(KernelError::from(problem).to_string().ends_with(error_output));
        }
    }

    #[test]
    fn a_full_disk_is_reported_with_a_remedy() {
        let script = "echo 'E: Write error - write (28: No space left on device)' >&2; exit 100";
        let error = run(Command::new("sh").args(["-c", script]), "sh").unwrap_err();
        let error = download_failed(error).to_string();
        assert!(error.contains("XDG_CACHE_HOME") && !error.contains("--mirror"), "{error}");
        let script = "echo 'No space left on device' >&2; seq 5000 >&2; exit 2";
        let error = run(Command::new("sh").args(["-c", script]), "sh").unwrap_err().to_string();
        assert!(error.starts_with("sh failed: 4981\n") && error.contains("XDG_CACHE_HOME"), "{error}");
    }

    /// A directory on this machine serves as a mirror that is always available.
    #[test]
    #[ignore = "needs apt-get"]
    fn a_missing_suite_and_a_missing_signature_have_different_errors() {
        let place = tempfile::tempdir().unwrap();
        let mirror = format!("file:{}", place.path().display());
        let keyring = place.path().join("keyring.gpg");
        fs::write(&keyring, "").unwrap();
        let complaint = || {
            let work = tempfile::tempdir().unwrap();
            let source = source("here", &mirror, &keyring);
            source.obtain(&kernel(), work.path(), &|_| ()).unwrap_err().to_string()
        };
        assert!(complaint().contains("has no suite here"), "{}", complaint());
        let suite = place.path().join("dists/here");
        fs::create_dir_all(&suite).unwrap();
        fs::write(suite.join("Release"), "Origin: Debian\nSuite: here\nComponents: main\n").unwrap();
        assert!(complaint().contains("has no key for here"), "{}", complaint());
    }

    #[test]
    fn an_empty_search_names_the_searched_suites_and_the_alternatives() {
        let mut search = Search::default();
        search.problems.push(diagnose_failure("sid", "http://m", Path::new("keys"), "NO_PUBKEY 6E"));
        search.add("trixie", &["linux-image-6.12", "linux-image-6.1"].map(str::to_owned), &kernel());
        let error = search.into_error(&kernel()).to_string();
        assert!(
            error.starts_with("no kernel 9 in trixie; available: 6.1, 6.12; choose another suite"),
            "{error}"
        );
        assert!(
            error.contains("\nnot searched: keys has no key for sid of http://m; a new suite"),
            "{error}"
        );
        let problems = vec![diagnose_failure("sid", "http://m", Path::new("keys"), "NO_PUBKEY 6E")];
        let nowhere = Search { problems, ..Search::default() }.into_error(&kernel()).to_string();
        assert!(nowhere.starts_with("keys has no key for sid") && nowhere.contains("--keyring"), "{nowhere}");
    }
}
