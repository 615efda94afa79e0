//! Replaces the transport of programs: the kernel gives their stream sockets another protocol.
//!
//! Linux calls `update_socket_protocol` for each new socket, so that a BPF program can replace TCP by MPTCP. Here a BPF
//! program returns the wanted protocol. TCP options that the new protocol lacks are translated or ignored.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;

use hol_stack::ProtocolKind;

use super::btf;
use super::control_group::CONTROL_GROUPS;
use crate::guest::GuestError;
use crate::guest::bpf::{Program, Purpose};
use crate::guest::bpf_assembler::*;

const REPLACED_FUNCTION: &str = "update_socket_protocol";
/// The file in which Linux lists its types and functions.
const BTF_FILE: &str = "/sys/kernel/btf/vmlinux";

/// The sysctl with which a kernel with `uml/socket-transport.patch` selects the protocol of new sockets.
const SETTING_FILE: &str = "/proc/sys/kernel/socket_transport";

/// Address family of IPv4. socket(2), linux/in.h
const AF_INET: i32 = 2;
const AF_INET6: i32 = 10;
const SOCK_STREAM: i32 = 1;
const TYPE_MASK: i32 = 0xf;
const TCP: i32 = 6;
const SCTP: i32 = 132;
const MPTCP: i32 = 262;
/// The option that disables Nagle's algorithm. tcp(7), sctp(7)
const TCP_NODELAY: i32 = 1;
const SCTP_NODELAY: i32 = 3;

/// Number of the BPF helper function bpf_get_current_pid_tgid(). linux/bpf.h
const CURRENT_PROCESS: i32 = 14;
/// Offsets of fields in `struct bpf_sockopt` of linux/bpf.h (socket, level, name, length, return value), and of the
/// protocol in `struct bpf_sock`.
const SOCKET_OFFSET: i16 = 0;
const LEVEL_OFFSET: i16 = 24;
const NAME_OFFSET: i16 = 28;
const LENGTH_OFFSET: i16 = 32;
const ANSWER_OFFSET: i16 = 36;
const PROTOCOL_OFFSET: i16 = 12;
/// The largest part of an option's value that a BPF program can see, in octets. The program must let longer values
/// pass.
const MAX_VALUE: i32 = 4096;
/// The return value with which a BPF program for socket options lets the system call continue.
const CONTINUE_CALL: i32 = 1;

/// Keeps the BPF program attached that selects the protocol of new sockets, until this value is dropped. `None` if
/// no program is needed.
#[derive(Debug)]
pub(super) struct ProtocolSwap(
    #[expect(dead_code, reason = "closing the descriptor would detach the BPF program")] Option<OwnedFd>,
);

impl ProtocolSwap {
    /// Makes stream sockets of the user's programs use this transport from now on.
    pub(super) fn activate(kind: ProtocolKind) -> Result<Self, GuestError> {
        let wanted = match kind {
            ProtocolKind::Tcp => TCP,
            ProtocolKind::Mptcp => MPTCP,
            ProtocolKind::Sctp => SCTP,
            _ => return Err("programs can use TCP, MPTCP or SCTP; choose one of these".into()),
        };
        // A kernel that `hol kernel build` has built replaces the transport itself.
        if Path::new(SETTING_FILE).exists() {
            fs::write(SETTING_FILE, wanted.to_string())?;
            return Ok(Self(None));
        }
        let types = fs::read(BTF_FILE).map_err(|e| format!("{BTF_FILE}: {e}"))?;
        let Some(function) = btf::function_id(&types, REPLACED_FUNCTION) else {
            // Without the function, only a program that requests Multipath TCP gets it.
            return match kind {
                ProtocolKind::Tcp => Ok(Self(None)),
                _ => Err("this kernel cannot replace the transport of programs; use Linux 6.6 or later, such as kernel:6.12".into()),
            };
        };
        let answer = Program::load(Purpose::ReturnValue(function), &protocol(wanted).finish()?)?
            .attach_to_function()?;
        if wanted == SCTP {
            let cells = File::open(CONTROL_GROUPS)?;
            for (purpose, code) in [(Purpose::SetOption, set_option()), (Purpose::GetOption, get_option())] {
                Program::load(purpose, &code.finish()?)?.attach_to_group(&cells, purpose)?;
            }
        }
        Ok(Self(Some(answer)))
    }
}

/// Returns a program that selects the protocol of a new socket from its family (argument 0), type (argument 1) and
/// requested protocol (argument 2). If it returns 0, the protocol does not change.
fn protocol(wanted: i32) -> BpfAssembler {
    let code = BpfAssembler::new(0).op(CALL, 0, 0, 0, CURRENT_PROCESS).op(SHIFT_RIGHT, 0, 0, 0, 32);
    // The sockets of the guest itself keep their protocol.
    let code = code.op(IF_UNEQUAL, 0, 0, 2, 1).return_value(0);
    let code = code.op(LOAD, 1, 6, 0, 0).op(AND, 1, 0, 0, 0xff).op(IF_EQUAL, 1, 0, 1, AF_INET);
    let code = code.pass_unless(1, AF_INET6);
    let code = code.op(LOAD, 1, 6, 8, 0).op(AND, 1, 0, 0, TYPE_MASK).pass_unless(1, SOCK_STREAM);
    let code = code.op(LOAD, 1, 6, 16, 0).op(AND, 1, 0, 0, 0xffff);
    let code = code.op(IF_EQUAL, 1, 0, 2, 0).op(IF_EQUAL, 1, 0, 1, TCP).pass_unless(1, MPTCP);
    code.return_value(wanted)
}

/// Returns a program that translates `TCP_NODELAY` to `SCTP_NODELAY` and ignores other options of TCP.
fn set_option() -> BpfAssembler {
    let code = only_tcp_options_of_sctp(BpfAssembler::new(CONTINUE_CALL));
    let code = code.op(LOAD_WORD, 1, 6, NAME_OFFSET, 0).op(IF_EQUAL, 1, 0, 4, TCP_NODELAY);
    // A length of -1 makes the kernel ignore the option.
    let code = code.op(MOVE, 1, 0, 0, -1).op(STORE_WORD, 6, 1, LENGTH_OFFSET, 0).return_value(CONTINUE_CALL);
    let code = code.op(MOVE, 1, 0, 0, SCTP).op(STORE_WORD, 6, 1, LEVEL_OFFSET, 0);
    code.op(MOVE, 1, 0, 0, SCTP_NODELAY).op(STORE_WORD, 6, 1, NAME_OFFSET, 0).pass()
}

/// Returns a program that answers getsockopt() for TCP options with success.
fn get_option() -> BpfAssembler {
    only_tcp_options_of_sctp(BpfAssembler::new(CONTINUE_CALL))
        .op(MOVE, 1, 0, 0, 0)
        .op(STORE_WORD, 6, 1, ANSWER_OFFSET, 0)
        .pass()
}

/// Appends a check to a program, which then continues only for TCP options of an SCTP socket. All other calls pass
/// unchanged.
fn only_tcp_options_of_sctp(code: BpfAssembler) -> BpfAssembler {
    let code = code.op(LOAD_WORD, 1, 6, LENGTH_OFFSET, 0).op(IF_GREATER, 1, 0, 2, MAX_VALUE);
    let code = code.op(LOAD, 2, 6, SOCKET_OFFSET, 0).op(JUMP, 0, 0, 3, 0);
    let code = code.op(MOVE, 1, 0, 0, 0).op(STORE_WORD, 6, 1, LENGTH_OFFSET, 0).pass();
    let code = code.op(LOAD_WORD, 2, 2, PROTOCOL_OFFSET, 0).pass_unless(2, SCTP);
    code.op(LOAD_WORD, 1, 6, LEVEL_OFFSET, 0).pass_unless(1, TCP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bpf_program_has_a_reachable_end_and_fits() {
        for code in [protocol(SCTP), protocol(MPTCP), set_option(), get_option()] {
            let instructions = code.finish().unwrap();
            assert!(instructions.len() < 64);
            assert_eq!(instructions.last().unwrap().to_ne_bytes()[0], EXIT);
        }
    }
}
