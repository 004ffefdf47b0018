"""A holtd that tests kill, and calls to it that distinguish an error from a crash."""
import base64
import http.client
import json
import os
import signal
import socket
import struct
import subprocess

CALL_SECONDS = 600  # a bound against hanging, not a speed limit


class Gone(Exception):
    """The daemon died before it answered."""


class Refused(Exception):
    """The daemon answered with an error."""


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("holt", timeout=CALL_SECONDS)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Daemon:
    def __init__(self, build, directory, flags):
        self.program = os.path.join(build, "holtd")
        self.state = os.path.join(directory, "state")
        self.run = os.path.join(directory, "run")
        self.log = os.path.join(directory, "holtd.log")
        self.socket = os.path.join(self.run, "holt.sock")
        self.flags = flags
        self.process = None
        self.held = []  # replies that are not read to their end

    def launch(self, fault=None, flags=()):
        """Starts it; returns a descriptor that becomes readable when it is ready."""
        ours, theirs = os.pipe()
        environment = dict(os.environ)
        if fault:
            environment["HOLT_FAULT"] = fault
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--state", self.state, "--run", self.run, "--listen", "none",
                 "--ready-fd", str(theirs), *self.flags, *flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                pass_fds=[theirs])
        os.close(theirs)
        return ours

    def start(self, fault=None, flags=()):
        """Starts it; returns whether it became ready, else it died at its fault point."""
        with open(self.launch(fault, flags), "rb") as ready:
            line = ready.readline().decode().strip()
        if line == "ready":
            return True
        status = self.process.wait()
        self.process = None
        if not fault or status != -signal.SIGKILL:
            raise AssertionError(f"holtd did not start: {line or status}")
        return False

    def end(self, how=signal.SIGKILL):
        """Ends it; returns its status, that of SIGKILL if it was dead already."""
        process, self.process = self.process, None
        if process is None:
            return None
        if process.poll() is None:
            process.send_signal(how)
        return process.wait()

    def died(self, seconds):
        """Waits for its death; returns whether it was killed."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        assert status == -signal.SIGKILL, f"holtd ended by itself, with status {status}"
        self.process = None
        return True

    def pid(self):
        return self.process.pid

    def request(self, method, body, kind):
        try:
            connection = Connection(self.socket)
            connection.request("POST", "/holt.v1." + method, body, {"content-type": kind})
            reply = connection.getresponse()
            data = reply.read()
        except (OSError, http.client.HTTPException) as error:
            raise Gone(f"{method}: {error!r}") from error
        finally:
            connection.close()
        return reply.status, data

    def call(self, method, **fields):
        status, data = self.request(method, json.dumps(fields).encode(), "application/json")
        reply = json.loads(data)
        if status != 200:
            raise Refused(f"{method} {fields}: {reply}")
        return reply

    def stream(self, method, **fields):
        """Makes a streaming call; returns all events."""
        text = json.dumps(fields).encode()
        _, data = self.request(method, b"\0" + struct.pack(">I", len(text)) + text,
                               "application/connect+json")
        events = []
        while len(data) >= 5:
            flags, size = struct.unpack(">BI", data[:5])
            message = json.loads(data[5:5 + size])
            data = data[5 + size:]
            if flags & 2 and "error" in message:
                raise Refused(f"{method} {fields}: {message}")
            if flags & 2:
                return events
            events.append(message)
        raise Gone(f"{method}: the stream has no end")

    def begin(self, method, **fields):
        """Makes a streaming call; returns the first event. The connection stays open until the test ends."""
        text = json.dumps(fields).encode()
        connection = Connection(self.socket)
        connection.request("POST", "/holt.v1." + method, b"\0" + struct.pack(">I", len(text)) + text,
                           {"content-type": "application/connect+json"})
        reply = connection.getresponse()
        _, size = struct.unpack(">BI", reply.read(5))
        self.held.append(reply)
        return json.loads(reply.read(size))

    def execute(self, sandbox, script, *arguments):
        """Runs a shell script in a sandbox, which must succeed; returns its output."""
        events = self.stream("ProcessService/Exec", sandboxId=sandbox,
                             process={"args": ["sh", "-c", script, *arguments], "cwd": "/"})
        output, ended = {"stdout": b"", "stderr": b""}, None
        for event in events:
            for name in output:
                output[name] += base64.b64decode(event.get(name, ""))
            ended = event.get("ended", ended)
        assert ended and ended["exitCode"] == 0, f"exec in {sandbox}: {ended} {output}"
        return output["stdout"].decode()
