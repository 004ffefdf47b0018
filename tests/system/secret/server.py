#!/usr/bin/env python3
"""An https server that wants a value. usage: server.py DIRECTORY PORT
DIRECTORY has value, cert.pem, key.pem and files; requests are logged in secret.log: what was asked for, and whether the value
was right. /reflect sends the headers of the request back, /slow a reply that does not end soon."""
import base64, http.server, os, ssl, sys, time, urllib.parse

WHERE = sys.argv[1]


def value():
    return open(os.path.join(WHERE, "value")).read().strip()


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def given(self):
        """The places of a request that hold the value."""
        authorization = self.headers.get("Authorization", "")
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        if authorization == "Bearer " + value():
            yield "bearer"
        if authorization.startswith("Basic ") and base64.b64decode(authorization[6:]).decode().endswith(":" + value()):
            yield "basic"
        if self.headers.get("X-Key") == value():
            yield "header"
        if query.get("key") == [value()]:
            yield "query"

    def answer(self, status, text):
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="test"')
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        places = list(self.given())
        with open(os.path.join(WHERE, "secret.log"), "a") as log:
            log.write(f"{self.path.split('?')[0]} {','.join(places) or 'nothing'}\n")
        if not places:
            self.answer(401, "no value")
        elif self.path.startswith("/reflect"):
            self.answer(200, "".join(f"{name}: {text}\n" for name, text in self.headers.items()))
        elif self.path.startswith("/slow"):
            self.trickle()
        elif self.path.startswith("/repo.git"):
            self.path = self.path.split("?")[0]
            super().do_GET()
        else:
            self.answer(200, "welcome " + ",".join(places))

    def do_POST(self):
        with open(os.path.join(WHERE, "secret.log"), "a") as log:
            log.write(f"{self.path} {','.join(self.given()) or 'nothing'}\n")
        while self.rfile.read1(65536):
            pass

    def trickle(self):
        self.send_response(200)
        self.send_header("Content-Length", "6000")
        self.end_headers()
        for _ in range(6000):
            self.wfile.write(b"x")
            time.sleep(0.01)

    def log_message(self, *words):
        pass


os.chdir(os.path.join(WHERE, "files"))
server = http.server.ThreadingHTTPServer(("93.184.216.34", int(sys.argv[2])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.path.join(WHERE, "cert.pem"), os.path.join(WHERE, "key.pem"))
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
