"""Runs a command on a terminal and types a line when it asks for one.

usage: typed.py LINE COMMAND...
Prints what the terminal shows."""
import os, pty, sys

pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
shown, is_typed = b"", False
while True:
    try:
        part = os.read(fd, 4096)
    except OSError:  # the terminal is gone
        part = b""
    if not part:
        break
    shown += part
    if shown.endswith(b": ") and not is_typed:
        is_typed = True
        os.write(fd, sys.argv[1].encode() + b"\n")
sys.stdout.write(shown.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
