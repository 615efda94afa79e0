//! Reads the database of Debian's package manager: the package of a file, and its dependencies. dpkg(1), deb-control(5).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of dpkg's database.
const DATABASE_DIRECTORY: &str = "/var/lib/dpkg";

/// The architectures that the guest can run.
const GUEST_ARCHITECTURES: [&str; 2] = ["amd64", "all"];

/// The installed packages, by name.
#[derive(Debug, Default)]
pub(super) struct Packages {
    database: PathBuf,
    packages: BTreeMap<String, Package>,
    /// For each virtual package, by its name, the packages that provide it.
    providers: BTreeMap<String, Vec<String>>,
    /// The names of the essential packages, which other packages depend on without declaring it. Debian policy 3.8
    essential: Vec<String>,
    /// The package to which each file belongs.
    owners: BTreeMap<PathBuf, String>,
}

/// An installed package.
#[derive(Debug, Default, PartialEq, Eq)]
struct Package {
    /// Name of the file in dpkg's database that lists the package's files. It includes the architecture if several
    /// are installed.
    list: String,
    /// The dependencies as groups of alternatives; one package of each group is needed.
    depends: Vec<Vec<String>>,
}

impl Packages {
    /// Returns the packages of this machine; empty if it has another package manager.
    pub(super) fn read() -> Self {
        Self::at(Path::new(DATABASE_DIRECTORY))
    }

    fn at(database: &Path) -> Self {
        let status = fs::read_to_string(database.join("status")).unwrap_or_default();
        let mut all = Self { database: database.to_owned(), ..Self::default() };
        for stanza in status.split("\n\n") {
            all.add(&fields(stanza));
        }
        let names: Vec<String> = all.packages.keys().cloned().collect();
        for name in names {
            for path in all.files(&name) {
                all.owners.entry(path).or_insert_with(|| name.clone());
            }
        }
        all
    }

    fn add(&mut self, fields: &BTreeMap<&str, String>) {
        let of = |key: &str| fields.get(key).map_or("", String::as_str);
        if !of("Status").ends_with(" installed") {
            return;
        }
        let (name, architecture) = (of("Package").to_owned(), of("Architecture"));
        // A package may be installed for several architectures, but the guest has only one.
        if !GUEST_ARCHITECTURES.contains(&architecture) {
            return;
        }
        if of("Essential") == "yes" {
            self.essential.push(name.clone());
        }
        for provided in split_groups(of("Provides")).into_iter().flatten() {
            self.providers.entry(provided).or_default().push(name.clone());
        }
        let depends = [split_groups(of("Pre-Depends")), split_groups(of("Depends"))].concat();
        let list = if of("Multi-Arch") == "same" { format!("{name}:{architecture}") } else { name.clone() };
        self.packages.insert(name, Package { list, depends });
    }

    /// Returns the name of the package to which a file belongs.
    pub(super) fn package_of_file(&self, path: &Path) -> Option<&str> {
        // On a system whose /bin is a link to /usr/bin, a file may be listed under either name.
        let below_usr = Path::new("/usr").join(path.strip_prefix("/").unwrap_or(path));
        let merged = path.strip_prefix("/usr").map(|rest| Path::new("/").join(rest));
        let names = [Some(path.to_owned()), merged.ok(), Some(below_usr)];
        names.into_iter().flatten().find_map(|path| self.owners.get(&path)).map(String::as_str)
    }

    /// Returns the names of these packages and of all of their installed dependencies.
    pub(super) fn with_dependencies<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> BTreeSet<String> {
        let mut pending: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let mut closure = BTreeSet::new();
        while let Some(name) = pending.pop() {
            let Some(package) = self.packages.get(&name) else { continue };
            if closure.insert(name.clone()) {
                pending.extend(package.depends.iter().filter_map(|group| self.installed(group)));
                // Programs often need what the minimal variant of a package lacks.
                pending.extend(name.strip_suffix("-minimal").map(str::to_owned));
            }
        }
        closure
    }

    /// Returns the first package of a group that is installed, or an installed package that provides it.
    fn installed(&self, group: &[String]) -> Option<String> {
        group.iter().find_map(|name| {
            let own = self.packages.contains_key(name).then(|| name.clone());
            own.or_else(|| self.providers.get(name)?.first().cloned())
        })
    }

    /// Returns the names of the essential packages.
    pub(super) fn essential(&self) -> &[String] {
        &self.essential
    }

    /// Returns the files and directories of a package.
    pub(super) fn files(&self, name: &str) -> Vec<PathBuf> {
        let Some(package) = self.packages.get(name) else { return Vec::new() };
        let list = self.database.join("info").join(format!("{}.list", package.list));
        let list = fs::read_to_string(list).unwrap_or_default();
        list.lines().filter(|line| *line != "/.").map(PathBuf::from).collect()
    }
}

/// Returns the fields of a stanza in dpkg's database. A line that begins with a space continues the field before
/// it.
fn fields(stanza: &str) -> BTreeMap<&str, String> {
    let lines = stanza.lines().filter(|line| !line.starts_with(' '));
    lines.filter_map(|line| line.split_once(": ")).map(|(key, value)| (key, value.to_owned())).collect()
}

/// Splits a dependency field `a (>= 1), b | c:any` into groups of names.
fn split_groups(text: &str) -> Vec<Vec<String>> {
    let name = |text: &str| {
        let end = text.find(|c: char| c.is_whitespace() || matches!(c, '(' | ':' | '['));
        text[..end.unwrap_or(text.len())].to_owned()
    };
    let group = |text: &str| text.split('|').map(|text| name(text.trim())).collect();
    text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Package: curl\nStatus: install ok installed\nArchitecture: amd64\n\
        Depends: libc6 (>= 2.34), libcurl4 (= 7.88), zlib1g | other\nDescription: x\n a longer one\n\n\
        Package: libcurl4\nStatus: install ok installed\nArchitecture: amd64\nMulti-Arch: same\nDepends: tls\n\n\
        Package: libcurl4\nStatus: install ok installed\nArchitecture: i386\nMulti-Arch: same\n\n\
        Package: gnutls\nStatus: install ok installed\nArchitecture: amd64\nProvides: tls (= 3)\n\n\
        Package: findutils\nEssential: yes\nStatus: install ok installed\nArchitecture: amd64\n\n\
        Package: libc6\nStatus: deinstall ok config-files\nArchitecture: amd64\n";

    fn packages() -> (tempfile::TempDir, Packages) {
        let database = tempfile::tempdir().unwrap();
        fs::write(database.path().join("status"), STATUS).unwrap();
        fs::create_dir(database.path().join("info")).unwrap();
        fs::write(database.path().join("info/curl.list"), "/.\n/usr\n/usr/bin\n/usr/bin/curl\n").unwrap();
        fs::write(database.path().join("info/libcurl4:amd64.list"), "/lib/libcurl.so.4\n").unwrap();
        let packages = Packages::at(database.path());
        (database, packages)
    }

    #[test]
    fn the_closure_contains_dependencies_and_their_providers() {
        let (_database, packages) = packages();
        let closure: Vec<_> = packages.with_dependencies(["curl"]).into_iter().collect();
        assert_eq!(closure, ["curl", "gnutls", "libcurl4"]);
    }

    #[test]
    fn essential_packages_are_known() {
        assert_eq!(packages().1.essential(), ["findutils"]);
    }

    #[test]
    fn a_file_has_an_owner_under_both_of_its_names() {
        let (_database, packages) = packages();
        let owner = |path: &str| packages.package_of_file(Path::new(path)).map(str::to_owned);
        assert_eq!(owner("/usr/bin/curl").as_deref(), Some("curl"));
        assert_eq!(owner("/bin/curl").as_deref(), Some("curl"));
        assert_eq!(owner("/usr/lib/libcurl.so.4").as_deref(), Some("libcurl4"));
        assert_eq!(owner("/opt/curl"), None);
    }

    #[test]
    fn a_machine_without_a_database_has_no_packages() {
        let packages = Packages::at(Path::new("/nowhere"));
        assert_eq!(
            (packages.package_of_file(Path::new("/bin/sh")), packages.with_dependencies(["dash"]).len()),
            (None, 0)
        );
    }
}
