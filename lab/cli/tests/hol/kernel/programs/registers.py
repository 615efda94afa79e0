"""Whether what a program has in its extended registers is there after a system call, a signal, a fork, and beside another thread."""

import ctypes
import mmap
import os
import signal
import threading

# movdqu (%rdi),%xmm7; push %rsi; mov %rdx,%rax; mov %rcx,%rdi; mov %r8,%rsi; syscall; pop %rsi; movdqu %xmm7,(%rsi); ret
CALL = bytes.fromhex("f30f6f3f 56 4889d0 4889cf 4c89c6 0f05 5e f30f7f3e c3")
# pxor %xmm7,%xmm7; ret
CLEAR = bytes.fromhex("660fefff c3")

SCHED_YIELD, GETPID, FORK, KILL = 24, 39, 57, 62

code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(CALL.ljust(64) + CLEAR)
start = ctypes.addressof(ctypes.c_char.from_buffer(code))
call = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_void_p] * 5)(start)


def kept(value, number, *arguments):
    """The register has after the system call what it had before; and what that returns."""
    before, after = ctypes.create_string_buffer(value, 16), ctypes.create_string_buffer(16)
    got = call(ctypes.addressof(before), ctypes.addressof(after), number, *arguments, *[0] * (2 - len(arguments)))
    return after.raw == value, got


def report(what, is_so):
    print(what, "kept" if is_so else "lost", flush=True)


mine = b"sixteen octets A"
report("call", kept(mine, GETPID)[0])

libc = ctypes.CDLL(None)
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
libc.signal(signal.SIGUSR1, start + 64)
report("signal", kept(mine, KILL, os.getpid(), signal.SIGUSR1)[0])

is_kept, child = kept(mine, FORK)
if child == 0:
    os._exit(0 if is_kept else 1)
report("fork", is_kept)
report("child", os.waitpid(child, 0)[1] == 0)


def turns(value, results):
    results.append(all(kept(value, SCHED_YIELD)[0] for _ in range(200)))


results = []
others = [threading.Thread(target=turns, args=(bytes([n]) * 16, results)) for n in range(3)]
for other in others:
    other.start()
turns(mine, results)
for other in others:
    other.join()
report("threads", results == [True] * 4)
report("alone", kept(mine, GETPID)[0])
