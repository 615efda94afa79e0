//! Finds the files of this machine that a program needs: its package with all dependencies, or its libraries;
//! the interpreter of a script; and files named in the command.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hol_scenario::{Command, Program};

use super::packages::Packages;
use super::tree::{SHARED_DIRECTORY, Tree};
use crate::program;
use crate::{KernelError, MachineFault};

/// Packages that every node has: a shell, and common tools.
const COMMON_PACKAGES: [&str; 8] =
    ["base-files", "base-passwd", "coreutils", "dash", "libc-bin", "netbase", "sed", "grep"];
/// Directories of packages that programs do not need. Together they are as large as all other directories.
const UNUSED_DIRECTORIES: [&str; 6] = [
    "/usr/share/doc",
    "/usr/share/info",
    "/usr/share/lintian",
    "/usr/share/locale",
    "/usr/share/man",
    "/usr/share/bug",
];
/// Files that are not copied from this machine, because each node has its own version.
const NODE_FILES: [&str; 8] =
    ["/dev", "/proc", "/sys", "/run", "/etc/hosts", "/etc/hostname", "/etc/mtab", "/etc/resolv.conf"];
/// Directories that belong to the system and not to a single program.
const SYSTEM_DIRECTORIES: [&str; 7] = ["/bin", "/boot", "/etc", "/lib", "/sbin", "/usr", "/var"];
/// Directories that programs expect to exist, with their permissions.
const EXPECTED_DIRECTORIES: [(&str, u32); 9] = [
    ("dev", 0o755),
    ("out", 0o777),
    ("proc", 0o555),
    ("root", 0o700),
    ("run", 0o755),
    ("sys", 0o555),
    ("tmp", 0o1777),
    ("var/log", 0o755),
    ("var/tmp", 0o1777),
];
/// Directories that are searched for programs in addition to the user's `PATH`, which lacks the directories of
/// daemons.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Installation prefixes that many packages share, so that not everything below them belongs to one program.
const SHARED_PREFIXES: [&str; 3] = ["/", "/usr", "/usr/local"];

/// Adds the dependencies of all programs. Also adds those settings of this machine that everybody may read.
pub(super) fn add_dependencies(tree: &mut Tree, programs: &[Program]) -> Result<(), KernelError> {
    let mut needs = DependencyCollector {
        packages: Packages::read(),
        names: BTreeSet::new(),
        visited: BTreeSet::new(),
        tree,
    };
    needs.names.extend(COMMON_PACKAGES.map(str::to_owned));
    needs.add_program(Path::new("/bin/sh"))?;
    for program in programs {
        needs.command(program)?;
        if let Some(directory) = &program.directory {
            needs.tree.add_host_file(directory);
        }
    }
    needs.add_packages();
    needs.add_settings(Path::new("/etc"));
    for (place, mode) in EXPECTED_DIRECTORIES {
        tree.add_directory(&format!("{SHARED_DIRECTORY}/{place}"), mode);
    }
    Ok(())
}

/// Returns the words of a program's command that name programs or files of this machine. A name may be relative to the
/// program's working directory.
pub fn local_file_names(program: &Program) -> BTreeSet<String> {
    let directory = program.directory.as_deref().unwrap_or(Path::new("/root"));
    let is_here = |name: &&str| find_program(name, directory).is_some() || directory.join(name).exists();
    program.command.possible_file_names().into_iter().filter(is_here).map(str::to_owned).collect()
}

/// Collects the files and packages that programs need.
struct DependencyCollector<'t> {
    packages: Packages,
    /// The names of the packages to which the programs belong.
    names: BTreeSet<String>,
    /// The programs that have been processed.
    visited: BTreeSet<PathBuf>,
    tree: &'t mut Tree,
}

impl DependencyCollector<'_> {
    fn command(&mut self, program: &Program) -> Result<(), KernelError> {
        let Program { command, directory, .. } = program;
        let directory = directory.as_deref().unwrap_or(Path::new("/root"));
        let mut names = command.possible_file_names().into_iter();
        // Only the shell knows which words of a line are programs; in a list of words the first one is.
        if matches!(command, Command::Words(_)) {
            let first = names.next().unwrap_or_default();
            let path = find_program(first, directory).ok_or_else(|| missing_program_error(first))?;
            self.add_named_program(first, &path)?;
        }
        for name in names {
            if let Some(path) = find_program(name, directory) {
                self.add_named_program(name, &path)?;
            }
            if !name.starts_with('.') || name.contains('/') {
                self.add_named_file(&directory.join(name));
            }
        }
        Ok(())
    }

    /// Adds a file or directory that a command names. Skips system directories, which packages provide, and whole home directories.
    fn add_named_file(&mut self, path: &Path) {
        let Ok(whole) = fs::canonicalize(path) else { return };
        let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let is_of = |places: &[&str]| places.iter().any(|place| whole.starts_with(place));
        let is_large = whole.is_dir() && (home.starts_with(&whole) || is_of(&SYSTEM_DIRECTORIES));
        if !is_of(&NODE_FILES) && !is_large && whole.components().count() > 2 {
            self.tree.add_host_directory(path);
        }
    }

    /// Adds the program that the command names as `word`. If the program is in the user's `PATH` but not in that of a
    /// node, adds a link to it in a directory of the node's `PATH`.
    fn add_named_program(&mut self, word: &str, path: &Path) -> Result<(), KernelError> {
        let is_found = env::split_paths(SYSTEM_PATH).any(|place| path.parent() == Some(&place));
        if !word.contains('/') && !is_found {
            self.tree.add_link(&format!("{SHARED_DIRECTORY}/usr/local/bin/{word}"), path);
        }
        self.add_program(path)
    }

    /// Adds a program with its dependencies.
    fn add_program(&mut self, path: &Path) -> Result<(), KernelError> {
        let whole = fs::canonicalize(path).map_err(|e| KernelError::file("find", path, e))?;
        self.tree.add_host_file(path);
        if !self.visited.insert(whole.clone()) {
            return Ok(());
        }
        let owner = self.packages.package_of_file(&whole).or_else(|| self.packages.package_of_file(path));
        let owner = owner.map(str::to_owned);
        let words = interpreter(&whole).unwrap_or_default();
        if owner.is_some() && words.first().is_some_and(|first| first.ends_with("sh")) {
            self.names.extend(self.packages.essential().iter().cloned());
        }
        match owner {
            Some(owner) => drop(self.names.insert(owner)),
            None => self.add_unpackaged(&whole)?,
        }
        let mut programs = words.iter().filter_map(|word| Some((word, find_program(word, Path::new("/"))?)));
        programs.try_for_each(|(word, path)| self.add_named_program(word, &path))
    }

    /// Adds a program that belongs to no package. Also adds its libraries, and the files that were installed with it
    /// under its own prefix.
    fn add_unpackaged(&mut self, path: &Path) -> Result<(), KernelError> {
        if is_elf(path) {
            if !is_for_this_machine(path) {
                return Err(MachineFault::Program(format!(
                    "`command` names {:?}, a program for another architecture; use a program for x86-64",
                    path.display()
                ))
                .into());
            }
            program::libraries(path)?.iter().for_each(|library| self.tree.add_host_file(library));
        }
        let installation = path.parent().filter(|place| place.ends_with("bin")).and_then(Path::parent);
        let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let is_common = |place: &Path| {
            SHARED_PREFIXES.iter().any(|common| place == Path::new(common))
                || home.starts_with(place)
                || place == home.join(".local")
        };
        if let Some(place) = installation.filter(|place| !is_common(place) && place.join("lib").is_dir()) {
            self.tree.add_host_directory(&place.join("lib"));
        }
        Ok(())
    }

    /// Adds all files of the programs' packages and of their dependencies.
    fn add_packages(&mut self) {
        let mut names = BTreeSet::new();
        loop {
            let closure = self.packages.with_dependencies(self.names.iter().map(String::as_str));
            let more = closure.difference(&names).flat_map(|name| self.packages.files(name));
            let more: Vec<String> = more.flat_map(|place| self.linked_packages(&place)).collect();
            names = closure;
            let before = self.names.len();
            self.names.extend(more);
            if self.names.len() == before {
                break;
            }
        }
        for path in names.iter().flat_map(|name| self.packages.files(name)) {
            let is_private = path.starts_with("/etc") && !is_for_everybody(&path);
            if !is_private && !UNUSED_DIRECTORIES.iter().any(|unread| path.starts_with(unread)) {
                self.tree.add_host_file(&path);
            }
        }
        self.add_root_links();
    }

    /// Returns the packages that own the targets of the symbolic links in a directory of settings, such as
    /// /etc/nginx/modules-enabled.
    fn linked_packages(&self, place: &Path) -> Vec<String> {
        const MIN_COMPONENTS: usize = 4;
        if !place.starts_with("/etc") || place.components().count() < MIN_COMPONENTS || !place.is_dir() {
            return Vec::new();
        }
        let entries = fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
        let links = entries.filter(|path| path.is_symlink()).filter_map(|path| fs::canonicalize(path).ok());
        links.filter_map(|target| self.packages.package_of_file(&target).map(str::to_owned)).collect()
    }

    /// Adds the symbolic links in the root directory of the file system; /bin, for example, may be one.
    fn add_root_links(&mut self) {
        for name in ["/bin", "/sbin", "/lib", "/lib64"] {
            self.tree.add_host_file(Path::new(name));
        }
    }

    /// Adds a directory of settings. Leaves out files that not everybody may read, and files of which each node has its
    /// own version.
    fn add_settings(&mut self, place: &Path) {
        let entries = fs::read_dir(place).into_iter().flatten().flatten();
        for entry in entries {
            let path = entry.path();
            if NODE_FILES.iter().any(|own| path == Path::new(own)) {
                continue;
            }
            // These links select one of several programs; the target is added only if it is needed.
            if path.starts_with("/etc/alternatives") && path.is_symlink() {
                self.tree.add_host_link(&path);
            } else if is_for_everybody(&path) {
                self.tree.add_host_file(&path);
                if path.is_dir() && !path.is_symlink() {
                    self.add_settings(&path);
                }
            }
        }
    }
}

/// Returns whether everybody may read a file. For a link, this means its target.
fn is_for_everybody(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o004 != 0)
}

/// Returns the path of the program that `word` names: a program in `PATH`, or a path relative to `directory`.
fn find_program(word: &str, directory: &Path) -> Option<PathBuf> {
    if word.is_empty() {
        return None;
    }
    if word.contains('/') {
        let path = directory.join(word);
        return is_program(&path).then_some(path);
    }
    let own = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&own).chain(env::split_paths(SYSTEM_PATH)).collect::<Vec<_>>();
    places
        .into_iter()
        .filter(|place| place.is_absolute())
        .map(|place| place.join(word))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.is_absolute()
        && fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

fn missing_program_error(program: &str) -> KernelError {
    MachineFault::Program(format!(
        "`command` names {program:?}, which was not found on this machine; install it, give its path, or use another `root`"
    ))
    .into()
}

fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(256).read_to_end(&mut head));
    read.map(|_| head).unwrap_or_default()
}

fn is_elf(path: &Path) -> bool {
    head(path).starts_with(b"\x7fELF")
}

/// Returns whether a program is for the architecture of the guest. System V ABI, "ELF Header": `e_machine`.
fn is_for_this_machine(path: &Path) -> bool {
    const X86_64: [u8; 2] = [62, 0];
    head(path).get(18..20) == Some(&X86_64)
}

/// Returns the words after `#!` in the first line of a script, such as `/usr/bin/env` and `python3`. execve(2).
fn interpreter(path: &Path) -> Option<Vec<String>> {
    let head = head(path);
    let line = head.strip_prefix(b"#!")?.split(|octet| *octet == b'\n').next()?;
    Some(String::from_utf8_lossy(line).split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_names_its_interpreter() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        fs::write(&script, "#!/usr/bin/env python3\nprint()\n").unwrap();
        assert_eq!(interpreter(&script).unwrap(), ["/usr/bin/env", "python3"]);
        fs::write(&script, "print()\n").unwrap();
        assert_eq!(interpreter(&script), None);
    }

    #[test]
    fn a_program_is_found_by_its_name_and_by_its_path_alone() {
        let found = |name| super::find_program(name, Path::new("/bin"));
        assert!(found("sh").is_some() && found("/bin/sh").is_some() && found("./sh").is_some());
        let none = ["no-such-program", "etc", "/etc/passwd", "", "./no-such-program"];
        assert!(none.into_iter().all(|name| found(name).is_none()));
    }

    /// Such programs are those of pyenv, or those in ~/.local/bin.
    #[test]
    fn programs_in_a_users_path_are_linked_into_a_nodes_path() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("mytool");
        fs::write(&place, "#!/bin/sh\necho hi\n").unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        let mut tree = Tree::default();
        let mut needs = DependencyCollector {
            packages: Packages::read(),
            names: BTreeSet::new(),
            visited: BTreeSet::new(),
            tree: &mut tree,
        };
        needs.add_named_program("mytool", &place).unwrap();
        needs.add_named_program("sh", Path::new("/bin/sh")).unwrap();
        let linked = |name: &str| {
            let path = Path::new(SHARED_DIRECTORY).join("usr/local/bin").join(name);
            tree.entries().find(|(own, _)| *own == path).map(|(_, entry)| format!("{entry:?}"))
        };
        assert_eq!(linked("mytool"), Some(format!("Link({place:?})")));
        assert_eq!(linked("sh"), None);
        assert!(tree.entries().any(|(own, _)| own.ends_with("mytool") && !own.starts_with("root/usr")));
    }

    #[test]
    fn a_missing_program_is_named() {
        let program: Program = toml::from_str("node = 'a'\ncommand = ['no-such-program']").unwrap();
        let problem =
            add_dependencies(&mut Tree::default(), std::slice::from_ref(&program)).unwrap_err().to_string();
        assert!(problem.contains("no-such-program") && problem.contains("install it"), "{problem}");
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("program");
        let own = fs::read(env::current_exe().unwrap()).unwrap();
        fs::write(&place, [&own[..18], &[183, 0], &own[20..64]].concat()).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        let program = Program { command: Command::Words(vec![place.display().to_string()]), ..program };
        let problem = add_dependencies(&mut Tree::default(), &[program]).unwrap_err().to_string();
        assert!(problem.contains("another architecture"), "{problem}");
    }
}
