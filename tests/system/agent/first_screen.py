"""Runs a command on a terminal until it shows a text, or a question; prints what it has shown, without blanks.

usage: first_screen.py TEXT COMMAND...
"""
import os
import pty
import re
import signal
import struct
import sys
import termios
from fcntl import ioctl

SEQUENCE = re.compile(rb"\x1b(\[[0-9;:?<>=!]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|[=>78DEHM])")


def text_of(data):
    """Returns the text without blanks: programs write them as moves of the cursor."""
    return "".join(SEQUENCE.sub(b"", data).decode(errors="replace").split())


def main():
    wanted, command = sys.argv[1], sys.argv[2:]
    pid, terminal = pty.fork()
    if pid == 0:
        ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 110, 0, 0))
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)
    data = b""
    try:
        while wanted not in text_of(data) and "toconfirm" not in text_of(data):
            data += os.read(terminal, 65536)
    except OSError:  # it has ended
        pass
    os.kill(pid, signal.SIGHUP)
    os.close(terminal)
    os.waitpid(pid, 0)
    print(text_of(data))
    sys.exit(0 if wanted in text_of(data) else 1)


main()
