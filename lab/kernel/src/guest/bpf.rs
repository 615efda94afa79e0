//! BPF programs in the kernel, and their maps. bpf(2), RFC 9669.

use std::fs::File;
use std::mem::size_of_val;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::libc::{self, SYS_bpf};

use super::GuestError;

/// Numbers of commands, types and attachments in linux/bpf.h.
const MAP_CREATE: i64 = 0;
const MAP_UPDATE_ELEM: i64 = 2;
const PROG_LOAD: i64 = 5;
const PROG_ATTACH: i64 = 8;
const RAW_TRACEPOINT_OPEN: i64 = 17;
const HASH_MAP: u32 = 1;
const ARRAY_MAP: u32 = 2;

/// A BPF map of 64-bit numbers. A program's descriptor keeps the map alive.
#[derive(Debug)]
pub(super) struct Map(OwnedFd);

/// A program that the kernel has verified and loaded.
#[derive(Debug)]
pub(super) struct Program(OwnedFd);

/// The purpose of a BPF program. linux/bpf.h
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The program filters packets that pass an interface.
    Packets,
    /// The program replaces the return value of the kernel function with this BTF ID.
    ReturnValue(u32),
    /// The program intercepts getsockopt().
    GetOption,
    /// The program intercepts setsockopt().
    SetOption,
}

impl Purpose {
    /// Returns the BPF type of the program, and the type of its attachment.
    const fn types(self) -> [u32; 2] {
        match self {
            Self::Packets => [3, 0],
            Self::ReturnValue(_) => [26, 26],
            Self::GetOption => [25, 21],
            Self::SetOption => [25, 22],
        }
    }
}

#[repr(C)]
struct Create {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
struct Update {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    length: u32,
    instructions: u64,
    licence: u64,
    log: [u64; 2],
    version_and_flags: [u32; 2],
    name: [u64; 2],
    interface: u32,
    attached_to: u32,
    debugging: [u64; 4],
    lines: u32,
    function: u32,
}

#[repr(C)]
struct Open {
    name: u64,
    program: u32,
    padding: u32,
}

#[repr(C)]
struct Attach {
    target: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

impl Map {
    /// Creates a map that contains one number.
    pub(super) fn new_number(value: u64) -> Result<Self, GuestError> {
        let create = Create { kind: ARRAY_MAP, key_size: 4, value_size: 8, max_entries: 1 };
        let map = Self(open(MAP_CREATE, &create, "create a counter for a filter")?);
        map.update(&0_u32, value)?;
        Ok(map)
    }

    /// Creates a set of numbers.
    pub(super) fn new_set(members: &[u64]) -> Result<Self, GuestError> {
        let max_entries = u32::try_from(members.len())?.max(1);
        let create = Create { kind: HASH_MAP, key_size: 8, value_size: 8, max_entries };
        let map = Self(open(MAP_CREATE, &create, "create a set of numbers for a filter")?);
        members.iter().try_for_each(|member| map.update(member, 1))?;
        Ok(map)
    }

    fn update<K>(&self, key: &K, value: u64) -> Result<(), GuestError> {
        let (key, value) = (address(key), address(&value));
        let map = self.descriptor().cast_unsigned();
        let update = Update { map, padding: 0, key, value, flags: 0 };
        call(MAP_UPDATE_ELEM, &update).map(drop).map_err(|e| format!("cannot set up a filter: {e}").into())
    }

    /// Returns the descriptor of the map.
    pub(super) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Program {
    /// Makes the kernel verify and load the instructions.
    pub(super) fn load(purpose: Purpose, instructions: &[u64]) -> Result<Self, GuestError> {
        let length = u32::try_from(instructions.len())?;
        let licence = address(b"Dual MIT/GPL\0");
        let [kind, attached_to] = purpose.types();
        let function = if let Purpose::ReturnValue(function) = purpose { function } else { 0 };
        let instructions = address(&instructions[0]);
        let load = Load { kind, length, instructions, licence, attached_to, function, ..Load::default() };
        Ok(Self(open(PROG_LOAD, &load, "load a filter (the kernel needs CONFIG_BPF_SYSCALL)")?))
    }

    /// Attaches the program to its kernel function, until the returned descriptor is closed.
    pub(super) fn attach_to_function(&self) -> Result<OwnedFd, GuestError> {
        let request = Open { name: 0, program: self.descriptor().cast_unsigned(), padding: 0 };
        open(RAW_TRACEPOINT_OPEN, &request, "attach a program to a kernel function")
    }

    /// Attaches the program to the system calls of the processes of a control group.
    pub(super) fn attach_to_group(&self, group: &File, purpose: Purpose) -> Result<(), GuestError> {
        let [target, program] = [group.as_raw_fd(), self.descriptor()].map(RawFd::cast_unsigned);
        let [_, kind] = purpose.types();
        let attach = Attach { target, program, kind, flags: 0 };
        call(PROG_ATTACH, &attach)
            .map(drop)
            .map_err(|e| format!("cannot intercept socket options: {e}").into())
    }

    /// Returns the descriptor of the program.
    pub(super) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

fn address<T>(of: &T) -> u64 {
    (&raw const *of) as u64
}

fn open<T>(command: i64, attributes: &T, doing: &str) -> Result<OwnedFd, GuestError> {
    let descriptor = call(command, attributes).map_err(|e| format!("cannot {doing}: {e}"))?;
    #[expect(unsafe_code, reason = "the kernel gives a number")]
    // SAFETY: the kernel has just opened it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn call<T>(command: i64, attributes: &T) -> nix::Result<RawFd> {
    #[expect(unsafe_code, reason = "bpf(2) has no safe wrapper")]
    // SAFETY: the attributes are those of the command, their length is correct, and what they point at outlives the call.
    let result = unsafe { libc::syscall(SYS_bpf, command, &raw const *attributes, size_of_val(attributes)) };
    nix::Error::result(result).map(|descriptor| descriptor as RawFd)
}
