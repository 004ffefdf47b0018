"""The claims of tasks_test: `tasks.py CLAIM`. The daemon is at $HOLT_HOST; there is a sandbox named work."""
import concurrent.futures, json, os, sys

from api import Connection
from mcp import bridge, equal, error_of, eventually, lines
from stateless import META, PARAMS, TASKS, ask, envelope, request, result_of, run, text_of, tool

THREADS = 128  # calls without a client that the daemon executes at the same time


def begin(name, arguments, connection=None):
    """The answer to a call of a client that can poll tasks."""
    return result_of(ask(connection or Connection(), tool(name, arguments, capabilities=TASKS)))


def task_of(created):
    equal(("task", "working"), (created["resultType"], created.get("status")), created)
    equal("holt", created["_meta"][META + "serverInfo"]["name"])
    return created["taskId"]


def tasks(method, task):
    return ask(Connection(), request(method, 1, envelope(capabilities=TASKS), taskId=task))


def look(task):
    return result_of(tasks("tasks/get", task))


def ended(task):
    eventually(lambda: look(task)["status"] != "working")
    return look(task)


def together(*calls):
    """Begins calls at the same time, because each takes seconds to become a task."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(lambda call: begin(*call), calls))


def process_start(cmd):
    return text_of(result_of(ask(Connection(), tool("process_start", {"cmd": cmd})))).split()[1]


def waiting(file):
    return f"until [ -e {file} ]; do sleep 0.05; done"


def silent_calls_of_many_tools_are_tasks():
    connection = Connection()
    process = process_start("sleep 100000")
    run(connection, "rm -f go; mkfifo pipe")
    wait, bash, shell, last, other = [task_of(each) for each in together(
        ("process_wait", {"process_id": process, "timeout_ms": 600000}), ("bash", {"cmd": "cat pipe"}),
        ("shell", {"cmd": "cat pipe", "name": "one"}),
        ("bash", {"cmd": waiting("go") + "; echo x"}),
        ("process_wait", {"process_id": process, "timeout_ms": 600000}))]
    equal({"working"}, {look(each)["status"] for each in [wait, bash, shell, last, other]})
    for each in [bash, shell, other]:
        result_of(tasks("tasks/cancel", each))
        final = ended(each)
        equal(("cancelled", False), (final["status"], "result" in final), final)
    equal({"working"}, {look(each)["status"] for each in [wait, last]})
    run(connection, "touch go")
    final = ended(last)
    equal("completed", final["status"], final)
    assert final["result"]["content"][0]["text"].startswith("x\n"), final
    result_of(ask(connection, tool("process_kill", {"process_id": process, "signal": "KILL"})))
    final = ended(wait)
    equal("completed", final["status"], final)
    assert f"process {process} has ended" in text_of(final["result"]), final
    # A short call of such a client is answered at once, and is no repeated one.
    for name, arguments in [("bash", {"cmd": "true"}), ("snapshot", {}), ("diff", {}), ("process_wait", {"process_id": process})]:
        result = begin(name, arguments)
        assert not result["isError"] and "repeatedCall" not in result["_meta"]["holt/result"], result


def a_task_over_stdio_goes_on_without_the_bridge():
    connection = Connection()
    run(connection, "rm -f go")
    process = bridge("--sandbox", "work")
    process.stdin.write(lines(tool("bash", {"cmd": waiting("go") + "; echo done"}, "t", capabilities=TASKS)))
    process.stdin.flush()
    task = task_of(json.loads(process.stdout.readline())["result"])
    process.stdin.write(lines(request("tasks/get", "g", envelope(capabilities=TASKS), taskId=task)))
    process.stdin.flush()
    equal(("g", "working"), (lambda got: (got["id"], got["result"]["status"]))(json.loads(process.stdout.readline())))
    process.communicate(timeout=600)
    equal((0, "working"), (process.returncode, look(task)["status"]))
    run(connection, "touch go")
    assert "done" in text_of(ended(task)["result"])


def a_task_is_promised_only_if_it_can_be_kept():
    process = process_start("sleep 100000")
    wait = ("process_wait", {"process_id": process, "timeout_ms": 600000})
    kept = [task_of(each) for each in together(*[wait] * THREADS)]
    late, echo = together(("process_wait", {"process_id": process, "timeout_ms": 6000}), ("bash", {"cmd": "echo short"}))
    assert "is running" in text_of(late) and "short" in text_of(echo), (late, echo)
    result_of(ask(Connection(), tool("process_kill", {"process_id": process, "signal": "KILL"})))
    for each in kept:
        assert "has ended" in text_of(ended(each)["result"])


def a_rollback_makes_no_task_unknown():
    connection = Connection()
    run(connection, "rm -f go")
    result_of(ask(connection, tool("snapshot", {"name": "before"})))
    done, undone = [task_of(each) for each in together(("bash", {"cmd": waiting("go") + "; echo done"}), ("bash", {"cmd": waiting("never")}))]
    run(connection, "touch go")
    assert "done" in text_of(ended(done)["result"])
    assert not begin("rollback", {"snapshot": "before"})["isError"]
    assert "done" in text_of(look(done)["result"])
    final = ended(undone)
    assert final["status"] == "failed" or final["result"]["_meta"]["holt/result"]["exitCode"] != 0, final


# --- over the end of the daemon -----------------------------------------------------------------------------------------

def left():
    return json.load(open(os.path.join(os.environ["tmp"], "tasks")))


def tasks_leave():
    run(Connection(), "rm -f go runs")
    process = process_start(waiting("go"))
    created = together(("bash", {"cmd": "echo x >>runs; echo begun; " + waiting("go") + "; cat runs"}),
                       ("process_wait", {"process_id": process, "timeout_ms": 600000}),
                       ("shell", {"cmd": "echo y >>runs; " + waiting("go"), "name": "two"}))
    json.dump([task_of(each) for each in created], open(os.path.join(os.environ["tmp"], "tasks"), "w"))


def tasks_go_on_after_kill_9():
    bash, wait, shell = left()
    equal(["working", "working", "failed"], [look(each)["status"] for each in left()])
    equal(["working", "working", "failed"], [look(each)["status"] for each in left()])
    run(Connection(), "touch go")
    final = ended(bash)
    equal("completed", final["status"], final)
    text = text_of(final["result"])
    assert text.startswith("begun\n") and text.count("x\n") == 1, text  # it has run once
    assert "has ended" in text_of(ended(wait)["result"])
    equal((200, (1, PARAMS)), (lambda got: (got[0], error_of(got[2])))(tasks("tasks/get", bash[:-1] + "x")))


def results_of_tasks_outlive_the_daemon():
    equal(["completed", "completed", "failed"], [look(each)["status"] for each in left()])


if __name__ == "__main__":
    globals()[sys.argv[1]]()
