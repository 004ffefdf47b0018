"""A browser for the tests of the console: keeps a cookie and the key of a session, and sends requests."""
import http.client
import json
import os
import socket


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


def port():
    return int(os.environ["port"])


def send(verb, path, body=None, headers=None, at=None):
    """One request. `path` is sent as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", at or port())
    try:
        connection.putrequest(verb, path, skip_host="Host" in (headers or {}), skip_accept_encoding=True)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if body is not None:
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            if "Content-Type" not in (headers or {}):
                connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        return Reply(connection.getresponse())
    finally:
        connection.close()


def raw(text):
    """The status line of the reply to bytes that no client library would send."""
    with socket.create_connection(("127.0.0.1", port())) as connection:
        connection.sendall(text)
        return connection.makefile("rb").readline().decode()


def main_token():
    with open(os.environ["state"] + "/token", encoding="ascii") as file:
        return file.read().strip()


def api(method, message=None, token=None):
    """A call of holt.v1 with a token."""
    return send("POST", "/holt.v1." + method, message or {},
                {"Authorization": "Bearer " + (token or main_token())})


class Browser:
    """Logged in by `secret`: {"token": ...} or {"code": ...}."""

    def __init__(self, secret=None):
        reply = send("POST", "/console/login", secret or {"token": main_token()})
        assert reply.status == 200, (reply.status, reply.body)
        self.set_cookie = reply.headers["Set-Cookie"]
        self.cookie = self.set_cookie.split(";")[0]
        self.session = reply.json()
        self.key = self.session["key"]

    def headers(self, **more):
        return {"Cookie": self.cookie, "X-Holt-Session": self.key} | more

    def get(self, path, **more):
        return send("GET", path, None, self.headers(**more))

    def post(self, path, message=None, **more):
        return send("POST", path, message if message is not None else {}, self.headers(**more))

    def call(self, method, message=None):
        return self.post("/holt.v1." + method, message)

    def save(self, name):
        with open(os.environ["tmp"] + "/" + name, "w", encoding="ascii") as file:
            json.dump({"cookie": self.cookie, "key": self.key, "session": self.session}, file)

    @classmethod
    def load(cls, name):
        browser = cls.__new__(cls)
        with open(os.environ["tmp"] + "/" + name, encoding="ascii") as file:
            browser.__dict__ = json.load(file)
        return browser
