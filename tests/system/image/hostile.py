"""A registry that misbehaves: the repository's name says how. It serves one OCI layout.

usage: hostile.py LAYOUT LOG
Prints its two ports: those of the registry and of another host that it redirects to. The log has one line for each
request: port, path, Authorization, Range.
"""
import base64, hashlib, json, pathlib, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

layout, log = pathlib.Path(sys.argv[1]), open(sys.argv[2], "a", buffering=1)
seen = {}
first = json.loads((layout / "index.json").read_text())["manifests"][0]
manifest = (layout / "blobs/sha256" / first["digest"][7:]).read_bytes()
layers = json.loads(manifest)["layers"]
LOGIN = "Basic " + base64.b64encode(b"ann:secret word").decode()


def index(arch):
    return json.dumps({"schemaVersion": 2, "manifests": [dict(first, platform={"os": "linux", "architecture": arch})]}).encode()


def with_layers(change):
    document = json.loads(manifest)
    change(document)
    return json.dumps(document).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def reply(self, status, body=b"", headers=(), length=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        if length is not None:
            self.close_connection = True

    def authorized(self, mode):
        asked, host = self.headers.get("Authorization"), self.headers["Host"]
        if mode == "basic" and asked != LOGIN:
            self.reply(401, headers=[("WWW-Authenticate", 'Basic realm="x"')])
        elif not mode and asked != "Bearer a.token":
            self.reply(401, headers=[("WWW-Authenticate", f'Bearer realm="http://{host}/token",service="s"')])
        elif mode in ("bearer", "redirect") and asked != "Bearer a.token":
            self.reply(401, headers=[("WWW-Authenticate", f'Bearer realm="http://{host}/token",service="s",scope="repository:{mode}:pull"')])
        else:
            return True
        return False

    def do_GET(self):
        mode, kind, what = (self.path.split("/") + [""] * 5)[2:5]
        log.write(f"{self.server.server_port} {self.path} {self.headers.get('Authorization')} {self.headers.get('Range')}\n")
        seen[self.path] = seen.get(self.path, 0) + 1
        if self.path.startswith("/token"):
            good = self.headers.get("Authorization") == LOGIN and ("scope=repository%3A" in self.path or "scope" not in self.path)
            self.reply(200 if good else 401, json.dumps({"token": "a.token"}).encode() if good else b"{}")
        elif self.server is other:
            self.blob("plain", what)
        elif not mode:
            if self.authorized(mode):
                self.reply(200, b"{}")
        elif self.authorized(mode):
            self.manifest(mode, what) if kind == "manifests" else self.blob(mode, what)

    def manifest(self, mode, what):
        inner = index(json.loads((layout / "arch.json").read_text()))
        bodies = {
            "foreign": lambda: index("s390x"),
            "index": lambda: manifest if what.startswith("sha256:") else index(json.loads((layout / "arch.json").read_text())),
            "liar": lambda: manifest + b" " if what.startswith("sha256:") else index(json.loads((layout / "arch.json").read_text())),
            "huge": lambda: with_layers(lambda d: d["layers"][0].update(size=1 << 60)),
            "negative": lambda: with_layers(lambda d: d["layers"][0].update(size=-1)),
            "path": lambda: with_layers(lambda d: d["layers"][0].update(digest="sha256:../../../etc/shadow")),
            "nolayers": lambda: b'{"schemaVersion": 1, "fsLayers": []}',
            "garbage": lambda: b"\x00[[[[",
            "many": lambda: with_layers(lambda d: d.update(layers=[dict(d["layers"][0], digest=f"sha256:{i:064x}") for i in range(500)])),
            "nested": lambda: inner if what.startswith("sha256:") else json.dumps({"schemaVersion": 2, "manifests": [
                {**json.loads(inner)["manifests"][0], "digest": "sha256:" + hashlib.sha256(inner).hexdigest()}]}).encode(),
            "deep": lambda: b'{"layers":' + b"[" * 100000,
            "endless": lambda: b" " * (5 << 20),
            "longer": lambda: with_layers(lambda d: d["layers"][0].update(size=d["layers"][0]["size"] - 1)),
        }
        if mode == "limited":
            self.reply(429, headers=[("Retry-After", "3600")])
        elif mode == "broken" or (mode == "shaky" and seen[self.path] < 3):
            self.reply(503)
        elif mode == "loop":
            self.reply(302, headers=[("Location", self.path)])
        else:
            self.reply(200, bodies.get(mode, lambda: manifest)())

    def blob(self, mode, digest):
        path = layout / "blobs/sha256" / digest[7:]
        if not path.is_file() or (mode == "deleted" and digest == layers[1]["digest"]):
            return self.reply(404)
        data, asked = path.read_bytes(), self.headers.get("Range")
        begin = int(asked[6:].rstrip("-")) if asked and mode != "norange" else 0
        part = data[begin:]
        status = 206 if asked and mode != "norange" else 200
        big = digest == layers[0]["digest"]
        if mode == "redirect":
            self.reply(307, headers=[("Location", f"http://localhost:{other.server_port}/v2/plain/blobs/{digest}")])
        elif mode == "corrupt" and big:
            self.reply(status, b"x" + part[1:])
        elif (mode in ("cut", "norange") and big and seen[self.path] == 1) or (mode == "short" and big):
            self.reply(status, part[:len(part) // 2], length=len(part))
        elif mode == "stuck" and big and seen[self.path] == 1:
            self.reply(status, part[:len(part) // 2], length=len(part))
        else:
            self.reply(status, part)


class Server(ThreadingHTTPServer):
    def handle_error(self, request, address):
        pass  # clients hang up where they please


main, other = (Server(("127.0.0.1", 0), Handler) for _ in range(2))
print(main.server_port, other.server_port, flush=True)
threading.Thread(target=other.serve_forever, daemon=True).start()
main.serve_forever()
