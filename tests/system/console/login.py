"""Logins and sessions of the console: what gives access, and what does not."""
import sys

from browser import Browser, api, main_token, send

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
    from browser import port
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


def save():
    Browser().save("kept")


def a_restart_keeps_sessions():
    assert Browser.load("kept").call("SandboxService/List").status == 200


def another_main_token_ends_its_sessions():
    assert Browser.load("kept").call("SandboxService/List").status == 401


globals()[sys.argv[1]]()
