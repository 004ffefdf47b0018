"""Keeps a process from ending: hold_end.py PID

It prints "held" when the process was killed and is about to end, and lets it go when its own standard
input ends. Until then everything that waits for the end of the process waits, as behind one that the
kernel takes long to clean up."""
import ctypes
import os
import sys

PTRACE_CONT, PTRACE_DETACH, PTRACE_SEIZE = 7, 17, 0x4206
PTRACE_O_TRACEEXIT = 0x40
EVENT_EXIT = 6
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, data=0):
    if libc.ptrace(request, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


pid = int(sys.argv[1])
ptrace(PTRACE_SEIZE, pid, PTRACE_O_TRACEEXIT)
print("seized", flush=True)
while True:
    _, status = os.waitpid(pid, WALL)
    if not os.WIFSTOPPED(status):
        sys.exit("it ended by itself")
    if status >> 16 == EVENT_EXIT:
        break
    ptrace(PTRACE_CONT, pid, os.WSTOPSIG(status) if status >> 16 == 0 else 0)
print("held", flush=True)
sys.stdin.read()
ptrace(PTRACE_DETACH, pid)
