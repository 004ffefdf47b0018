"""Stops, kills and restarts holtd, and checks what its clients see."""
import base64
import os
import random
import signal
import subprocess
import threading
import time

from deaths.boxes import eventually, host_pids, start_time
from deaths.daemon import Gone, Refused
from deaths.operations import Destroy

HOLT_FAILED = 125
KILLS = 15
KILL_AFTER_MAX = 0.06  # seconds; about what a start or an end takes

ATTACHED = """echo begun; i=0; while :; do i=$((i + 1)); echo $i >/tmp/attached.new
    mv /tmp/attached.new /tmp/attached; sleep 0.05; done"""
WRITER = """line=$(head -c 8000 /dev/zero | tr '\\0' x); echo begun; i=0; while :; do echo $line; echo $line >&2
    i=$((i + 1)); echo $i >/tmp/attached.new; mv /tmp/attached.new /tmp/attached; done"""
WRITES_MANY = 500  # 8 MB, of which a buffer holds 256 KiB


class Client:
    """`holt exec`, attached to a process of a sandbox."""

    def __init__(self, world, box, script):
        self.mark = f"attached-{world.new_name()}"
        self.process = subprocess.Popen(
            [f"{world.build}/holt", "exec", box.id, "--", "sh", "-c", script, self.mark],
            env=dict(os.environ, HOLT_HOST=f"unix://{world.daemon.socket}"), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout.readline() == b"begun\n"
        words = [(pid, inner) for pid, inner in host_pids(self.mark) if inner != str(pid)]
        self.pid = words[0][0]
        self.began = start_time(self.pid)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        while self.process.stdout.read(65536):
            pass

    def end(self):
        """Waits for its end; returns its status and output."""
        said = self.process.stderr.read().decode(errors="replace")
        status = self.process.wait()
        self.reader.join()
        return status, said

    def check_goes_on(self, by=0):
        """Checks that the process keeps counting."""
        assert start_time(self.pid) == self.began, "the process has ended"
        before = self.value()
        eventually("the process", lambda: None if self.value() > before + by else f"stands still at {before}")

    def value(self):
        try:
            with open(f"/proc/{self.pid}/root/tmp/attached", encoding="ascii") as file:
                return int(file.read())
        except FileNotFoundError:
            return 0

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        eventually("the process", lambda: "still runs" if start_time(self.pid) == self.began else None)


def some(world, state):
    return random.choice([box for box in world.boxes.values() if box.state == state])


def leave_and_return(world, how):
    client = Client(world, some(world, "active"), ATTACHED)
    world.daemon.end(how)
    status, said = client.end()
    assert status == HOLT_FAILED and said.startswith("holt: ") and "daemon" in said, f"{status}: {said}"
    client.check_goes_on()
    world.daemon.start()
    client.check_goes_on()
    world.verify()
    client.kill()
    world.verify()


def a_terminated_daemon_leaves_sandboxes_and_processes_running(world):
    leave_and_return(world, signal.SIGTERM)


def a_killed_daemon_leaves_sandboxes_and_processes_running(world):
    leave_and_return(world, signal.SIGKILL)


def a_process_that_writes_all_the_time_goes_on(world):
    client = Client(world, some(world, "active"), WRITER)
    world.daemon.end()
    client.end()
    world.daemon.start()
    client.check_goes_on(WRITES_MANY)
    world.restart()
    client.check_goes_on(WRITES_MANY)
    client.kill()
    world.verify()


def what_goes_on_in_the_background_is_not_ended_with_a_later_process(world):
    box = world.add()
    world.restart()
    for _ in range(5):  # more than there were processes before
        world.daemon.stream("ProcessService/Exec", sandboxId=box.id,
                            process={"args": ["sleep", "1000"], "cwd": "/", "timeoutMs": 10})
    world.verify()
    world.do(Destroy(box))


def a_daemon_may_die_in_the_middle_of_input(world):
    box = some(world, "active")

    def feed(process):
        data = base64.b64encode(os.urandom(65536)).decode()
        try:
            while True:
                world.daemon.call("ProcessService/SendInput", sandboxId=box.id, processId=process, data=data)
        except (Gone, Refused):
            return

    for _ in range(5):
        events = world.daemon.begin("ProcessService/Exec", sandboxId=box.id,
                                    process={"args": ["cat"], "cwd": "/", "stdin": True})
        thread = threading.Thread(target=feed, args=[events["started"]["processId"]])
        thread.start()
        time.sleep(random.uniform(0.01, KILL_AFTER_MAX))
        world.daemon.end()
        thread.join()
        world.daemon.start()
        world.verify()


def a_daemon_may_be_killed_while_it_starts(world):
    for _ in range(KILLS):
        world.daemon.end()
        for _ in range(2):
            world.daemon.launch()
            time.sleep(random.uniform(0, KILL_AFTER_MAX))
            world.daemon.end()
        world.daemon.start()
        world.verify()


def a_daemon_may_be_killed_while_it_ends(world):
    for _ in range(KILLS):
        os.kill(world.daemon.pid(), signal.SIGTERM)
        time.sleep(random.uniform(0, KILL_AFTER_MAX))
        world.daemon.end()
        world.daemon.start()
        world.verify()


def a_daemon_may_be_killed_while_it_imports(world):
    for _ in range(KILLS):
        name = world.new_name()
        thread = threading.Thread(target=import_quietly, args=[world, name])
        thread.start()
        time.sleep(random.uniform(0, KILL_AFTER_MAX))
        world.daemon.end()
        thread.join()
        world.daemon.start()
        templates = world.daemon.call("TemplateService/List")["templates"]
        if name in [template["name"] for template in templates]:
            assert world.look(name) == world.pristine
            world.daemon.call("TemplateService/Remove", name=name)
        world.leaks.check()


def import_quietly(world, name):
    try:
        world.daemon.stream("TemplateService/Import", name=name, path=world.tree)
    except Gone:
        pass


def a_sandbox_without_its_template_fails_and_can_be_started_later(world):
    here, away = (f"{world.daemon.state}/templates/{name}" for name in ("other", "../other"))
    world.daemon.stream("TemplateService/Import", name="other", path=world.tree)
    box = world.add(template="other")
    world.bring(box, "stopped")
    world.daemon.end()
    os.rename(here, away)
    world.daemon.start()
    assert world.told()[box.id]["state"] == "failed", world.told()[box.id]
    try:
        world.daemon.call("SandboxService/Start", sandboxId=box.id)
        raise AssertionError("it was started without a template")
    except Refused:
        pass
    os.rename(away, here)
    world.daemon.call("SandboxService/Start", sandboxId=box.id)
    box.state = "active"
    world.restart()
    world.verify()
    world.prove(box)
    world.do(Destroy(box))
    world.daemon.call("TemplateService/Remove", name="other")


def with_stop_all_a_terminated_daemon_stops_sandboxes(world):
    for state in ("active", "paused"):
        if state not in [box.state for box in world.boxes.values()]:
            world.add(state)
    world.restart(flags=["--stop-all"])
    world.verify()
    assert world.daemon.end(signal.SIGTERM) == 0
    for box in world.boxes.values():
        if box.counter:
            world.over(box)
        box.state = "stopped"
    world.daemon.start()
    world.verify()
    for box in world.boxes.values():
        world.bring(box, "active")
    world.verify()


CLAIMS = [
    a_terminated_daemon_leaves_sandboxes_and_processes_running,
    a_killed_daemon_leaves_sandboxes_and_processes_running, a_process_that_writes_all_the_time_goes_on,
    what_goes_on_in_the_background_is_not_ended_with_a_later_process, a_daemon_may_die_in_the_middle_of_input,
    a_daemon_may_be_killed_while_it_starts, a_daemon_may_be_killed_while_it_ends,
    a_daemon_may_be_killed_while_it_imports, a_sandbox_without_its_template_fails_and_can_be_started_later,
    with_stop_all_a_terminated_daemon_stops_sandboxes,
]
