"""Previews of ports: what the link and the cookie open, and how they end."""
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import urllib.parse

ID, TWIN, PORT = os.environ["id"], os.environ["twin"], int(os.environ["port"])
IS_TLS = False


class Reply:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.text = response.read().decode("latin1")


def ask(host, path="/", verb="GET", body=None, **headers):
    """One request to the daemon under a host name."""
    if IS_TLS:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", PORT, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", PORT)
    try:
        connection.putrequest(verb, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {"Host": host, **headers}.items():
            connection.putheader(name.replace("_", "-"), value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
            connection.putheader("Content-Type", "application/json")
        connection.endheaders(body)
        return Reply(connection.getresponse())
    finally:
        connection.close()


def call(method, message=None, token=None, **headers):
    with open(os.environ["state"] + "/token", encoding="ascii") as file:
        token = token or file.read().strip()
    if not headers:
        headers = {"Authorization": "Bearer " + token}
    reply = ask("127.0.0.1", "/holt.v1." + method, "POST", json.dumps(message or {}).encode(), **headers)
    return reply.status, json.loads(reply.text)


def made(method, message=None, **more):
    status, reply = call(method, message, **more)
    assert status == 200, (method, status, reply)
    return reply


def equal(wanted, got):
    assert wanted == got, f"wanted {wanted!r}, got {got!r}"


def link(sandbox=ID, port=8000, **more):
    """Host and path of a new link."""
    url = urllib.parse.urlsplit(made("PortService/Preview", {"sandboxId": sandbox, "port": port}, **more)["url"])
    return url.netloc, f"{url.path}?{url.query}"


def login(sandbox=ID, port=8000, **more):
    """The host and the cookie of a new preview."""
    host, path = link(sandbox, port, **more)
    reply = ask(host, path)
    equal(303, reply.status)
    return host, reply.headers["Set-Cookie"].split(";")[0]


def opens(host, cookie):
    return ask(host, "/", Cookie=cookie).status


def a_server_is_there():
    for sandbox in (ID, TWIN):
        host, cookie = login(sandbox)
        equal(200, opens(host, cookie))


def a_link_becomes_a_cookie_once():
    host, path = link()
    equal(f"8000-{ID.replace('-', '')}.localhost:{PORT}", host)
    equal(403, ask(host, "/").status)
    equal(403, ask(host, path, "HEAD").status)
    reply = ask(host, f"//evil.test/a?x=1&{path[2:]}&y=2")
    equal(303, reply.status)
    equal("/evil.test/a?x=1&y=2", reply.headers["Location"])
    equal("no-referrer", reply.headers["Referrer-Policy"])
    cookie = reply.headers["Set-Cookie"]
    assert re.fullmatch(r"holt-preview=[0-9a-f]{64}; Path=/; Max-Age=28800; HttpOnly; SameSite=Lax", cookie), cookie
    cookie = cookie.split(";")[0]
    assert cookie.split("=")[1] not in path
    equal(200, opens(host, cookie))
    equal(403, ask(host, path).status)  # a second browser
    again = ask(host, path, Cookie=cookie)  # the same one
    equal((303, "/", None), (again.status, again.headers["Location"], again.headers["Set-Cookie"]))
    equal(403, ask(host, "/?holt-preview=" + "0" * 64).status)
    equal(403, ask(host, "/?holt-preview=").status)


def a_link_is_for_its_port_and_sandbox():
    host, path = link()
    for other in (host.replace("8000", "8001", 1), host.replace(ID.replace("-", ""), TWIN.replace("-", ""))):
        host, path = link()
        equal(403, ask(other, path).status)
        equal(403, ask(host, path).status)  # the attempt has used it up
    status, reply = call("PortService/Preview", {"sandboxId": "nobody", "port": 8000})
    equal((404, "not_found"), (status, reply["code"]))


def a_cookie_opens_its_port_and_nothing_else():
    host, cookie = login()
    value = cookie.split("=")[1]
    equal(200, opens(host, cookie))
    for other in (host.replace("8000", "8001", 1), host.replace(ID.replace("-", ""), TWIN.replace("-", ""))):
        equal(403, opens(other, cookie))
        equal(403, ask(other, "/", Holt_Token=value).status)
    equal(403, ask(host, "/", Cookie="__Host-" + cookie).status)
    equal(403, ask(host, "/", Cookie="holt-token=" + value).status)
    for headers in ({"Authorization": "Bearer " + value}, {"Cookie": cookie, "X_Holt_Session": value},
                    {"Cookie": "holt_session=" + value, "X_Holt_Session": value}, {"X_API_Key": value}):
        equal(401, call("SandboxService/List", **headers)[0])
    _, path = link()
    code = path.split("=")[1]
    equal(401, ask("127.0.0.1", "/console/login", "POST", json.dumps({"code": code}).encode()).status)


def a_program_sees_and_sets_none_of_it():
    host, cookie = login()
    reply = ask(host, "/?a=b", Cookie=f"first=1; {cookie}; last=2", Authorization="Basic own")
    equal(200, reply.status)
    assert cookie.split("=")[1] not in reply.text and "preview" not in reply.text, reply.text
    assert "Cookie: first=1; last=2" in reply.text and "Basic own" in reply.text, reply.text
    equal(["own=planted; Path=/"], reply.headers.get_all("Set-Cookie"))


def a_planted_cookie_does_no_harm():
    """A page of a sibling can add cookies of the same name: the right one still counts."""
    host, cookie = login()
    _, other = login(TWIN)
    for cookies in (f"holt-preview=x; {cookie}", f"{cookie}; holt-preview=x", f"{other}; {cookie}"):
        equal(200, opens(host, cookies))
    equal(403, opens(host, other))


def it_ends_with_its_token():
    token = made("TokenService/Create", {"role": "user"})
    host, cookie = login(token=token["secret"])
    host, path = link(token=token["secret"])
    equal(200, opens(host, cookie))
    made("TokenService/Remove", {"id": token["token"]["id"]})
    equal(403, opens(host, cookie))
    equal(403, ask(host, path).status)


def it_ends_with_its_session():
    with open(os.environ["state"] + "/token", encoding="ascii") as file:
        token = file.read().strip()
    reply = ask("127.0.0.1", "/console/login", "POST", json.dumps({"token": token}).encode())
    session = json.loads(reply.text)
    headers = {"Cookie": reply.headers["Set-Cookie"].split(";")[0], "X_Holt_Session": session["key"]}
    status, made_by = call("PortService/Preview", {"sandboxId": ID, "port": 8000}, **headers)
    equal(200, status)
    host, path = link()
    reply = ask(host, "/?holt-preview=" + made_by["code"])
    cookie = reply.headers["Set-Cookie"].split(";")[0]
    equal(200, opens(host, cookie))
    _, kept = login()
    status, later = call("PortService/Preview", {"sandboxId": ID, "port": 8000}, **headers)
    equal(200, status)
    equal(200, ask("127.0.0.1", "/console/logout", "POST", b"{}", **headers).status)
    equal(403, opens(host, cookie))
    equal(403, ask(host, "/?holt-preview=" + later["code"]).status)
    equal(200, opens(host, kept))


def previews():
    return {each["id"] for each in made("ConsoleService/ListSessions")["sessions"] if each.get("sandboxId") == ID}


def it_is_listed_and_revoked():
    before = previews()
    host, cookie = login()
    (new,) = previews() - before
    equal(200, opens(host, cookie))
    text = subprocess.run(["holt", "console", "ls"], check=True, capture_output=True, text=True).stdout
    assert f"preview of {ID}:8000" in text, text
    subprocess.run(["holt", "console", "revoke", new], check=True)
    equal(403, opens(host, cookie))


def a_link_of_one_owner_is_worth_nothing_for_another():
    ann = made("TokenService/Create", {"owner": "ann", "role": "user"})["secret"]
    reader = made("TokenService/Create", {"role": "read-only"})["secret"]
    red = made("TokenService/Create", {"role": "user", "scope": {"team": "red"}})["secret"]
    for token in (ann, red):
        equal(404, call("PortService/Preview", {"sandboxId": ID, "port": 8000}, token=token)[0])
    equal(403, call("PortService/Preview", {"sandboxId": ID, "port": 8000}, token=reader)[0])
    own = made("SandboxService/Create", {}, token=ann)["sandbox"]["id"]
    host, cookie = login(own, token=ann)
    mine, _ = link()
    equal(502, opens(host, cookie))  # nothing listens there
    equal(403, opens(mine, cookie))
    _, path = link(own, token=ann)
    equal(403, ask(mine, path).status)
    subprocess.run(["holt", "rm", "-f", own], check=True)


def websocket_cookie():
    print(login(port=8002)[1])


def save():
    host, cookie = login()
    _, path = link()
    with open(os.environ["tmp"] + "/saved", "w", encoding="ascii") as file:
        json.dump([cookie, path], file)
    for name in ("holt.db", "holt.db-wal", "audit.log"):
        try:
            with open(f"{os.environ['state']}/{name}", "rb") as file:
                assert cookie.split("=")[1].encode() not in file.read(), name
        except FileNotFoundError:
            pass


def a_restart_keeps_the_cookie_and_forgets_the_link():
    with open(os.environ["tmp"] + "/saved", encoding="ascii") as file:
        cookie, path = json.load(file)
    host, _ = link()
    equal(200, opens(host, cookie))
    equal(403, ask(host, path).status)


def a_preview_needs_no_console():
    equal(404, ask("127.0.0.1", "/console/session").status)
    host, cookie = login()
    equal(200, opens(host, cookie))
    assert previews()


def it_ends_with_the_sandbox():
    host, cookie = login(TWIN)
    equal(200, opens(host, cookie))
    subprocess.run(["holt", "rm", "-f", TWIN], check=True)
    equal(502, opens(host, cookie))


def a_proxy_with_tls_gets_a_secure_cookie():
    host, path = link()
    equal(f"8000-{ID.replace('-', '')}.preview.test", host)
    cookie = ask(host, path).headers["Set-Cookie"]
    assert re.fullmatch(r"__Host-holt-preview=[0-9a-f]{64}; Path=/; Max-Age=28800; HttpOnly; SameSite=Lax; Secure", cookie), cookie
    equal(200, opens(host, cookie.split(";")[0]))
    equal(403, opens(host, cookie.split(";")[0].replace("__Host-", "")))


def ports_are_served_below_the_domain_only():
    name = ID.replace("-", "")
    token = made("TokenService/Create", {"portsOf": ID})["secret"]
    for domain, status in (("preview.test", 200), ("preview.test:1234", 200), ("localhost", 200), ("holt.test", 403), ("test", 403),
                           ("other.test", 403), ("x.preview.test", 403)):
        equal((domain, status), (domain, ask(f"8000-{name}.{domain}", "/", Holt_Token=token).status))
    equal(200, ask("holt.test", "/").status)
    for host in ("preview.test", "x.preview.test", "api.preview.test", "test", f"{name}.preview.test"):
        for path in ("/", "/console/session", "/holt.v1.SandboxService/List", "/healthz"):
            equal((host, path, 403), (host, path, ask(host, path, "POST" if "holt" in path else "GET").status))
    equal(f"<port>-{name[:2]}", made("SandboxService/Create", {"name": "addressed"})["address"][:9])


def over_tls_the_cookie_is_bound_to_the_host():
    host, path = link()
    equal(f"8000-{ID.replace('-', '')}.preview.test:{PORT}", host)
    cookie = ask(host, path).headers["Set-Cookie"]
    assert cookie.startswith("__Host-holt-preview=") and cookie.endswith("; Secure") and "Domain" not in cookie, cookie
    equal(200, opens(host, cookie.split(";")[0]))
    equal(403, ask(host, path).status)


IS_TLS = sys.argv[1].startswith("over_tls")
globals()[sys.argv[1]]()
