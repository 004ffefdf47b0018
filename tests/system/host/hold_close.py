"""Holds a thread in its next close(2), or where it is: hold_close.py PID THREAD_NAME [now]

It prints "ready" when it watches the thread, "held" when the thread is about to close a descriptor, and
lets it go when its own standard input ends. So everything that waits for the close waits, as behind
one that writes a whole filesystem out."""
import ctypes
import os
import sys

PTRACE_PEEKUSER, PTRACE_DETACH, PTRACE_SYSCALL = 3, 17, 24
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
PTRACE_O_TRACESYSGOOD = 1
ORIG_RAX, SYS_CLOSE = 15 * 8, 3
WALL = 0x40000000
SYSCALL_STOP = 5 | 0x80  # SIGTRAP

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, tid, address=0, data=0):
    ctypes.set_errno(0)
    result = libc.ptrace(request, tid, address, data)
    if result < 0 and ctypes.get_errno() != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    return result


def find_thread(pid, name):
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as file:
            if file.read().strip() == name:
                return int(tid)
    sys.exit(f"no thread {name}")


if os.uname().machine != "x86_64":
    sys.exit("skip")
tid = find_thread(sys.argv[1], sys.argv[2])
ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD)
ptrace(PTRACE_INTERRUPT, tid)
os.waitpid(tid, WALL)
print("ready", flush=True)
while len(sys.argv) < 4:
    ptrace(PTRACE_SYSCALL, tid)
    _, status = os.waitpid(tid, WALL)
    if not os.WIFSTOPPED(status):
        sys.exit("the thread has ended")
    if os.WSTOPSIG(status) == SYSCALL_STOP and ptrace(PTRACE_PEEKUSER, tid, ORIG_RAX) == SYS_CLOSE:
        break
print("held", flush=True)
sys.stdin.read()
ptrace(PTRACE_DETACH, tid)
