"""Logins and sessions of the console: what gives access, and what does not."""
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import time

from browser import Browser, api, main_token, port, send



def holt(*words, **environment):
    return subprocess.run(["holt", *words], env=os.environ | environment, check=True, capture_output=True,
                          text=True).stdout


LIST = "/holt.v1.SandboxService/List"


def a_token_logs_in():
    browser = Browser()
    session = browser.session
    assert (session["owner"], session["role"]) == ("root", "admin"), session
    for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert part in browser.set_cookie, browser.set_cookie
    assert browser.cookie.startswith("holt_session="), browser.cookie
    reply = browser.call("SandboxService/List")
    assert reply.status == 200, reply.body
    reply = browser.get("/console/session")
    assert reply.status == 200 and "key" not in reply.json(), reply.body
    assert reply.json()["expires"] == session["expires"]


def a_wrong_token_does_not():
    for secret in ({"token": "0" * 64}, {"token": ""}, {"code": "0" * 64}):
        reply = send("POST", "/console/login", secret)
        assert reply.status == 401 and "Set-Cookie" not in reply.headers, (reply.status, reply.body)
    for wrong in ({}, {"token": main_token(), "code": "1"}, {"token": 7}, {"other": "1"}, b"{", b"[]"):
        reply = send("POST", "/console/login", wrong)
        assert reply.status == 400, (wrong, reply.status, reply.body)


def neither_cookie_nor_header_alone_gives_access():
    browser, other = Browser(), Browser()
    for headers in (
            {"Cookie": browser.cookie},
            {"X-Holt-Session": browser.key},
            {"Cookie": browser.cookie, "X-Holt-Session": other.key},
            {"Cookie": browser.cookie, "X-Holt-Session": ""},
            {"Cookie": browser.cookie, "X-Holt-Session": browser.cookie.split("=")[1]},
            {"Cookie": "holt_session=" + browser.key, "X-Holt-Session": browser.key},
            {"Cookie": browser.cookie, "Authorization": "Bearer " + browser.key},
            {"Cookie": browser.cookie, "Authorization": "Bearer " + browser.cookie.split("=")[1]}):
        for verb, path in (("POST", LIST), ("GET", "/console/session")):
            reply = send(verb, path, {} if verb == "POST" else None, headers)
            assert reply.status == 401, (path, headers, reply.status)
    assert browser.call("SandboxService/List").status == 200


def a_cookie_of_another_port_does_no_harm():
    """A page of another port can add cookies of the same name: the right one still counts."""
    browser = Browser()
    for cookie in ("holt_session=x; " + browser.cookie, browser.cookie + "; holt_session=x"):
        reply = send("POST", LIST, {}, {"Cookie": cookie, "X-Holt-Session": browser.key})
        assert reply.status == 200, reply.body


def a_logout_ends_the_session_and_no_other():
    browser, other = Browser(), Browser()
    reply = browser.post("/console/logout")
    assert reply.status == 200 and "Max-Age=0" in reply.headers["Set-Cookie"], reply.headers
    assert browser.call("SandboxService/List").status == 401
    assert browser.get("/console/session").status == 401
    assert other.call("SandboxService/List").status == 200


def a_session_ends_with_its_token():
    made = api("TokenService/Create", {"owner": "ann", "role": "user"}).json()
    browser = Browser({"token": made["secret"]})
    assert (browser.session["owner"], browser.session["role"]) == ("ann", "user")
    assert browser.call("SandboxService/List").status == 200
    assert api("TokenService/Remove", {"id": made["token"]["id"]}).status == 200
    assert browser.call("SandboxService/List").status == 401
    assert browser.get("/console/session").status == 401


def a_reader_changes_nothing():
    made = api("TokenService/Create", {"role": "read-only"}).json()
    browser = Browser({"token": made["secret"]})
    assert browser.session["role"] == "reader"
    assert browser.call("SandboxService/List").status == 200
    reply = browser.call("SandboxService/Create", {"template": "host"})
    assert reply.status == 403, (reply.status, reply.body)


def another_origin_is_refused():
    browser = Browser()
    for origin in ("http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1", "null",
                   "http://127.0.0.1", "http://3000-abc.localhost"):
        assert browser.post(LIST, Origin=origin).status == 403, origin
        assert browser.post("/console/logout", Origin=origin).status == 403, origin
    own = f"http://127.0.0.1:{port()}"
    assert browser.post(LIST, Origin=own).status == 200


def a_login_of_another_site_is_refused():
    """Login CSRF: a page logs the browser in to the account of its author."""
    secret = {"token": main_token()}
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                    {"Sec-Fetch-Site": "same-site"}):
        reply = send("POST", "/console/login", secret, headers)
        assert reply.status == 403 and "Set-Cookie" not in reply.headers, (headers, reply.status)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        reply = send("POST", "/console/login", secret, {"Content-Type": kind})
        assert reply.status == 415 and "Set-Cookie" not in reply.headers, (kind, reply.status)
    assert send("GET", "/console/login?token=" + main_token()).status == 404
    assert send("POST", "/console/login", secret, {"Host": "rebound.example"}).status == 403


def sessions_do_not_count_elsewhere():
    """MCP and E2B take tokens only: their own state belongs to a token."""
    browser = Browser()
    for path in ("/mcp", "/metrics"):
        reply = browser.post(path) if path == "/mcp" else browser.get(path)
        assert reply.status == 401, (path, reply.status)
    assert browser.get("/sandboxes").status == 401


def code():
    reply = api("ConsoleService/CreateLogin")
    assert reply.status == 200, reply.body
    return reply.json()


def a_code_logs_in_once():
    made = code()
    assert made["url"] == f"http://127.0.0.1:{port()}/#login={made['code']}", made
    browser = Browser({"code": made["code"]})
    assert browser.session["role"] == "admin" and browser.call("SandboxService/List").status == 200
    reply = send("POST", "/console/login", {"code": made["code"]})
    assert reply.status == 401 and "Set-Cookie" not in reply.headers, reply.status


def a_look_at_a_code_names_its_maker_and_uses_nothing():
    made = api("TokenService/Create", {"owner": "ann", "role": "read-only"}).json()
    secret = {"code": api("ConsoleService/CreateLogin", token=made["secret"]).json()["code"]}
    for _ in range(2):
        reply = send("POST", "/console/login/look", secret)
        assert reply.status == 200 and reply.json() == {"owner": "ann", "role": "reader"}, reply.body
        assert "Set-Cookie" not in reply.headers
    assert send("POST", "/console/login/look", secret, {"Sec-Fetch-Site": "cross-site"}).status == 403
    assert Browser(secret).session["owner"] == "ann"
    assert send("POST", "/console/login/look", secret).status == 401


def a_code_is_for_its_maker():
    made = api("TokenService/Create", {"owner": "ann", "role": "read-only", "scope": {"team": "red"}}).json()
    first = api("ConsoleService/CreateLogin", token=made["secret"]).json()["code"]
    second = api("ConsoleService/CreateLogin", token=made["secret"]).json()["code"]
    browser = Browser({"code": first})
    assert (browser.session["owner"], browser.session["role"]) == ("ann", "reader")
    assert browser.call("SandboxService/Create").status == 403
    api("TokenService/Remove", {"id": made["token"]["id"]})
    assert browser.call("SandboxService/List").status == 401
    assert send("POST", "/console/login", {"code": second}).status == 401


def a_session_makes_no_logins():
    assert Browser().call("ConsoleService/CreateLogin").status == 403


def sessions_are_listed_and_revoked():
    made = api("TokenService/Create", {"owner": "bob", "role": "user"}).json()
    root, bob = Browser(), Browser({"token": made["secret"]})
    ids = {each["id"]: each for each in api("ConsoleService/ListSessions").json()["sessions"]}
    assert root.session["id"] in ids and bob.session["id"] in ids
    listed = ids[bob.session["id"]]
    assert (listed["owner"], listed["tokenId"], listed["address"]) == ("bob", made["token"]["id"], "127.0.0.1")
    assert not any(word in str(ids) for word in (root.key, bob.key, root.cookie, bob.cookie))
    own = [each["id"] for each in bob.call("ConsoleService/ListSessions").json()["sessions"]]
    assert own == [bob.session["id"]], own
    assert bob.call("ConsoleService/RevokeSession", {"id": root.session["id"]}).status == 404
    assert root.call("SandboxService/List").status == 200
    assert root.call("ConsoleService/RevokeSession", {"id": bob.session["id"]}).status == 200
    assert bob.call("SandboxService/List").status == 401
    assert api("ConsoleService/RevokeSession", {"id": bob.session["id"]}).status == 404


def streams_of_a_revoked_session_end():
    browser = Browser()
    connection = http.client.HTTPConnection("127.0.0.1", port(), timeout=120)
    connection.request("POST", "/holt.v1.EventService/Watch", b"\0\0\0\0\2{}",
                       browser.headers(**{"Content-Type": "application/connect+json"}))
    response = connection.getresponse()
    assert response.status == 200
    api("ConsoleService/RevokeSession", {"id": browser.session["id"]})
    rest = response.read()  # to its end
    assert b"unauthenticated" in rest and b"the session was removed" in rest, rest[-500:]


def the_command_line_makes_lists_and_ends_logins():
    link = holt("console").strip()
    prefix = f"http://127.0.0.1:{port()}/#login="
    assert link.startswith(prefix), link
    browser = Browser({"code": link.removeprefix(prefix)})
    assert browser.session["id"] in holt("console", "ls", "-q").split()
    assert browser.session["owner"] == "root"
    holt("console", "revoke", browser.session["id"])
    assert browser.session["id"] not in holt("console", "ls")
    assert browser.call("SandboxService/List").status == 401


def a_browser_is_opened_without_the_code_in_its_arguments():
    folder = os.environ["tmp"] + "/bin"
    os.mkdir(folder)
    with open(folder + "/xdg-open", "w", encoding="ascii") as file:
        file.write('#!/bin/sh\necho "$1" >$tmp/opened; cat "$1" >$tmp/page; stat -c %a "$1" >$tmp/mode\n')
    os.chmod(folder + "/xdg-open", 0o755)
    assert holt("console", "--open", PATH=folder + ":" + os.environ["PATH"], XDG_RUNTIME_DIR=os.environ["tmp"]) == ""
    opened, page, mode = (open(os.environ["tmp"] + "/" + name, encoding="ascii").read().strip()
                          for name in ("opened", "page", "mode"))
    assert mode == "600" and opened.endswith(".html") and not os.path.exists(opened), (mode, opened)
    Browser({"code": re.search(r"#login=([0-9a-f]{64})\"", page)[1]})


def end_of(session):
    """The line of the audit log with the end of a session, which comes within seconds."""
    begin = time.monotonic()
    while True:
        lines = [json.loads(line) for line in holt("audit", "-o", "json").splitlines() if session in line]
        ends = [each for each in lines if each["event"] == "console-end"]
        if ends:
            assert len(ends) == 1, ends
            return ends[0]
        assert time.monotonic() - begin < 300, lines
        time.sleep(0.2)


def every_end_is_in_the_audit_log():
    made = api("TokenService/Create", {"owner": "eve", "role": "user"}).json()
    first, second = Browser({"token": made["secret"]}), Browser({"token": made["secret"]})
    admin = Browser()
    admin.call("ConsoleService/RevokeSession", {"id": first.session["id"]})
    line = end_of(first.session["id"])
    assert (line["reason"], line["owner"]) == ("revoked", "eve"), line
    assert line["bySession"] == admin.session["id"], line
    api("TokenService/Remove", {"id": made["token"]["id"]})
    assert end_of(second.session["id"])["reason"] == "token"
    made = api("TokenService/Create", {"owner": "joe", "role": "user"}).json()
    oldest = Browser({"token": made["secret"]})
    for _ in range(64):
        Browser({"token": made["secret"]})
    assert end_of(oldest.session["id"])["reason"] == "limit"


def logins_are_in_the_audit_log_and_secrets_nowhere():
    made = code()
    browser = Browser({"code": made["code"]})
    browser.call("ConsoleService/ListSessions")
    browser.post("/console/logout")
    lines = holt("audit", "-o", "json")
    ended = [json.loads(line) for line in lines.splitlines() if browser.session["id"] in line]
    kinds = [each["event"] for each in ended]
    assert kinds[:2] == ["console-login", "console-end"], ended
    secrets = (made["code"], browser.key, browser.cookie.split("=")[1])
    for folder in (os.environ["state"], os.environ["tmp"] + "/holtd.log"):
        for secret in secrets:
            found = subprocess.run(["grep", "-rl", "--", secret, folder], capture_output=True, text=True, check=False)
            assert found.stdout == "", (folder, found.stdout)


def failed_logins_are_throttled():
    """The last claim of a daemon: this address has to wait afterwards."""
    for _ in range(20):
        reply = send("POST", "/console/login", {"code": "0" * 64})
        assert reply.status in (401, 429), reply.status
        if reply.status == 429:
            break
    assert reply.status == 429, reply.status
    reply = send("POST", "/console/login", {"token": main_token()})
    assert reply.status == 429 and "try again in" in reply.json()["message"], (reply.status, reply.body)


def save():
    Browser().save("kept")


def a_restart_keeps_sessions():
    assert Browser.load("kept").call("SandboxService/List").status == 200


def a_session_expires():
    """With --console-ttl 2s."""
    begin = time.monotonic()
    while (browser := Browser()).call("SandboxService/List").status != 200:  # a busy machine may take longer than that
        assert time.monotonic() - begin < 300
    while browser.call("SandboxService/List").status != 401:
        assert time.monotonic() - begin < 300
        time.sleep(0.1)
    assert end_of(browser.session["id"])["reason"] == "expired"
    ids = [each["id"] for each in api("ConsoleService/ListSessions").json().get("sessions", [])]
    assert browser.session["id"] not in ids, ids


def a_console_that_is_off_does_not_exist():
    for verb, path in (("GET", "/"), ("GET", "/index.html"), ("POST", "/console/login"), ("GET", "/console/session"),
                       ("GET", "/console/download/x"), ("GET", "/console"), ("POST", "/console/ticket")):
        assert send(verb, path, {"token": main_token()} if verb == "POST" else None).status == 404, path
    assert api("ConsoleService/CreateLogin").status == 501
    kept = Browser.load("kept")
    assert kept.call("SandboxService/List").status == 401


def sessions_do_not_come_back_with_the_console():
    kept = Browser.load("kept")
    assert kept.call("SandboxService/List").status == 401
    assert end_of(kept.session["id"])["reason"] == "console-off"


def over_tls_the_cookie_is_bound_to_the_host():
    context = ssl.create_default_context(cafile=os.environ["tmp"] + "/tls.crt")
    cookies = {}

    def ask(verb, path, body=None, headers=None):
        connection = http.client.HTTPSConnection("localhost", port(), context=context)
        connection.request(verb, path, json.dumps(body) if body is not None else None,
                           {"Content-Type": "application/json"} | (headers or {}))
        response = connection.getresponse()
        return response.status, response.headers, response.read()

    status, headers, body = ask("POST", "/console/login", {"token": main_token()},
                                {"Origin": f"https://localhost:{port()}"})
    assert status == 200, body
    cookie, key = headers["Set-Cookie"], json.loads(body)["key"]
    assert cookie.startswith("__Host-holt_session=") and "Secure" in cookie and "Path=/" in cookie, cookie
    assert "Domain" not in cookie
    value = cookie.split(";")[0].split("=")[1]
    for name, wanted in (("__Host-holt_session", 200), ("holt_session", 401)):
        cookies = {"Cookie": f"{name}={value}", "X-Holt-Session": key}
        assert ask("POST", LIST, {}, cookies)[0] == wanted, name
    assert ask("POST", LIST, {}, cookies | {"Origin": f"http://localhost:{port()}"})[0] == 403
    link = holt("console").strip()
    assert link.startswith(f"https://localhost:{port()}/#login="), link


def a_proxy_with_tls_gets_a_secure_cookie():
    """With --listen-origins https://holt.example and --listen-hosts holt.example."""
    reply = send("POST", "/console/login", {"token": main_token()},
                 {"Host": "holt.example", "Origin": "https://holt.example"})
    cookie = reply.headers["Set-Cookie"]
    assert reply.status == 200 and cookie.startswith("__Host-holt_session=") and "Secure" in cookie, reply.headers
    headers = {"Cookie": cookie.split(";")[0], "X-Holt-Session": reply.json()["key"], "Host": "holt.example",
               "Origin": "https://holt.example"}
    assert send("POST", LIST, {}, headers).status == 200


def another_main_token_ends_its_sessions():
    assert Browser.load("kept").call("SandboxService/List").status == 401


globals()[sys.argv[1]]()
