"""A registry that takes pushes and misbehaves: the repository's name says how.

usage: pushed.py LOG
Prints its two ports: those of the registry and of another host that takes its uploads. The log has one line for each
request: port, method, path, Authorization, bytes of the body.
"""
import base64, hashlib, json, re, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

log = open(sys.argv[1], "a", buffering=1)
LOGIN = "Basic " + base64.b64encode(b"ann:secret word").decode()
blobs, manifests, uploads, seen = {}, {}, {}, {}
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status, message):
        self.reply(status, json.dumps({"errors": [{"code": "X", "message": message}]}).encode())

    def body(self, limit=None):
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length if limit is None else min(limit, length))
        log.write(f"{self.server.server_port} {self.command} {self.path} {self.headers.get('Authorization')} {len(data)}\n")
        return data

    def authorized(self, repository, wants_push):
        asked = self.headers.get("Authorization")
        if repository == "bearer":
            scope = "pull,push" if wants_push else "pull"
            if asked != f"Bearer {scope}" and asked != "Bearer pull,push":
                self.reply(401, WWW_Authenticate=f'Bearer realm="http://{self.headers["Host"]}/token",service="s",scope="repository:bearer:{scope}"')
                return False
        if repository == "basic" and asked != LOGIN:
            self.reply(401, WWW_Authenticate='Basic realm="x"')
            return False
        return True

    def do(self):
        if self.path.startswith("/token"):
            self.body()
            scope = re.search("pull(%2Cpush)?", self.path).group(0).replace("%2C", ",")
            good = self.headers.get("Authorization") == LOGIN
            return self.reply(200 if good else 401, json.dumps({"token": scope}).encode() if good else b"{}")
        _, _, repository, kind, what = (self.path.split("?")[0].split("/") + [""] * 5)[:5]
        with lock:
            seen[(repository, self.command, kind)] = seen.get((repository, self.command, kind), 0) + 1
            count = seen[(repository, self.command, kind)]
        upload = self.path.split("?")[0].split("/")[-1]
        begun = uploads.get(upload, {}).get("data", b"")
        if self.command == "PATCH" and repository == "cut" and count == 1:
            uploads[upload]["data"] = self.body(1000)
            self.close_connection = True
            return self.connection.close()
        data = self.body()
        if self.server is main and not self.authorized(repository, self.command not in ("GET", "HEAD")):
            return None
        if repository == "readonly" and self.command != "HEAD":
            return self.error(405, "this registry is read-only")
        if repository == "denied":
            return self.error(403, "requested access is denied")
        if repository == "limited":
            return self.reply(429, Retry_After="3600")
        if repository == "broken" or (repository == "shaky" and count < 3):
            return self.reply(503)
        return getattr(self, "do_" + kind)(repository, what, upload, begun, data)

    do_GET = do_HEAD = do_POST = do_PATCH = do_PUT = do

    def do_blobs(self, repository, what, upload, begun, data):
        if self.command == "HEAD":
            return self.reply(200 if what in blobs.setdefault(repository, {}) else 404)
        if self.command == "POST":
            mount = re.search("mount=([^&]*)&from=(.*)", self.path)
            if mount and mount.group(1) in blobs.get(mount.group(2), {}):
                blobs[repository][mount.group(1)] = blobs[mount.group(2)][mount.group(1)]
                return self.reply(201)
            name = f"u{len(uploads)}"
            uploads[name] = {"data": b""}
            host = f"http://localhost:{other.server_port}" if repository == "elsewhere" else ""
            return self.reply(202, Location=f"{host}/v2/{repository}/blobs/uploads/{name}?state=1")
        if self.command == "GET" and what in blobs[repository]:
            return self.reply(200, blobs[repository][what])
        if upload not in uploads or (repository == "forgetful" and self.command == "PATCH" and seen[(repository, "PATCH", "blobs")] == 1):
            return self.reply(404)
        if self.command == "GET":
            return self.reply(204, Location=f"/v2/{repository}/blobs/uploads/{upload}?state=2", Range=f"0-{len(begun) - 1}")
        if self.command == "PATCH":
            if repository == "small":
                return self.error(413, "the blob is too large")
            asked = self.headers.get("Content-Range")
            if asked and not asked.startswith(f"{len(begun)}-"):
                return self.reply(416)
            uploads[upload]["data"] = begun + data
            return self.reply(202, Location=self.path, Range=f"0-{len(begun + data) - 1}")
        digest = re.search("digest=(.*)", self.path).group(1)
        if hashlib.sha256(begun).hexdigest() != digest[7:] or repository == "picky":
            return self.error(400, "the digest\n does not match")
        blobs.setdefault(repository, {})[digest] = begun
        return self.reply(201)

    def do_manifests(self, repository, what, upload, begun, data):
        if self.command == "GET":
            return self.reply(200, manifests[f"{repository}:{what}"])
        document = json.loads(data)
        lacks = [each["digest"] for each in document["layers"] + [document["config"]] if each["digest"] not in blobs[repository]]
        if lacks or self.headers["Content-Type"] != document["mediaType"]:
            return self.error(400, "the manifest is invalid")
        manifests[f"{repository}:{what}"] = data
        return self.reply(201)


class Server(ThreadingHTTPServer):
    def handle_error(self, request, address):
        pass  # it cuts connections itself


main, other = (Server(("127.0.0.1", 0), Handler) for _ in range(2))
print(main.server_port, other.server_port, flush=True)
threading.Thread(target=other.serve_forever, daemon=True).start()
main.serve_forever()
