"""Runs a command with a terminal of ROWS x COLUMNS on stdout and stderr, and prints what it has written there.

usage: on_terminal.py [--until N] COLUMNS COMMAND...
--until ends the command when it has drawn a table over itself N times."""
import fcntl, os, pty, signal, struct, sys, termios

redraws = 0
if sys.argv[1] == "--until":
    redraws = int(sys.argv[2])
    del sys.argv[1:3]

pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
    os.execvp(sys.argv[2], sys.argv[2:])
written = b""
try:
    while piece := os.read(terminal, 65536):
        written += piece
        if redraws and written.count(b"\033[J") >= redraws:
            os.kill(pid, signal.SIGTERM)
except OSError:
    pass  # the other side is closed
os.waitpid(pid, 0)
sys.stdout.buffer.write(written)
