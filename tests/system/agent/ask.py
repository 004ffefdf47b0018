"""Runs `holt agent run shell` in a terminal, answers its question, and prints what the screen showed.
usage: ask.py REPO y|n [hostile]"""

import os
import pty
import sys

repo, answer = sys.argv[1:3]
script = "echo asked >text"
if len(sys.argv) > 3:
    script = r"printf 'one\ntwo\033[2Jthree\n' >text"
pid, screen = pty.fork()
if pid == 0:
    os.execvp("holt", ["holt", "agent", "run", "shell", "--repo", repo, "--", "sh", "-c", script])
shown = b""
is_answered = False
while True:
    try:
        data = os.read(screen, 4096)
    except OSError:
        break
    if not data:
        break
    shown += data
    if b"[y/n] " in shown and not is_answered:
        is_answered = True
        os.write(screen, answer.encode() + b"\n")
sys.stdout.buffer.write(shown)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert is_answered and status == 0, (shown, status)
