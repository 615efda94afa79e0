//! What a machine has: the same for all, and a root for those that run the user's programs.

use crate::root::Root;

/// Memory of a guest in MiB.
const MEMORY: u64 = 512;
/// The same of one that runs programs.
const WITH_PROGRAMS: u64 = 1024;
/// The more of both.
pub(super) const MOST: u64 = WITH_PROGRAMS;

/// Two machines of one shape may have the same snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shape {
    /// Octets of the root, 0 if there is none.
    root: u64,
}

impl Shape {
    pub(super) fn of(root: Option<&Root>) -> Self {
        Self { root: root.map_or(0, Root::size) }
    }

    pub(super) const fn has_root(self) -> bool {
        self.root > 0
    }

    /// What every machine of this shape has, so that a snapshot of one fits the next.
    ///
    /// No random number, no date and no second processor comes from
    /// the host. Machine types from 7.2 on hand the guest a random seed, so it is an older one. A root is memory that does not
    /// forget (nvdimm): it answers at once, and no thread of the host takes part.
    pub(super) fn hardware(self) -> Vec<String> {
        let (machine, memory) = if self.has_root() {
            ("pc-i440fx-7.1,nvdimm=on", format!("{WITH_PROGRAMS},slots=1,maxmem=64G"))
        } else {
            ("pc-i440fx-7.1", MEMORY.to_string())
        };
        [
            ["-accel", "tcg,tb-size=256"],
            ["-rtc", "base=2020-01-01,clock=vm"],
            ["-machine", machine],
            ["-cpu", "qemu64,-rdrand"],
            ["-m", &memory],
            ["-display", "none"],
            ["-nic", "none"],
            ["-device", "pvpanic"],
            ["-action", "panic=pause,reboot=shutdown"],
            ["-qmp", "stdio"],
        ]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .chain(["-nodefaults".to_owned(), "-no-user-config".to_owned()])
        .collect()
    }

    /// All that decides what a snapshot of this shape is.
    pub(super) fn identity(self) -> String {
        format!("{}\nroot of {}", self.hardware().join("\n"), self.root)
    }
}

/// The device that is a root.
pub(super) fn device(root: &Root) -> [String; 4] {
    let (path, size) = (root.image().display().to_string().replace(',', ",,"), root.size());
    let backend = format!("memory-backend-file,id=root,mem-path={path},size={size},share=on,readonly=on");
    ["-object", &backend, "-device", "nvdimm,memdev=root,unarmed=on"].map(str::to_owned)
}
