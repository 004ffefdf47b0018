"""The files of the console, their headers, and paths that must not lead anywhere else."""
import gzip
import http.server
import os
import sys
import threading

from browser import Browser, main_token, port, raw, send

SITE = os.environ["tmp"] + "/site"
HASHED = "assets/app-3QK5XZ7A.js"


def write(name, data):
    path = os.path.join(SITE, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def make_site():
    write("index.html", b"<!doctype html><title>console</title>")
    write(HASHED, b"export const a = 1;" * 100)
    write(HASHED + ".gz", gzip.compress(b"export const a = 1;" * 100))
    write("assets/plain.css", b"a {}")
    write(".hidden.js", b"hidden")
    write("assets/secret.key", b"key")
    with open(os.environ["tmp"] + "/outside.js", "w", encoding="ascii") as file:
        file.write("outside")
    os.symlink("../outside.js", SITE + "/link.js")
    os.mkfifo(SITE + "/pipe.js")


def without_a_build_the_page_says_how():
    reply = send("GET", "/")
    assert reply.status == 200 and b"make console" in reply.body, reply.body
    assert reply.headers["Content-Type"].startswith("text/html") and reply.headers["Cache-Control"] == "no-store"
    check_headers(reply)


def check_headers(reply):
    policy = {part.split()[0]: part.split()[1:] for part in reply.headers["Content-Security-Policy"].split(";")}
    assert policy["default-src"] == ["'none'"] and policy["frame-ancestors"] == ["'none'"], policy
    assert policy["script-src"] == ["'self'"] and policy["style-src"] == ["'self'"], policy
    assert policy["base-uri"] == ["'none'"] and policy["form-action"] == ["'none'"], policy
    assert not any("unsafe" in word for words in policy.values() for word in words), policy
    for name, value in (("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"),
                        ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin"),
                        ("Cross-Origin-Resource-Policy", "same-origin")):
        assert reply.headers[name] == value, (name, reply.headers[name])
    assert "Access-Control-Allow-Origin" not in reply.headers


def a_build_is_served_without_a_restart():
    make_site()
    for path in ("/", "/index.html", "/?x=1"):
        reply = send("GET", path)
        assert reply.status == 200 and b"<title>console" in reply.body, (path, reply.body)
        assert reply.headers["Cache-Control"] == "no-cache"
    assert send("HEAD", "/").body == b"" and send("HEAD", "/").status == 200
    tag = send("GET", "/").headers["ETag"]
    assert send("GET", "/", None, {"If-None-Match": tag}).status == 304
    write("index.html", b"<!doctype html><title>console 2</title>")
    assert b"console 2" in send("GET", "/", None, {"If-None-Match": tag}).body


def hashed_files_are_immutable_and_compressed():
    plain = send("GET", "/" + HASHED)
    assert plain.status == 200 and "Content-Encoding" not in plain.headers and plain.body.startswith(b"export")
    assert "immutable" in plain.headers["Cache-Control"], plain.headers
    packed = send("GET", "/" + HASHED, None, {"Accept-Encoding": "br, gzip"})
    assert packed.headers["Content-Encoding"] == "gzip" and gzip.decompress(packed.body) == plain.body
    assert packed.headers["Content-Type"] == plain.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert packed.headers["Vary"] == "Accept-Encoding" and packed.headers["ETag"] != plain.headers["ETag"]
    style = send("GET", "/assets/plain.css", None, {"Accept-Encoding": "gzip"})
    assert style.body == b"a {}" and style.headers["Cache-Control"] == "no-cache"


def every_reply_has_strict_headers():
    for verb, path in (("GET", "/"), ("GET", "/" + HASHED), ("GET", "/console/session"), ("POST", "/console/login"),
                       ("GET", "/console/nothing"), ("GET", "/console/download/x"), ("POST", "/console/ticket")):
        check_headers(send(verb, path, {} if verb == "POST" else None))
    check_headers(send("POST", "/console/login", {"token": main_token()}))
    check_headers(send("POST", "/console/login", {"token": main_token()}, {"Origin": "http://evil.example"}))


def no_path_leads_out():
    for path in ("/../outside.js", "/assets/../../outside.js", "/%2e%2e/outside.js", "/%2e%2e%2foutside.js",
                 "/..%2foutside.js", "/assets%2f..%2f..%2foutside.js", "/assets/%2e%2e/%2e%2e/outside.js",
                 "/link.js", "/.hidden.js", "/assets/secret.key", "/assets", "/assets/", "//outside.js",
                 "/index.html%00.js", "/index.html%00", "/assets/plain.css%00.js", "/%00", "/index%2ehtml",
                 "/assets/..", "/./index.html", "/assets/./plain.css", "/" + HASHED + ".gz", "/pipe.js",
                 "/..\\outside.js", "/assets\\plain.css", "/INDEX.HTML",
                 "/" + "a" * 5000 + ".js", "/etc/passwd", "/" + "../" * 20 + "etc/passwd"):
        reply = send("GET", path)
        assert reply.status in (400, 401, 404), (path, reply.status)
        assert b"outside" not in reply.body and b"hidden" not in reply.body and b"root:" not in reply.body, path
    for text in (b"GET /\xc3\xa9.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"GET /index.html\x00.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                 b"GET http://127.0.0.1/../outside.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"):
        line = raw(text)
        assert " 200 " not in line, (text, line)
    for verb in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        assert send(verb, "/", None).status in (401, 404, 405), verb


def unknown_hosts_and_sites_get_nothing():
    assert send("GET", "/", None, {"Host": "rebound.example"}).status == 403
    assert send("GET", "/console/session", None, {"Host": "rebound.example"}).status == 403
    assert send("GET", "/", None, {"Host": f"localhost:{port()}"}).status == 200


def a_cookie_that_another_port_was_sent_is_worth_nothing():
    """Browsers send the cookies of 127.0.0.1 to all of its ports: here a program of a stranger listens on one."""
    stolen = []

    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            stolen.append(self.headers["Cookie"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Stranger)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = Browser()
    where = browser.post("/console/ticket", {"sandbox": "box", "path": "/etc/hostname"}).json()["url"]
    send("GET", "/", None, {"Cookie": browser.cookie}, at=server.server_port)
    server.shutdown()
    cookie = {"Cookie": stolen[0]}
    for verb, path in (("POST", "/holt.v1.SandboxService/List"), ("POST", "/holt.v1.TokenService/Create"),
                       ("GET", "/console/session"), ("POST", "/console/logout"), ("POST", "/console/ticket"),
                       ("GET", "/holt.v1/file?sandbox=box&path=/etc/hostname"),
                       ("PUT", "/holt.v1/file?sandbox=box&path=/workspace/x"), ("GET", "/metrics")):
        reply = send(verb, path, {} if verb == "POST" else None, cookie)
        assert reply.status == 401, (verb, path, reply.status)
    assert send("GET", "/console/download/" + "0" * 64, None, cookie).status == 404
    stream = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
              "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Origin": f"http://127.0.0.1:{server.server_port}"}
    assert send("GET", "/holt.v1/stream", None, cookie | stream).status == 403
    assert browser.call("SandboxService/List").status == 200
    assert send("GET", where, None, {"Cookie": browser.cookie}).status == 200


globals()[sys.argv[1]]()
