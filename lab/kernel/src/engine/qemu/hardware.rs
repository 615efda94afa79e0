//! The hardware of a machine: a common part, a root file system for machines that run the user's programs, and shared
//! memory for interactive machines.

use std::path::Path;

use super::gates;
use crate::engine::contract::Task;
use crate::root::RootImage;
use crate::{mailbox, shared_memory};

/// The memory of a guest, in MiB.
const MEMORY_MIB: u64 = 512;
/// The memory of a guest that runs programs, in MiB.
const MEMORY_WITH_PROGRAMS_MIB: u64 = 1024;
/// The larger of both memory sizes, in MiB.
pub(super) const MAX_MEMORY: u64 = MEMORY_WITH_PROGRAMS_MIB;

/// QEMU's identifier of the shared memory.
const SHARED_MEMORY: &str = "exchange";

/// The properties of a machine that its snapshot depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MachineHardware {
    /// The size of the root file system in octets; 0 if there is none.
    root: u64,
    /// Whether the guest is interactive. An interactive guest has shared memory with the host.
    is_interactive: bool,
}

impl MachineHardware {
    /// Returns the hardware that a task needs.
    pub(super) fn of(task: &Task<'_>) -> Self {
        Self { root: task.root.map_or(0, RootImage::size), is_interactive: task.is_interactive }
    }

    /// Returns whether the machine has a root file system for the user's programs.
    pub(super) const fn has_root(self) -> bool {
        self.root > 0
    }

    /// Returns whether the guest is interactive.
    pub(super) const fn is_interactive(self) -> bool {
        self.is_interactive
    }

    /// Returns the number of octets at the end of the guest's memory, beginning with the mailbox, that the guest's
    /// kernel does not use.
    pub(super) const fn reserved_octets(self) -> u64 {
        mailbox::SIZE + if self.is_interactive { shared_memory::SIZE } else { 0 }
    }

    /// Returns the memory of the machine in MiB.
    const fn memory(self) -> u64 {
        if self.has_root() { MEMORY_WITH_PROGRAMS_MIB } else { MEMORY_MIB }
    }

    /// Returns QEMU's arguments for the hardware that every machine of this kind has, so that all machines can be
    /// restored from the same snapshot.
    ///
    /// The host provides no random number, no date and no second processor. The machine type is older than 7.2,
    /// because later types pass a random seed to the guest. A root file system is persistent memory (nvdimm): it
    /// answers at once, and no thread of the host takes part.
    pub(super) fn hardware_arguments(self) -> Vec<String> {
        let (machine, more) = match self.has_root() {
            true => ("pc-i440fx-7.1,nvdimm=on", ",slots=1,maxmem=64G"),
            false => ("pc-i440fx-7.1", ""),
        };
        let memory = format!("{}{more}", self.memory());
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
        .chain(self.is_interactive.then(|| self.memory_parts()).into_iter().flatten())
        .collect()
    }

    /// Returns the options that divide the guest's memory into parts, one of which is the shared memory. Memory of a
    /// device would not be mapped yet when a snapshot is restored, and QEMU would refuse the snapshot. QEMU accepts
    /// several parts only as the nodes of a NUMA machine.
    fn memory_parts(self) -> Vec<String> {
        let (below, all) = (shared_memory::ADDRESS, self.memory() << 20);
        let above = all - below - shared_memory::SIZE;
        let part = |name: &str, size: u64| format!("memory-backend-ram,id={name},size={size}");
        let node = |name: &str| format!("node,memdev={name}");
        let (below, above) = (part("below", below), part("above", above));
        let nodes = ["below", SHARED_MEMORY, "above"].map(node);
        let nodes = nodes.into_iter().flat_map(|node| ["-numa".to_owned(), node]);
        let gates = shared_memory::GATE_PORTS.into_iter().enumerate().flat_map(|(number, port)| {
            ["-device".to_owned(), format!("isa-debugcon,iobase={port:#x},chardev=gate{number}")]
        });
        let objects = ["-object", &below, "-object", &above].map(str::to_owned);
        objects.into_iter().chain(nodes).chain(gates).collect()
    }

    /// Returns, as text, everything that a snapshot with this hardware depends on.
    pub(super) fn identity(self) -> String {
        format!("{}\nroot of {}", self.hardware_arguments().join("\n"), self.root)
    }
}

/// Returns QEMU's arguments for the device with the root file system.
pub(super) fn root_device_arguments(root: &RootImage) -> [String; 4] {
    let (path, size) = (escaped_path(root.image()), root.size());
    let backend = format!("memory-backend-file,id=root,mem-path={path},size={size},share=on,readonly=on");
    ["-object", &backend, "-device", "nvdimm,memdev=root,unarmed=on"].map(str::to_owned)
}

/// Returns QEMU's arguments for the shared memory and the gates of an interactive machine, whose files are in
/// `directory`.
pub(super) fn interactive_arguments(directory: &Path) -> Vec<String> {
    let (path, size) = (escaped_path(&gates::memory_path(directory)), shared_memory::SIZE);
    let memory = format!("memory-backend-file,id={SHARED_MEMORY},mem-path={path},size={size},share=on");
    let gates = gates::gate_paths(directory).into_iter().enumerate().flat_map(|(number, gate)| {
        ["-chardev".to_owned(), format!("file,id=gate{number},path={}", escaped_path(&gate))]
    });
    ["-object".to_owned(), memory].into_iter().chain(gates).collect()
}

/// Escapes a path for use in an argument of QEMU.
fn escaped_path(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}
