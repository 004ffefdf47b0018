"""A Jupyter kernel for bash: one shell that stays, so variables, functions and the directory do.

The shell is interactive, so that SIGINT ends the command and not the shell, but has no terminal. It
reads one line for each cell from a pipe; that line evaluates a file with the code. Before each
prompt it writes the exit status to another pipe, which the code does not inherit.
"""

import codecs
import os
import select
import signal
import subprocess
import tempfile

from ipykernel.kernelbase import Kernel

STATUS_FD = 62
LINE = b'eval "$(<%%s)" </dev/null %d>&-\n' % STATUS_FD
PREPARE = b"set +H; PS1= PS2= PROMPT_COMMAND='printf \"%%s\\n\" $? >&%d'\n" % STATUS_FD
READ_BYTES = 65536
READS_AFTER_END = 64  # a process in the background may write for ever


class Shell:
    """The bash process and its pipes."""

    def __init__(self):
        self.status, write_fd = os.pipe()
        os.dup2(write_fd, STATUS_FD, inheritable=True)
        os.close(write_fd)
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "--noediting", "-i"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(STATUS_FD,), bufsize=0,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        os.close(STATUS_FD)
        self.streams = {self.process.stdout.fileno(): "stdout", self.process.stderr.fileno(): "stderr"}
        self.decoders = {fd: codecs.getincrementaldecoder("utf-8")("replace") for fd in self.streams}
        self.process.stdin.write(PREPARE)
        self.wait(lambda *_: None)  # bash also complains about the missing terminal

    def run(self, code, tell):
        """Evaluates code; returns its exit status, or None when the shell has ended."""
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write(code)
            file.flush()
            try:
                self.process.stdin.write(LINE % file.name.encode())
            except BrokenPipeError:
                return None
            return self.wait(tell)

    def wait(self, tell):
        status = b""
        while not status.endswith(b"\n"):
            ready = select.select([*self.streams, self.status], [], [])[0]
            for fd in ready:
                if fd in self.streams:
                    self.copy(fd, tell)
            if self.status in ready:
                data = os.read(self.status, 64)
                if not data:
                    break
                status += data
        for _ in range(READS_AFTER_END):
            ready = select.select(list(self.streams), [], [], 0)[0]
            for fd in ready:
                self.copy(fd, tell)
            if not ready:
                break
        return int(status.split()[-1]) if status else None

    def copy(self, fd, tell):
        data = os.read(fd, READ_BYTES)
        text = self.decoders[fd].decode(data, not data)
        if text:
            tell(self.streams[fd], text)
        if not data:
            del self.streams[fd]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.stderr.close()
        os.close(self.status)
        return self.process.wait()


class BashKernel(Kernel):
    """Runs cells in a shell."""

    implementation, implementation_version, banner = "bash", "1", "bash"
    language_info = {"name": "bash", "mimetype": "text/x-sh", "file_extension": ".sh"}
    shell = None

    def tell(self, name, text):
        self.send_response(self.iopub_socket, "stream", {"name": name, "text": text})

    def fail(self, name, value):
        content = {"ename": name, "evalue": value, "traceback": [f"{name}: {value}"]}
        self.send_response(self.iopub_socket, "error", content)
        return {"status": "error", "execution_count": self.execution_count, **content}

    def succeed(self):
        return {"status": "ok", "execution_count": self.execution_count, "payload": [],
                "user_expressions": {}}

    def do_execute(self, code, silent, store_history=True, user_expressions=None,
                   allow_stdin=False, *, cell_id=None):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the command
        try:
            if not self.shell:
                self.shell = Shell()
            status = self.shell.run(code, (lambda *_: None) if silent else self.tell)
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        value = str(status)
        if status is None:
            status, self.shell = self.shell.close(), None
            value = f"{status} (the shell has ended; the next cell starts a new one)"
        return self.succeed() if status == 0 else self.fail("ExitCode", value)
