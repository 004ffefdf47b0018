"""The positive control of matrix_test: `matrix_control.py CLAIM`.

A request that is malformed, or that names nothing, fails for every caller, and so proves nothing about other owners. The owner
itself makes every request of the matrix here: none may fail as malformed, and none may miss the object that it names."""
import sys

import matrix_rows as rows
from matrix import Failures, World, filled, tool_code
from matrix_world import METHODS, shell

# These end or remove what others need: they come last, in this order.
LAST = ["FileService/Move", "FileService/Remove", "ShellService/Remove", "NetworkService/Learn", "NetworkService/Set",
        "SnapshotService/Rollback", "SnapshotService/Remove", "SandboxService/Pause", "SandboxService/Resume", "SandboxService/Stop",
        "SandboxService/Start", "TemplateService/Remove", "VolumeService/Remove", "SecretService/Remove", "BackupService/Remove", "TokenService/Remove", "ConsoleService/RevokeSession",
        "SandboxService/Destroy"]
E2B_LAST = ["POST /sandboxes/{}/pause", "POST /sandboxes/{}/resume", "DELETE /secrets/{}", "DELETE /volumecontent/{}/path",
            "DELETE /volumes/{}", "DELETE /templates/tags", "DELETE /templates/*", "DELETE /templates/{}", "DELETE /sandboxes/{}"]
TOOLS_LAST = ["process_kill", "rollback"]


def in_order(names, last):
    return [name for name in names if name not in last] + last


def secret_write(world):
    """The file that rows name, which some of them move or remove."""
    world["alice"].must("FileService/Write", sandboxId=world.values["sandbox"], path="/workspace/secret", data="a2VzdHJlbAo=")


def every_holt_v1_row_works_for_its_owner():
    world, failures = World(), Failures()
    alice, is_running = world["alice"], True
    world.values["process"] = alice.must("ProcessService/Start", sandboxId=world.values["sandbox"], process={
        **shell("trap '' USR1; exec cat"), "stdin": True, "terminal": {"rows": 24, "columns": 80}})["process"]["id"]
    for method in in_order(rows.HOLT, LAST):
        row = rows.HOLT[method]
        is_running = is_running and method not in LAST[LAST.index("SandboxService/Pause"):]
        if isinstance(row, rows.Host) or "admin" in METHODS[method].rules:
            continue
        for template in rows.requests(row):
            if is_running:
                secret_write(world)
            options = {"limit": 1, "seconds": 5} if METHODS[method].is_stream else {}
            outcome = alice.call(method, filled(template, {**world.values, **world.own["alice"]}), **options)
            accepted = rows.CONTROL.get(method, {"ok"})
            if outcome.code not in accepted and (outcome.error or {}).get("message") not in accepted:
                failures.add(method, template, outcome.text({}))
    failures.end()


def every_e2b_row_works_for_its_owner():
    world, failures = World(), Failures()
    values = {**world.values, "volume_token": world.values["volume_secret"]}
    for route in in_order(rows.E2B, E2B_LAST):
        is_gone = False
        for template in rows.requests(rows.E2B[route]):
            outcome = world["alice"].e2b(route.split()[0], *filled(template, values))
            if not 200 <= outcome.status < 300 and outcome.status not in rows.CONTROL.get(route, ()) and not is_gone:
                failures.add(route, template, outcome.text({}))
            # A removal ends what the other names of the same object stand for; a GET with these names has come before.
            is_gone = route.startswith("DELETE ")
    failures.end()


def every_envd_row_reaches_its_sandbox():
    """With the secret of the sandbox, a request is refused at most as malformed."""
    world, failures = World(), Failures()
    for route, (path, body) in rows.ENVD.items():
        outcome = world["alice"].e2b(route.split()[0], path, body, {"E2b-Sandbox-Id": world.values["e2b"], "E2b-Sandbox-Port": "49983",
                                                                    "X-Access-Token": world.values["access"]})
        if outcome.status in (401, 403, 502):
            failures.add(route, outcome.text({}))
    failures.end()


def every_tool_works_for_its_owner():
    world, failures = World(), Failures()
    alice, at = world["alice"], {"sandboxId": world.values["sandbox"]}
    alice.must("ProcessService/Exec", **at, process=shell(
        "cd /workspace && git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"))
    for tool in in_order(rows.TOOLS, TOOLS_LAST):
        secret_write(world)
        given = {**filled(rows.TOOLS[tool], world.values), **({} if tool in rows.WITHOUT_SANDBOX else {"sandbox": world.values["sandbox"]})}
        outcome = alice.tool(tool, given)
        if tool_code(outcome) != "ok" and tool not in rows.CONTROL:
            failures.add("tool", tool, outcome.text({}))
    failures.end()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
