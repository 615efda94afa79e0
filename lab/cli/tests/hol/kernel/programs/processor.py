# What the processor says by itself: how long a second is by its clock, and whether it has random numbers (Intel SDM volume 2, CPUID).
import ctypes
import mmap
import time


def function(code):
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(bytes.fromhex(code))
    made = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    made.memory = memory  # it lives as long as the function
    return made


def second(clock):
    before = clock()
    time.sleep(1)
    return clock() - before


TO_RAX = "48c1e220 4809d0 c3"  # shl rdx, 32; or rax, rdx; ret
print("rdtsc", second(function("0f31" + TO_RAX)))
print("rdtscp", second(function("0f01f9" + TO_RAX)))
# push rbx; mov eax, 1; cpuid; mov eax, ecx; shr eax, 30; and eax, 1; pop rbx; ret
print("rdrand", function("53 b801000000 0fa2 89c8 c1e81e 83e001 5b c3")())
