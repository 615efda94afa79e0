//! Small programs inside the kernel, and the numbers that they keep. bpf(2), RFC 9669.

use std::mem::size_of_val;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::libc::{self, SYS_bpf};

use super::Trouble;

/// linux/bpf.h
const MAP_CREATE: i64 = 0;
const MAP_UPDATE_ELEM: i64 = 2;
const PROG_LOAD: i64 = 5;
const HASH: u32 = 1;
const ARRAY: u32 = 2;
const SCHED_CLS: u32 = 3;

/// Numbers of 64 bits by key; a program's descriptor keeps it alive.
#[derive(Debug)]
pub(super) struct Map(OwnedFd);

/// A program for packets.
#[derive(Debug)]
pub(super) struct Program(OwnedFd);

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
struct Load {
    kind: u32,
    length: u32,
    instructions: u64,
    licence: u64,
}

impl Map {
    /// One number.
    pub(super) fn number(value: u64) -> Result<Self, Trouble> {
        let create = Create { kind: ARRAY, key_size: 4, value_size: 8, max_entries: 1 };
        let map = Self(open(MAP_CREATE, &create, "make a number for a filter")?);
        map.update(&0_u32, value)?;
        Ok(map)
    }

    /// A set of numbers.
    pub(super) fn set(members: &[u64]) -> Result<Self, Trouble> {
        let max_entries = u32::try_from(members.len())?.max(1);
        let create = Create { kind: HASH, key_size: 8, value_size: 8, max_entries };
        let map = Self(open(MAP_CREATE, &create, "make a set for a filter")?);
        members.iter().try_for_each(|member| map.update(member, 1))?;
        Ok(map)
    }

    fn update<K>(&self, key: &K, value: u64) -> Result<(), Trouble> {
        let (key, value) = (address(key), address(&value));
        let map = self.descriptor().cast_unsigned();
        let update = Update { map, padding: 0, key, value, flags: 0 };
        call(MAP_UPDATE_ELEM, &update).map(drop).map_err(|e| format!("cannot set up a filter: {e}").into())
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Program {
    /// Has the kernel check and take the instructions.
    pub(super) fn load(instructions: &[u64]) -> Result<Self, Trouble> {
        let length = u32::try_from(instructions.len())?;
        let licence = address(b"Dual MIT/GPL\0");
        let load = Load { kind: SCHED_CLS, length, instructions: address(&instructions[0]), licence };
        Ok(Self(open(PROG_LOAD, &load, "load a filter (the kernel needs CONFIG_BPF_SYSCALL)")?))
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

fn address<T>(of: &T) -> u64 {
    (&raw const *of) as u64
}

fn open<T>(command: i64, attributes: &T, doing: &str) -> Result<OwnedFd, Trouble> {
    let descriptor = call(command, attributes).map_err(|e| format!("cannot {doing}: {e}"))?;
    #[expect(unsafe_code, reason = "the kernel gives a number")]
    // SAFETY: the kernel has just opened it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn call<T>(command: i64, attributes: &T) -> nix::Result<RawFd> {
    #[expect(unsafe_code, reason = "bpf(2) has no safe wrapper")]
    // SAFETY: the attributes are what the command wants, their length is theirs, and what they point at outlives the call.
    let result = unsafe { libc::syscall(SYS_bpf, command, &raw const *attributes, size_of_val(attributes)) };
    nix::Error::result(result).map(|descriptor| descriptor as RawFd)
}
