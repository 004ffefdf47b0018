"""A program on a pseudo terminal of its own. What the claims about terminals are written with."""
import fcntl, os, pty, select, signal, struct, termios, time

RUN = ["holt", "run", "--runtime", os.environ.get("runtime", "native")]
LAST = b"\0the last\0"
PATIENCE = 300  # seconds: against a test that hangs, not a speed limit


class Terminal:
    def __init__(self, *args, rows=24, columns=80, **env):
        self.read = b""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(slave, fd)
            os.closerange(3, 100)
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os.environ.update(TERM="xterm-256color", NO_COLOR="1", **env)
            os.execvp(args[0], args)
        self.master, self.slave = master, slave

    def fill(self):
        ready, _, _ = select.select([self.master], [], [], 0.1)
        if ready:
            self.read += os.read(self.master, 65536)

    def expect(self, text):
        """Everything up to text; what is behind it stays for the next."""
        text, end = text.encode(), time.monotonic() + PATIENCE
        while text not in self.read:
            assert time.monotonic() < end, f"no {text!r} in {self.read!r}"
            self.fill()
        before, self.read = self.read.split(text, 1)
        return before.decode(errors="replace")

    def send(self, text):
        os.write(self.master, text if isinstance(text, bytes) else text.encode())

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def has_ended(self, seconds):
        """Whether it has, or does within that time."""
        end = time.monotonic() + seconds
        while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() > end:
                return False
            self.fill()
        return True

    def wait(self):
        """The exit status; all output is read meanwhile."""
        end = time.monotonic() + PATIENCE
        while True:
            self.fill()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError(f"does not end; read {self.read!r}")
        # What we write to the terminal now comes behind all that was written before.
        os.set_blocking(self.slave, False)  # it may be full
        left = LAST
        while left or not self.read.endswith(LAST):
            try:
                left = left[os.write(self.slave, left):]
            except BlockingIOError:
                pass
            self.fill()
        self.read = self.read.removesuffix(LAST)
        return os.waitstatus_to_exitcode(status)

    def modes(self):
        return termios.tcgetattr(self.slave)


def equal(wanted, got):
    assert wanted == got, f"wanted {wanted!r}, got {got!r}"
