"""Plain downloads and uploads (GET and PUT of /holt.v1/file), and the tickets of the console."""
import base64
import hashlib
import http.client
import io
import json
import os
import sys
import tarfile
import time
import urllib.parse

from browser import Browser, api, main_token, port, send

BOX = "box"
LONG = b"begin" * (1 << 19)


def url(path, sandbox=BOX, **more):
    return "/holt.v1/file?" + urllib.parse.urlencode({"sandbox": sandbox, "path": path} | more)


def token(secret=None, **more):
    return {"Authorization": "Bearer " + (secret or main_token())} | {
        name.replace("_", "-"): value for name, value in more.items()}


def get(path, **headers):
    return send("GET", url(path), None, token(**headers))


def put(path, body, query=None, **headers):
    return send("PUT", url(path, **(query or {})), body, token(**headers) | {"Content-Type": "application/octet-stream"})


def run(script):
    reply = api("ToolService/Execute", {"sandboxId": BOX, "tool": "bash", "params": {"command": script}})
    assert reply.status == 200, reply.body
    return reply.json()["content"][0]["text"] if "content" in reply.json() else str(reply.json())


def a_file_comes_and_goes():
    reply = put("/workspace/a file", b"one\x00two\xff")
    assert reply.status == 200, (reply.status, reply.body)
    assert reply.json()["entry"]["size"] in (8, "8") and reply.json()["entry"]["mode"] == 0o644, reply.body
    got = get("/workspace/a file")
    assert got.status == 200 and got.body == b"one\x00two\xff", got.body
    assert got.headers["ETag"] == reply.headers["ETag"] and got.headers["Content-Length"] == "8"
    assert got.headers["Content-Type"] == "application/octet-stream"
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    assert got.headers["Content-Disposition"] == "attachment; filename*=UTF-8''a%20file", got.headers
    head = send("HEAD", url("/workspace/a file"), None, token())
    assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == "8", head.headers
    same = get("/workspace/a file", If_None_Match=got.headers["ETag"])
    assert same.status == 304 and same.body == b"", same.status
    assert put("/workspace/empty", b"").status == 200
    assert get("/workspace/empty").body == b"" and get("/workspace/empty").status == 200
    assert get("/proc/version").body.startswith(b"Linux"), "a file without a size"


def modes_are_kept_or_set():
    assert put("/workspace/script", b"#!/bin/sh\n", {"mode": "755"}).json()["entry"]["mode"] == 0o755
    assert put("/workspace/script", b"#!/bin/sh\necho\n").json()["entry"]["mode"] == 0o755
    assert put("/workspace/new/below/file", b"x").status == 404
    assert put("/workspace/new/below/file", b"x", {"parents": "true"}).status == 200


def what_is_wrong_is_refused():
    for query in ("", "?sandbox=box", "?path=/x", "?sandbox=box&path=/x&other=1", "?sandbox=box&path=/x%00y",
                  "?sandbox=box&path=/x&mode=9", "?sandbox=box&path=/x&parents=maybe"):
        reply = send("GET", "/holt.v1/file" + query, None, token())
        assert reply.status == 400, (query, reply.status, reply.body)
    assert get("/no/such/file").status == 404
    assert send("GET", url("/x", "nobody"), None, token()).status == 404
    assert send("DELETE", url("/x"), None, token()).status == 405
    assert send("GET", url("/etc/passwd")).status == 401
    assert put("/workspace", b"x").status == 400
    for condition in ({"If_None_Match": '"x"'}, {"If_Match": "x"}, {"If_Match": "*"},
                      {"If_Match": '"x"', "If_None_Match": "*"}):
        assert put("/workspace/c", b"x", **condition).status == 400, condition


def a_change_by_another_is_not_overwritten():
    first = put("/workspace/shared", b"one").headers["ETag"]
    second = put("/workspace/shared", b"two", If_Match=first)
    assert second.status == 200 and second.headers["ETag"] != first
    reply = put("/workspace/shared", b"three", If_Match=first)
    assert reply.status == 412 and get("/workspace/shared").body == b"two", (reply.status, reply.body)
    run("printf TWO >/workspace/shared")  # in place, of the same size
    reply = put("/workspace/shared", b"three", If_Match=second.headers["ETag"])
    assert reply.status == 412 and get("/workspace/shared").body == b"TWO", (reply.status, reply.body)
    assert put("/workspace/shared", b"x", If_None_Match="*").status == 412
    assert put("/workspace/only-once", b"x", If_None_Match="*").status == 200
    assert put("/workspace/gone", b"x", If_Match=first).status == 412
    assert get("/workspace/gone").status == 404


def slow_put(headers, path, change):
    """A body of two parts with a change by another client between them. The first part is longer than what the daemon
    keeps back, so the worker has opened the file, and made its first check, before the change."""
    connection = http.client.HTTPConnection("127.0.0.1", port())
    connection.putrequest("PUT", url(path))
    for name, value in (token() | headers | {"Content-Length": str(len(LONG) + 3)}).items():
        connection.putheader(name, value)
    connection.endheaders(LONG)
    while not run("ls -A /workspace | grep .holt- || true").count(".holt-"):
        time.sleep(0.05)
    change()
    connection.send(b"end")
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def a_change_during_an_upload_is_not_overwritten():
    tag = put("/workspace/race", b"one").headers["ETag"]
    assert slow_put({"If-Match": tag}, "/workspace/race", lambda: put("/workspace/race", b"other")) == 412
    assert get("/workspace/race").body == b"other"
    assert slow_put({"If-None-Match": "*"}, "/workspace/late", lambda: put("/workspace/late", b"other")) == 412
    assert get("/workspace/late").body == b"other"
    assert slow_put({}, "/workspace/race", lambda: put("/workspace/race", b"other")) == 200
    assert get("/workspace/race").body == LONG + b"end"
    left = api("FileService/List", {"sandboxId": BOX, "path": "/workspace"}).json()["entries"]
    assert not [each for each in left if ".holt-" in each["path"]], left


def a_reader_downloads_and_does_not_upload():
    secret = api("TokenService/Create", {"role": "read-only"}).json()["secret"]
    assert send("GET", url("/etc/hostname"), None, token(secret)).status == 200
    reply = send("PUT", url("/workspace/reader"), b"x", token(secret))
    assert reply.status == 403 and get("/workspace/reader").status == 404, reply.status
    other = api("TokenService/Create", {"owner": "ann", "role": "user"}).json()["secret"]
    for verb, body in (("GET", None), ("PUT", b"x")):
        assert send(verb, url("/workspace/shared"), body, token(other)).status == 404, verb
    reader = Browser({"token": secret})
    assert send("GET", url("/etc/hostname"), None, reader.headers()).status == 200
    assert send("PUT", url("/workspace/reader"), b"x", reader.headers()).status == 403


def a_session_needs_cookie_and_header():
    browser = Browser()
    assert send("PUT", url("/workspace/by-session"), b"x", browser.headers()).status == 200
    for headers in ({"Cookie": browser.cookie}, {"X-Holt-Session": browser.key}):
        for verb, body in (("GET", None), ("PUT", b"y")):
            assert send(verb, url("/workspace/by-session"), body, headers).status == 401, (verb, headers)
    assert send("PUT", url("/workspace/by-session"), b"y", browser.headers(Origin="http://127.0.0.1:1")).status == 403
    assert get("/workspace/by-session").body == b"x"


def big(count):
    block = hashlib.sha256(b"holt").digest() * 32768  # 1 MiB
    for _ in range(count):
        yield block


def a_hundred_megabytes_come_and_go():
    megabytes, digest = 100, hashlib.sha256()
    for block in big(megabytes):
        digest.update(block)
    connection = http.client.HTTPConnection("127.0.0.1", port())
    connection.request("PUT", url("/workspace/big"), big(megabytes),
                       token() | {"Content-Length": str(megabytes << 20)})
    response = connection.getresponse()
    assert response.status == 200, response.read()
    response.read()
    connection.request("GET", url("/workspace/big"), headers=token())
    response = connection.getresponse()
    got, size = hashlib.sha256(), 0
    assert response.headers["Content-Length"] == str(megabytes << 20)
    while piece := response.read(1 << 20):
        got.update(piece)
        size += len(piece)
    assert size == megabytes << 20 and got.digest() == digest.digest(), size
    # The same by a ticket.
    browser = Browser()
    where = browser.post("/console/ticket", {"sandbox": BOX, "path": "/workspace/big"}).json()["url"]
    reply = send("GET", where, None, {"Cookie": browser.cookie})
    assert reply.status == 200 and hashlib.sha256(reply.body).digest() == digest.digest()


def an_aborted_upload_leaves_nothing():
    put("/workspace/whole", b"whole")
    connection = http.client.HTTPConnection("127.0.0.1", port())
    connection.putrequest("PUT", url("/workspace/whole"))
    for name, value in (token() | {"Content-Length": "1000000"}).items():
        connection.putheader(name, value)
    connection.endheaders(b"part")
    connection.sock.close()
    connection.close()
    begin = time.monotonic()
    while True:
        left = api("FileService/List", {"sandboxId": BOX, "path": "/workspace"}).json()["entries"]
        if not [each for each in left if ".holt-" in each["path"]]:
            break
        assert time.monotonic() - begin < 300, left
        time.sleep(0.1)
    assert get("/workspace/whole").body == b"whole"


def a_directory_is_an_archive():
    run("mkdir -p /workspace/tree/sub; cd /workspace/tree; echo one >a; ln a b; ln -s a link; mkfifo pipe;"
        " chmod 750 sub; echo two >sub/c; n=$(printf %0120d 0); mkdir -p sub/$n/$n; echo long >sub/$n/$n/$n;"
        " head -c 3000000 /dev/zero >sub/large")
    reply = get("/workspace/tree")
    assert reply.status == 200 and reply.headers["Content-Type"] == "application/x-tar", (reply.status, reply.headers)
    assert reply.headers["Content-Disposition"].endswith("tree.tar"), reply.headers
    archive = tarfile.open(fileobj=io.BytesIO(reply.body))
    members = {each.name: each for each in archive.getmembers()}
    assert "tree/a" in members, list(members)
    assert archive.extractfile("tree/a").read() == b"one\n"
    assert members["tree/b"].islnk() or members["tree/a"].islnk(), "one is a link of the other"
    assert members["tree/link"].issym() and members["tree/link"].linkname == "a"
    assert members["tree/pipe"].isfifo() and members["tree/sub"].mode == 0o750
    assert members["tree/sub/large"].size == 3000000
    long = "/".join(["0" * 120] * 3)
    assert archive.extractfile("tree/sub/" + long).read() == b"long\n"


def ticket(browser, path="/workspace/secret"):
    reply = browser.post("/console/ticket", {"sandbox": BOX, "path": path})
    assert reply.status == 200, (reply.status, reply.body)
    return reply.json()["url"]


def a_ticket_is_for_one_download_of_one_session():
    put("/workspace/secret", b"words")
    browser, other = Browser(), Browser()
    where = ticket(browser)
    assert send("GET", where).status == 404, "without a cookie"
    assert send("GET", where, None, {"Cookie": other.cookie}).status == 404, "of another session"
    assert send("GET", where, None, {"Cookie": browser.cookie, "Sec-Fetch-Site": "same-site"}).status == 403
    assert send("GET", where, None, {"Cookie": browser.cookie, "Origin": "http://127.0.0.1:1"}).status == 403
    reply = send("GET", where, None, {"Cookie": browser.cookie, "Sec-Fetch-Site": "same-origin"})
    assert reply.status == 200 and reply.body == b"words", reply.status
    assert reply.headers["Content-Disposition"].startswith("attachment"), reply.headers
    assert reply.headers["X-Content-Type-Options"] == "nosniff" and "sandbox" in reply.headers["Content-Security-Policy"]
    assert send("GET", where, None, {"Cookie": browser.cookie}).status == 404, "used twice"
    where = ticket(browser)
    browser.post("/console/logout")
    assert send("GET", where, None, {"Cookie": browser.cookie}).status == 404, "after a logout"
    where = ticket(other)
    assert send("GET", where + "0", None, {"Cookie": other.cookie}).status == 404
    assert send("GET", "/console/download/", None, {"Cookie": other.cookie}).status == 404


def a_ticket_needs_the_whole_session():
    browser = Browser()
    wish = {"sandbox": BOX, "path": "/workspace/secret"}
    assert send("POST", "/console/ticket", wish, {"Cookie": browser.cookie}).status == 401
    assert send("POST", "/console/ticket", wish, {"X-Holt-Session": browser.key}).status == 401
    assert send("POST", "/console/ticket", wish, token()).status == 401
    for wrong in ({}, {"sandbox": BOX}, {"path": "/x"}, {"sandbox": BOX, "path": "/x", "more": 1}, {"sandbox": 1, "path": 2}):
        assert browser.post("/console/ticket", wrong).status == 400, wrong
    assert browser.post("/console/ticket", {"sandbox": "nobody", "path": "/x"}).status == 404
    ann = Browser({"token": api("TokenService/Create", {"owner": "ann", "role": "user"}).json()["secret"]})
    assert ann.post("/console/ticket", wish).status == 404, "the sandbox of another owner"


def a_ticket_takes_a_name_of_bytes():
    browser = Browser()
    assert put(b"/workspace/raw-\xff", b"bytes").status == 200
    raw = base64.b64encode(b"/workspace/raw-\xff").decode()
    reply = browser.post("/console/ticket", {"sandbox": BOX, "rawPath": raw})
    assert reply.status == 200, (reply.status, reply.body)
    got = send("GET", reply.json()["url"], None, {"Cookie": browser.cookie, "Sec-Fetch-Site": "same-origin"})
    assert got.status == 200 and got.body == b"bytes", got.status
    for wrong in ("", "?", base64.b64encode(b"/a\0b").decode(), base64.b64encode(b"/" + b"a" * 5000).decode()):
        assert browser.post("/console/ticket", {"sandbox": BOX, "rawPath": wrong}).status in (400, 429), wrong


def ends_early(path, headers, end):
    """Whether a download ends before its time when `end` is called after its first bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", port())
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    assert response.status == 200, response.read()
    size = int(response.headers["Content-Length"]) - len(response.read(1024))
    end()
    try:
        while piece := response.read(1 << 16):
            size -= len(piece)
    except (http.client.IncompleteRead, ConnectionError):
        return True
    return size > 0


def a_download_ends_with_its_token_or_session():
    run("head -c 200000000 /dev/zero >/workspace/long")
    made = api("TokenService/Create", {"owner": "root", "role": "user"}).json()
    assert ends_early(url("/workspace/long"), token(made["secret"]),
                      lambda: api("TokenService/Remove", {"id": made["token"]["id"]}))
    browser = Browser()
    where = ticket(browser, "/workspace/long")
    assert ends_early(where, {"Cookie": browser.cookie}, lambda: browser.post("/console/logout"))


def many_tickets_are_bounded():
    """A session's oldest tickets make room for its new ones, and never those of another."""
    browser, other = Browser(), Browser()
    kept = ticket(other)
    first = ticket(browser)
    last = [ticket(browser) for _ in range(100)][-1]
    assert send("GET", first, None, {"Cookie": browser.cookie}).status == 404
    assert send("GET", last, None, {"Cookie": browser.cookie}).status == 200
    assert send("GET", kept, None, {"Cookie": other.cookie}).status == 200


globals()[sys.argv[1]]()
