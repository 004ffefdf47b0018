"""Calls of the daemon at $HOLT_HOST, a unix socket, for the tests in Python."""
import base64, http.client, json, os, socket, struct


class Connection(http.client.HTTPConnection):
    def __init__(self):
        super().__init__("localhost")

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ["HOLT_HOST"].removeprefix("unix://"))

    def call(self, method, **fields):
        """The reply; a refusal is raised as Refused."""
        self.request("POST", "/holt.v1." + method, json.dumps(fields), {"Content-Type": "application/json"})
        response = self.getresponse()
        reply = json.loads(response.read())
        if response.status != 200:
            raise Refused(reply)
        return reply

    def stream(self, method, **fields):
        """Sends the request. Its messages come from a call of messages() later on."""
        text = json.dumps(fields).encode()
        self.request("POST", "/holt.v1." + method, struct.pack(">BI", 0, len(text)) + text,
                     {"Content-Type": "application/connect+json"})
        return self

    def messages(self):
        response = self.getresponse()
        while True:
            flags, size = struct.unpack(">BI", response.read(5))
            message = json.loads(response.read(size))
            if not flags & 2:
                yield message
                continue
            response.read()
            if "error" in message:
                raise Refused(message["error"])
            return


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error)
        self.code, self.cause, self.message = error["code"], error.get("cause"), error["message"]


class Output:
    """All that a stream of messages tells, checked for order."""

    def __init__(self, messages):
        self.stdout = self.stderr = b""
        self.started, self.ended, self.gaps = None, None, []
        for message in messages:
            assert self.ended is None, f"{message} after the end"
            if "started" in message:
                assert self.started is None
                self.started = message["started"]
            assert self.started, f"{message} before the start"
            self.ended = message.get("ended")
            self.gaps += [message["gap"]] if "gap" in message else []
            self.stdout += base64.b64decode(message.get("stdout", ""))
            self.stderr += base64.b64decode(message.get("stderr", ""))


def call(method, **fields):
    return Connection().call(method, **fields)


def execute(sandbox, *args, **fields):
    """An Exec that has been asked for; the Output of its messages() is yet to be read."""
    key = {"idempotencyKey": fields.pop("key")} if "key" in fields else {}
    return Connection().stream("ProcessService/Exec", sandboxId=sandbox, process={"args": args, **fields}, **key)


def run(sandbox, *args, **fields):
    return Output(execute(sandbox, *args, **fields).messages())


def start(sandbox, *args, **fields):
    key = {"idempotencyKey": fields.pop("key")} if "key" in fields else {}
    return call("ProcessService/Start", sandboxId=sandbox, process={"args": args, **fields}, **key)


def attach(sandbox, process, **fields):
    return Output(Connection().stream("ProcessService/Attach", sandboxId=sandbox, processId=process,
                                      **fields).messages())


def processes(sandbox):
    return call("ProcessService/List", sandboxId=sandbox)["processes"]


def refused(cause, method, **fields):
    """That this call is refused, with a cause or a code."""
    try:
        if method.endswith(("/Exec", "/Attach")):
            list(Connection().stream(method, **fields).messages())
        else:
            call(method, **fields)
    except Refused as refusal:
        assert cause in (refusal.cause, refusal.code), f"{cause}: {refusal}"
        assert refusal.message and "\n" not in refusal.message
    else:
        raise AssertionError(f"{method} {fields} was accepted")


def equal(wanted, got):
    assert wanted == got, f"wanted {wanted!r:.2000}, got {got!r:.2000}"
