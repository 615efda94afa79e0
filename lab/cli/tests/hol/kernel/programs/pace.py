"""How many ns 80 million instructions take, and a sleep of 0.1 s."""

import ctypes
import mmap
import time

# mov $40000000, %ecx; dec %ecx; jnz to it; ret
LOOP = b"\xb9" + (40_000_000).to_bytes(4, "little") + b"\xff\xc9\x75\xfc\xc3"

code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(LOOP)
compute = ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
for name, does in [("computed", compute), ("slept", lambda: time.sleep(0.1))]:
    begin = time.monotonic_ns()
    does()
    print(name, time.monotonic_ns() - begin)
