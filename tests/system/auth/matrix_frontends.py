"""The claims of matrix_test about the multiplexed stream, plain files and the console: `matrix_frontends.py CLAIM`."""
import itertools, json, sys

import matrix_rows as rows
from matrix import Failures, World, compare, filled, has_none, unchanged
from matrix_world import METHODS, PORT, WORD, Outcome, equal, plain_error, state, unlike
from mux import Mux

ADDRESS = f"http://127.0.0.1:{PORT}"


def mux_open(*headers):
    mux = Mux(ADDRESS, headers=headers)
    mux.sock.settimeout(120)  # a call that should have been refused may not end
    return mux


def mux_with_token(client):
    return mux_open("Authorization: Bearer " + client.token)


def mux_with_session(client):
    """As a browser does it: the cookie with the handshake, the key in the first frame."""
    session = client.login()
    mux = mux_open("Cookie: " + session["headers"]["Cookie"])
    mux.send(key=session["key"])
    return mux


def mux_call(mux, method, request):
    """The outcome of a call; one that does not end by itself is cancelled after its first message."""
    channel = mux.open(method, request)
    if METHODS[method].is_upload:
        mux.send(id=channel, end=True)
    mux.read_until(lambda: mux.ends[channel] is not None or (method == "SandboxService/WatchStats" and mux.messages[channel]))
    if mux.ends[channel] is None:
        mux.send(id=channel, cancel=True)
        mux.sync()
    error = (mux.ends[channel] or {}).get("error")
    return Outcome(200, mux.messages[channel], plain_error(error) if error else None)


def nothing_of_another_owner_exists_in_a_multiplexed_stream():
    world, failures = World(), Failures()
    before = state(world["alice"])
    for name, connect in itertools.product(("bob", "bob-reads"), (mux_with_token, mux_with_session)):
        mux = connect(world[name])
        for method, row in rows.HOLT.items():
            rules = METHODS[method].rules
            if "admin" in rules:
                continue
            for template in rows.named(row):
                code = rows.code_of(method, template)
                if name == "bob-reads" and "read_only" not in rules:
                    code = "permission_denied"
                compare(world, failures, f"{name}, {connect.__name__}: {method}", template,
                        lambda request: mux_call(mux, method, request), code, kinds={"sandbox", "name", "stopped", "run"})
            if isinstance(row, rows.Lists):
                for request in row.requests:
                    has_none(json.dumps(mux_call(mux, method, request).messages), world.values, f"{name}: {method}", failures)
        mux.sock.close()
    equal("ok", mux_call(mux_with_session(world["alice"]), "FileService/Stat", filled(rows.FILE, world.values)).code)
    unchanged(world, before, "bob", failures)
    failures.end()


def nothing_of_another_owner_exists_as_a_plain_file():
    world, failures = World(), Failures()
    before = state(world["alice"])
    for name in ("bob", "bob-reads"):
        client = world[name]
        for headers in ({"Authorization": "Bearer " + client.token}, client.login()["headers"]):
            for verb, templates in rows.PLAIN.items():
                status = 403 if name == "bob-reads" and verb == "PUT" else 404
                for template in templates:
                    compare(world, failures, f"{name}: {verb} {sorted(headers)}", template, lambda path: client.e2b(
                        verb, path, {} if verb == "PUT" else None, {"X-API-KEY": None, **headers}), status)
    unchanged(world, before, "bob", failures)
    for verb, templates in rows.PLAIN.items():
        for path in filled(templates, world.values):
            for name in ("alice", "alice-reads") if verb == "PUT" else ("alice-reads", "alice"):
                outcome = world[name].e2b(verb, path, {} if verb == "PUT" else None, {
                    "X-API-KEY": None, "Authorization": "Bearer " + world[name].token})
                wanted = 403 if (name, verb) == ("alice-reads", "PUT") else 200
                if outcome.status != wanted or (verb == "GET" and WORD not in outcome.messages[0]):
                    failures.add(name, verb, path, f"gives no {wanted}:", outcome.text({}))
    world["alice"].must("FileService/Write", **filled(rows.FILE, world.values), data="a2VzdHJlbAo=")
    world["alice"].must("FileService/Remove", sandboxId=world.values["sandbox"], path="/workspace/new")
    failures.end()


def no_bundle_is_made_of_a_sandbox_of_another_owner():
    world, failures = World(), Failures()
    before = state(world["alice"])
    for name, wanted in (("bob", 404), ("bob-reads", 403), ("alice-reads", 403)):
        client = world[name]
        for headers in ({"Authorization": "Bearer " + client.token}, client.login()["headers"]):
            for path in filled([rows.BUNDLE, rows.BUNDLE + "&snapshot={snapshot}"], world.values):
                outcome = client.e2b("GET", path, None, {"X-API-KEY": None, **headers})
                if outcome.status != wanted:
                    failures.add(name, "GET", path, f"gives no {wanted}:", outcome.text({}))
    unchanged(world, before, "bob", failures)
    failures.end()


def nothing_of_another_owner_exists_in_the_console():
    world, failures = World(), Failures()
    before = state(world["alice"])
    sessions = {name: world[name].login()["headers"] for name in ("alice", "bob", "bob-reads")}

    def ask(name, route, body, more=""):
        verb, path = route.split()
        return world[name].e2b(verb, path + more, body, {"X-API-KEY": None, **sessions[name]})

    def ticket_of_alice():
        body = filled(rows.CONSOLE["POST /console/ticket"], world.values)
        got = ask("alice", "POST /console/ticket", body)
        equal(200, got.status, got.messages)
        return got.messages[0]["url"].rpartition("/")[2]

    for name in ("bob", "bob-reads"):
        for route, template in rows.CONSOLE.items():
            if route == "POST /console/ticket":
                compare(world, failures, f"{name}: {route}", template, lambda body: ask(name, route, body), 404)
            elif route == "GET /console/download/":
                ticket = ticket_of_alice()
                got, absent = (ask(name, route, None, each) for each in (ticket, unlike(ticket)))
                equal((404, absent.text({})), (got.status, got.text({})), name)
                equal((200, WORD + "\n"), (lambda own: (own.status, own.messages[0]))(ask("alice", route, None, ticket)))
            else:
                got = ask(name, route, filled(template, {"token": world[name].token}))
                equal(200, got.status, (name, route, got.messages))
                has_none(got.text({}), world.values, f"{name}: {route}", failures)
        equal(401, ask(name, "GET /console/session", None).status, "logged out")
    equal("alice", ask("alice", "GET /console/session", None).messages[0]["owner"])
    ids = {session["id"] for session in world["alice"].must("ConsoleService/ListSessions")["sessions"]}
    assert world.values["login"] in ids, ids
    unchanged(world, before, "bob", failures)
    failures.end()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
