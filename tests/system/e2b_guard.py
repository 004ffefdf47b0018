"""The claims of e2b_guard_test: `e2b_guard.py CLAIM`. The daemon is as e2b_control.py has it."""
import http.client, json, os, sys

from e2b_control import ask, create, detail, envd, equal, expect, holt, kill, main_token


def kept():
    return http.client.HTTPConnection("127.0.0.1", int(os.environ["port"]))


def ask_on(connection, verb, path, body=None, **headers):
    """The status of a request on a connection that stays."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(verb, path, None if body is None else json.dumps(body), named)
    response = connection.getresponse()
    response.read()
    return response.status


# --- keys --------------------------------------------------------------------------------------------

def a_key_that_was_revoked_is_refused_at_once():
    key = holt("token", "create", "--label", "revoked", "--e2b").strip()
    [id] = [each["id"] for each in json.loads(holt("token", "ls", "-o", "json")) if each.get("label") == "revoked"]
    connection = kept()
    equal(200, ask_on(connection, "GET", "/v2/sandboxes", X_API_KEY=key))
    socket = connection.sock
    equal(200, ask_on(connection, "GET", "/v2/sandboxes", X_API_KEY=key))
    assert connection.sock is socket, "the connection was not kept"
    holt("token", "rm", id)
    equal(401, ask_on(connection, "GET", "/v2/sandboxes", X_API_KEY=key))
    equal(401, ask_on(kept(), "POST", "/v2/sandboxes", {"templateID": "host"}, X_API_KEY=key))


def who_may_only_look_does_nothing():
    looker = holt("token", "create", "--read-only").strip()
    sandbox = create()
    path = "/sandboxes/" + sandbox["sandboxID"]
    built = expect(202, "POST", "/v3/templates", {"name": "guarded"})
    # Its address would be a leave to write.
    expect(403, "GET", f"/templates/{built['templateID']}/files/{'a' * 64}", key=looker)
    expect(201, "GET", f"/templates/{built['templateID']}/files/{'a' * 64}")
    for verb, where in (("POST", "/sandboxes"), ("POST", path + "/pause"), ("POST", path + "/fork"), ("PUT", path + "/network"),
                        ("POST", path + "/snapshots"), ("POST", "/v3/templates"), ("POST", "/volumes"), ("POST", "/secrets"),
                        ("DELETE", "/templates/guarded"), ("POST", path + "/timeout"), ("POST", path + "/refreshes")):
        expect(403, verb, where, {}, key=looker)
    equal(401, envd(sandbox, "POST", "/process.Process/List", token=looker)[0], "a key is no token of a sandbox")
    equal(401, envd(sandbox, "POST", "/process.Process/List", token=main_token())[0])
    shown = json.dumps([expect(200, "GET", each, key=looker) for each in (path, "/v2/sandboxes", "/sandboxes", "/teams", "/templates")])
    assert sandbox["envdAccessToken"] not in shown and main_token() not in shown, shown
    equal("running", detail(sandbox)["state"])
    kill(sandbox)


# --- what is counted ---------------------------------------------------------------------------------

def counted(method, code):
    page = ask("GET", "/metrics", key=None, Authorization="Bearer " + main_token())[2].decode()
    found = [line for line in page.splitlines() if line.startswith(f'holt_rpc_total{{method="{method}",code="{code}"}} ')]
    return int(found[0].split()[-1]) if found else 0


def requests_are_counted_by_what_they_ask():
    wanted = {
        ("e2b.control POST /v2/sandboxes", "ok"): 1,
        ("e2b.control POST /v2/sandboxes", "invalid_argument"): 1,
        ("e2b.control POST /v2/sandboxes", "unauthenticated"): 1,
        ("e2b.control GET /sandboxes/{}", "not_found"): 2,
        ("e2b.envd GET /health", "ok"): 1,
        ("e2b.envd POST /filesystem.Filesystem/Stat", "not_found"): 1,
        ("e2b.port * /*", "unavailable"): 1,
    }
    before = {each: counted(*each) for each in wanted}
    sandbox = create()
    expect(400, "POST", "/v2/sandboxes", {})
    expect(401, "POST", "/v2/sandboxes", {}, key="wrong")
    for id in ("nosuch", 'a"}\n'):
        expect(404, "GET", "/sandboxes/" + id.replace('"', "%22").replace("\n", "%0a"))
    equal(204, envd(sandbox)[0])
    status, _, body = ask("POST", "/filesystem.Filesystem/Stat", {"path": "/nosuch"}, None, E2b_Sandbox_Id=sandbox["sandboxID"],
                          X_Access_Token=sandbox["envdAccessToken"])
    equal((404, "not_found"), (status, body["code"]))
    equal(502, ask("GET", "/", None, None, E2b_Sandbox_Id=sandbox["sandboxID"], E2b_Sandbox_Port="3000")[0])
    kill(sandbox)
    equal({each: before[each] + wanted[each] for each in wanted}, {each: counted(*each) for each in wanted})
    page = ask("GET", "/metrics", key=None, Authorization="Bearer " + main_token())[2].decode()
    assert 'holt_rpc_duration_seconds_count{method="e2b.control POST /v2/sandboxes"}' in page
    assert "nosuch" not in page


# --- connections -------------------------------------------------------------------------------------

def one_client_may_have_many_connections():
    """As many as E2B's client has in one process: 100 for its API, 200 for commands, 10 for files."""
    sandbox = create()
    connections = [kept() for _ in range(310)]
    sockets = []
    for _ in range(2):
        for each in connections:
            equal(204, ask_on(each, "GET", "/health", E2b_Sandbox_Id=sandbox["sandboxID"],
                              X_Access_Token=sandbox["envdAccessToken"]))
        sockets.append([each.sock for each in connections])
    assert all(a is b for a, b in zip(*sockets)), "some were cut"
    for each in connections:
        each.close()
    kill(sandbox)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
