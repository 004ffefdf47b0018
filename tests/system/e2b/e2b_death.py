"""The claims of e2b_control_test about kill -9 of the daemon: `e2b_death.py CLAIM`.

Many clients do what they do and write down what they were told; when some of it has happened the daemon is killed
($holtd is its pid). The next daemon knows all that was told, and nothing by halves."""
import http.client, itertools, json, os, signal, sys, threading

from e2b_control import all_at_once, create, detail, envd, equal, expect, holt, holt_id, kill, quote, run

ENOUGH = 24  # answers, in the middle of which it dies
CLIENTS = 3  # of each kind
NOTES = os.path.join(os.environ["tmp"], "told")


class Told:
    def __init__(self):
        self.lock = threading.Lock()
        self.said = {"created": [], "doomed": [], "killed": [], "changes": [], "snapshots": [], "secrets": {}}
        self.count = 0

    def note(self, kind, what, value=None):
        with self.lock:
            if isinstance(self.said[kind], dict):
                self.said[kind][what] = value
            else:
                self.said[kind].append(what)
            self.count += 1
            if self.count == ENOUGH:
                os.kill(int(os.environ["holtd"]), signal.SIGKILL)


def create_and_kill(told, number):
    while True:
        sandbox = create(metadata={"of": str(number)}, timeout=3000)
        told.note("created", sandbox)
        told.note("doomed", sandbox["sandboxID"])
        kill(sandbox)
        told.note("killed", sandbox["sandboxID"])


def create_more(told, number):
    while True:
        told.note("created", create(metadata={"of": str(number)}, timeout=3000))


def pause_and_resume(told, sandbox):
    path = "/sandboxes/" + sandbox["sandboxID"]
    while True:
        expect(204, "POST", path + "/pause", {})
        told.note("changes", "paused")
        expect(201, "POST", path + "/connect", {"timeout": 3000})
        told.note("changes", "resumed")


def take_snapshots(told, sandbox, number):
    for i in itertools.count():
        name = f"snap-{number}-{i % 3}"  # names move
        expect(201, "POST", f"/sandboxes/{sandbox['sandboxID']}/snapshots", {"name": name})
        told.note("snapshots", name)


def keep_secrets(told, number):
    name = f"secret-{number}"
    version = expect(201, "POST", "/secrets", {"name": name, "value": "v"})["currentVersion"]
    while True:
        told.note("secrets", name, version)
        version = expect(200, "POST", "/secrets/" + name, {"value": "v"})["currentVersion"]


def until_death(work, *args):
    def go():
        try:
            work(*args)
        except (OSError, http.client.HTTPException):
            pass
    return go


def it_dies_in_the_middle():
    told = Told()
    sleepers = [create(timeout=3000) for _ in range(CLIENTS)]
    source = create(timeout=3000)
    run(source, "echo kept > /root/f")
    works = []
    for i in range(CLIENTS):
        works += [until_death(create_and_kill, told, i), until_death(create_more, told, i),
                  until_death(pause_and_resume, told, sleepers[i]), until_death(take_snapshots, told, source, i),
                  until_death(keep_secrets, told, i)]
    all_at_once(works)
    assert told.count >= ENOUGH, told.count
    json.dump({**told.said, "sleepers": sleepers, "source": source}, open(NOTES, "w"))


def sandboxes_are_as_told(told):
    killed = set(told["killed"])
    listed = {each["sandboxID"] for each in expect(200, "GET", "/v2/sandboxes?limit=100")}
    equal(set(), killed & listed)
    for each in told["created"]:
        if each["sandboxID"] in killed or each["sandboxID"] in told["doomed"] and each["sandboxID"] not in listed:
            continue
        equal(each["envdAccessToken"], detail(each)["envdAccessToken"])
        equal(204, envd(each)[0])
    for each in listed:
        shown = json.loads(holt("inspect", holt_id({"sandboxID": each})))
        # One that sleeps has all the time there is, one that runs has not.
        equal(shown["state"] == "paused", shown.get("expiresAt") is None, shown)
        if shown["state"] == "paused":
            expect(201, "POST", f"/sandboxes/{each}/connect", {"timeout": 3000})
        equal("alive\n", run({"sandboxID": each}, "echo alive"))


def sleepers_are_as_told(told):
    """Whatever was asked last may or may not have happened, but it is one of both."""
    for each in told["sleepers"]:
        assert detail(each)["state"] in ("paused", "running"), detail(each)


def snapshots_are_as_told(told):
    listed = [each["snapshotID"] for each in expect(200, "GET", "/snapshots")]
    for name in set(told["snapshots"]):
        assert name + ":default" in listed, (name, listed)
    templates = [line.split()[0] for line in holt("template", "ls").splitlines() if line.startswith("snapshot-")]
    equal(len(listed), len(templates), (listed, templates))
    copy = create(templateID=told["snapshots"][-1]) if told["snapshots"] else None
    if copy:
        equal("kept\n", run(copy, "cat /root/f"))
        kill(copy)
    for each in listed:
        expect(204, "DELETE", "/templates/" + quote(each, safe=""))


def it_dies_behind_a_fork():
    """The daemon ends when the forks are on disk and nobody was told ($HOLT_FAULT)."""
    source = create(timeout=3000, metadata={"of": "source"}, network={"allowPublicTraffic": False})
    json.dump(source, open(NOTES, "w"))
    try:
        expect(201, "POST", f"/sandboxes/{source['sandboxID']}/fork", {"count": 3, "timeout": 600})
    except (OSError, http.client.HTTPException):
        return
    raise AssertionError("it did not die")


def forks_that_nobody_was_told_of_can_be_used():
    source = json.load(open(NOTES))
    listed = expect(200, "GET", "/v2/sandboxes?metadata=of%3Dsource")
    equal(4, len(listed))
    tokens = set()
    for each in listed:
        shown = expect(200, "POST", f"/sandboxes/{each['sandboxID']}/connect", {"timeout": 60})
        tokens |= {shown["envdAccessToken"], shown["trafficAccessToken"]}
        equal(shown["envdAccessToken"], detail(each)["envdAccessToken"])
        equal(204, envd(shown)[0])
        kill(each)
    equal(8, len(tokens))
    assert source["envdAccessToken"] in tokens, tokens


def what_was_told_is_true():
    told = json.load(open(NOTES))
    sleepers_are_as_told(told)
    sandboxes_are_as_told(told)
    snapshots_are_as_told(told)
    for name, version in told["secrets"].items():
        now = expect(200, "GET", "/secrets/" + name)["currentVersion"]
        assert now in (version, version + 1), (name, version, now)
    for each in expect(200, "GET", "/secrets"):
        expect(204, "DELETE", "/secrets/" + each["name"])
    for each in expect(200, "GET", "/v2/sandboxes"):
        expect(204, "DELETE", "/sandboxes/" + each["sandboxID"])
    assert "snapshot-" not in holt("template", "ls"), holt("template", "ls")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
