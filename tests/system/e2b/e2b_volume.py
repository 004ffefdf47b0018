"""The claims of e2b_volume_test: `e2b_volume.py CLAIM`. See e2b_control.py for the environment."""
import json, os, subprocess, sys
from e2b_control import ask, content, create, detail, equal, expect, holt, holt_id, kill, main_token, run


def volume_make(name):
    return expect(201, "POST", "/volumes", {"name": name})


def volume_delete(volume):
    expect(204, "DELETE", "/volumes/" + volume["volumeID"])


def mounts(**paths):
    """Those of a volume at a path each: mounts(name="/path")."""
    return [{"name": name, "path": path} for name, path in paths.items()]


def put(volume, path, data, **query):
    status, entry = content(volume, "PUT", "file", path, data, force="true", **query)
    equal(201, status, entry)
    return entry


def get(volume, path):
    status, data = content(volume, "GET", "file", path)
    equal(200, status, data)
    return data


def run_as(user, sandbox, command):
    return holt("exec", "--user", user, holt_id(sandbox), "--", "sh", "-c", command)


def fails(sandbox, command):
    """What a command that must fail says."""
    done = subprocess.run(["holt", "exec", holt_id(sandbox), "--", "sh", "-c", command], capture_output=True, text=True)
    assert 0 < done.returncode < 125, done
    return done.stderr


def refused(status, wanted, **fields):
    message = expect(status, "POST", "/v2/sandboxes", {"templateID": "host", **fields})["message"]
    assert wanted in message, message


def mount_options(sandbox, path):
    return run(sandbox, f"grep ' {path} ' /proc/self/mountinfo").split()[5].split(",")


# --- what it is ---------------------------------------------------------------------------------------

def what_is_written_is_seen_by_all():
    volume = volume_make("shared")
    put(volume, "/dir-less", b"from outside", uid=1000, gid=1000, mode=0o640)
    equal((1000, 1000), tuple(put(volume, "/anybodys", b"")[each] for each in ("uid", "gid")))
    equal(1000, content(volume, "POST", "dir", "/made/here", force="true")[1]["uid"])
    one, two = create(volumeMounts=mounts(shared="/mnt/v")), create(volumeMounts=mounts(shared="/some/new/place/"))
    equal(mounts(shared="/mnt/v"), detail(one)["volumeMounts"])
    equal("from outside 1000 640\n", run(one, "echo $(cat /mnt/v/dir-less) $(stat -c '%u %a' /mnt/v/dir-less)"))
    run_as("1000", one, "echo mine >/mnt/v/made/here/file; echo more >>/mnt/v/anybodys; echo top >/mnt/v/top")
    run(one, "echo roots >/mnt/v/roots; ln -s roots /mnt/v/link")
    equal("mine 1000\n", run(two, "cd /some/new/place/made/here && echo $(cat file) $(stat -c %u file)"))
    equal((b"mine\n", b"roots\n", b"roots\n"), tuple(get(volume, path) for path in ("/made/here/file", "/roots", "/link")))
    entries = {each["name"]: each["uid"] for each in content(volume, "GET", "dir", "/")[1]}
    equal({"dir-less": 1000, "anybodys": 1000, "made": 1000, "top": 1000, "roots": 0, "link": 0}, entries)
    put(volume, "/dir-less", b"changed")
    equal("changed", run(two, "cat /some/new/place/dir-less"))
    # The faces for files see what processes see.
    status, _, data = ask("GET", "/files?path=/mnt/v/dir-less&username=root", key=None, E2b_Sandbox_Id=one["sandboxID"],
                          E2b_Sandbox_Port="49983", X_Access_Token=one["envdAccessToken"])
    equal((200, b"changed"), (status, data))
    assert "changed" in holt("tool", holt_id(one), "read_file", "path=/mnt/v/dir-less")
    options = mount_options(one, "/mnt/v")
    assert {"rw", "nosuid", "nodev"} <= set(options), options
    kill(one)
    equal("mine\n", run(two, "cat /some/new/place/made/here/file"))
    kill(two)
    equal(b"mine\n", get(volume, "/made/here/file"))
    volume_delete(volume)


def it_stays_whatever_happens():
    volume, other = volume_make("stays"), volume_make("inner")
    sandbox = create(volumeMounts=mounts(inner="/mnt/v/inner", stays="/mnt/v"))
    id = holt_id(sandbox)
    see = "cat /mnt/v/f /mnt/v/inner/f"
    run(sandbox, "echo 1 >/own; echo 1 >/mnt/v/f; echo 1 >/mnt/v/inner/f")
    turn = holt("turn", id).split()[0]
    run(sandbox, "echo 2 >/own; echo 2 >/mnt/v/f; echo 2 >/mnt/v/inner/f")
    holt("rollback", id, turn)
    equal("1\n2\n2\n", run(sandbox, "cat /own; " + see))
    equal((b"2\n", b"2\n"), (get(volume, "/f"), get(other, "/f")))
    for memory in (True, False):
        expect(204, "POST", f"/sandboxes/{sandbox['sandboxID']}/pause", {"memory": memory})
        put(volume, "/f", b"3\n")
        expect(201, "POST", f"/v2/sandboxes/{sandbox['sandboxID']}/connect", {})
        equal("3\n2\n", run(sandbox, see))
    fork = expect(201, "POST", f"/sandboxes/{sandbox['sandboxID']}/fork", {})[0]["sandbox"]
    equal(detail(sandbox)["volumeMounts"], detail(fork)["volumeMounts"])
    run(fork, "echo 4 >/mnt/v/inner/f")
    equal("3\n4\n", run(sandbox, see))
    kill(sandbox)
    equal("3\n4\n", run(fork, see))
    kill(fork)
    volume_delete(volume)
    volume_delete(other)


def a_snapshot_has_it_too():
    volume, gone = volume_make("snapped"), volume_make("gone")
    sandbox = create(volumeMounts=mounts(snapped="/mnt/v", gone="/mnt/gone"))
    run(sandbox, "echo old >/mnt/v/f; echo own >/own")
    snapshot = expect(201, "POST", f"/sandboxes/{sandbox['sandboxID']}/snapshots", {"name": "with-volumes"})["snapshotID"]
    kill(sandbox)
    volume_delete(gone)
    put(volume, "/f", b"new\n")
    copy = create(templateID=snapshot)
    equal(mounts(snapped="/mnt/v"), detail(copy)["volumeMounts"])
    equal("own\nnew\n", run(copy, "cat /own /mnt/v/f"))
    kill(copy)
    without = create(templateID=snapshot, volumeMounts=[])
    equal([], detail(without)["volumeMounts"])
    equal("", run(without, "ls /mnt/v"))
    kill(without)
    expect(204, "DELETE", "/templates/with-volumes")
    volume_delete(volume)


def what_is_mounted_is_not_deleted():
    volume = volume_make("held")
    sandbox = create(volumeMounts=mounts(held="/mnt/v"))
    path = "/volumes/" + volume["volumeID"]
    for memory in (None, True, False):
        if memory is not None:
            expect(204, "POST", f"/sandboxes/{sandbox['sandboxID']}/pause", {"memory": memory})
        message = expect(409, "DELETE", path)["message"]
        assert holt_id(sandbox) in message, message
        if memory is not None:
            expect(201, "POST", f"/v2/sandboxes/{sandbox['sandboxID']}/connect", {})
    run(sandbox, "touch /mnt/v/still-there")
    kill(sandbox)
    expect(204, "DELETE", path)
    refused(404, "held", volumeMounts=mounts(held="/mnt/v"))


def what_cannot_be_is_refused():
    volume = volume_make("valid")
    before = holt("ls", "-q")
    for path in ("", "relative", "/", "//", "/./", "/a/../b", "/..", "/a/.", "/proc", "/proc/", "/proc/self", "/sys",
                 "//dev//shm", "/dev", "/" + "x" * 255):
        refused(400, "volume", volumeMounts=mounts(valid=path))
    refused(400, "not a directory", volumeMounts=mounts(valid="/etc/passwd"))
    refused(400, "two volumes", volumeMounts=mounts(valid="/a") + mounts(valid="/a/"))
    refused(400, "at most", volumeMounts=[{"name": "valid", "path": f"/a{i}"} for i in range(9)])
    refused(400, "name and a path", volumeMounts=[{"name": "valid"}])
    refused(400, "name and a path", volumeMounts=["valid"])
    refused(400, "volumeMounts", volumeMounts="valid")
    refused(404, "unknown", volumeMounts=mounts(unknown="/a"))
    refused(404, "unknown", volumeMounts=mounts(valid="/b", unknown="/a"))
    equal(before, holt("ls", "-q"))
    many = create(volumeMounts=[{"name": "valid", "path": f"/a{i}"} for i in range(8)])
    equal("x\n" * 8, run(many, "echo x >/a3/f; cat /a*/f"))
    kill(many)
    volume_delete(volume)


# --- hostile ------------------------------------------------------------------------------------------

def links_stay_inside():
    """What the template has on the way to a mount may lead anywhere in it, but neither out nor over Holt's own."""
    volume = volume_make("linked")
    put(volume, "/f", b"here\n")
    source = create()
    run(source, "ln -s ../../../../real /up; ln -s /up /twice; ln -s / /root-of-all; ln -s /proc /p; ln -s /dev /s;"
                "ln -s /none/such /dangling; ln -s /loop /loop")
    snapshot = expect(201, "POST", f"/sandboxes/{source['sandboxID']}/snapshots", {"name": "links"})["snapshotID"]
    for path, why in (("/p", "/proc"), ("/p/x", "/proc"), ("/s/x", "/dev"), ("/root-of-all", "'/'"),
                      ("/root-of-all/proc", "/proc"), ("/dangling", "not a directory"), ("/loop", "not a directory")):
        refused(400, why, templateID=snapshot, volumeMounts=mounts(linked=path))
    run(source, "mkdir /real")
    expect(201, "POST", f"/sandboxes/{source['sandboxID']}/snapshots", {"name": "links"})
    kill(source)
    sandbox = create(templateID="links", volumeMounts=mounts(linked="/twice/a"))
    equal("here\n", run(sandbox, "cat /real/a/f"))
    kill(sandbox)
    # One that has put a link in the way of its own mount does not start again, and can be removed.
    sandbox = create(volumeMounts=mounts(linked="/fresh/a"))
    run(sandbox, "mv /fresh /moved && ln -s /proc /fresh")
    equal("here\n", run(sandbox, "cat /moved/a/f"))
    expect(204, "POST", f"/sandboxes/{sandbox['sandboxID']}/pause", {"memory": False})
    message = expect(400, "POST", f"/v2/sandboxes/{sandbox['sandboxID']}/connect", {})["message"]
    assert "/proc" in message, message
    kill(sandbox)
    expect(204, "DELETE", "/templates/links")
    volume_delete(volume)


def nothing_in_it_leads_out_or_up():
    volume = volume_make("hostile")
    sandbox = create(volumeMounts=mounts(hostile="/mnt/v"))
    run(sandbox, "cd /mnt/v && mkdir d && echo x >f && ln -s /etc out && ln -s ../../../../token up && mkfifo pipe &&"
                 "ln f hard && ln -s /f absolute && cp /usr/bin/id id && chmod 4755 id")
    for path in ("/../../token", "/out/passwd", "/up", "/d/../../../../../../../etc/passwd"):
        equal(404, content(volume, "GET", "file", path)[0], path)
    equal(404, content(volume, "PUT", "file", "/out/new", b"x")[0])
    equal(404, content(volume, "POST", "dir", "/out/new")[0])
    put(volume, "/up", b"inside")
    equal("inside", run(sandbox, "cat /mnt/v/token"))
    equal(400, content(volume, "GET", "file", "/pipe")[0])
    equal(400, content(volume, "PUT", "file", "/pipe", b"x", force="true")[0])
    equal((b"x\n", b"x\n"), (get(volume, "/absolute"), get(volume, "/hard")))
    equal(("symlink", "/etc"), (lambda e: (e["type"], e["target"]))(content(volume, "GET", "path", "/out")[1]))
    equal(204, content(volume, "DELETE", "path", "/out")[0])
    assert os.path.exists("/etc/passwd") and main_token() != "inside"
    equal("1000\n", run_as("1000", sandbox, "/mnt/v/id -u"))
    for command in ("mknod /mnt/v/null c 1 3", "ln /etc/hostname /mnt/v/h", "umount /mnt/v", "mount -o remount,suid /mnt/v"):
        fails(sandbox, command)
    # Commands of btrfs itself: SUBVOL_CREATE, SNAP_CREATE_V2, SUBVOL_SETFLAGS.
    for number in (0x5000940e, 0x50009417, 0x4008941a):
        said = fails(sandbox, "python3 -c 'import fcntl, os; fcntl.ioctl(os.open(\"/mnt/v\", os.O_RDONLY), "
                              f"{number}, bytearray(4096))'")
        assert "PermissionError" in said, said
    kill(sandbox)
    volume_delete(volume)


def it_has_a_quota():
    volume = volume_make("full")
    sandbox = create(volumeMounts=mounts(full="/mnt/v"))
    said = fails(sandbox, "head -c 100M /dev/urandom >/mnt/v/big && sync /mnt/v/big")
    assert "quota" in said.lower(), said
    status, _ = content(volume, "PUT", "file", "/more", os.urandom(8 << 20))
    equal(507, status)
    run(sandbox, "echo own >/own; rm /mnt/v/big; sync /mnt/v")
    kill(sandbox)
    volume_delete(volume)


def a_crowd_of_names_is_refused():
    volume = volume_make("crowd")
    sandbox = create(volumeMounts=mounts(crowd="/mnt/v"))
    run(sandbox, "mkdir /mnt/v/d && cd /mnt/v/d && seq 10001 | xargs touch")
    equal(429, content(volume, "GET", "dir", "/d")[0])
    run(sandbox, "rm /mnt/v/d/1")
    equal(10000, len(content(volume, "GET", "dir", "/d")[1]))
    kill(sandbox)
    volume_delete(volume)


# --- the next daemon ----------------------------------------------------------------------------------

def remember_one():
    volume = volume_make("kept")
    sandbox = create(volumeMounts=mounts(kept="/mnt/v"))
    run(sandbox, "echo before >/mnt/v/f")
    with open(os.path.join(os.environ["tmp"], "remembered"), "w") as file:
        json.dump([volume, sandbox], file)


def what_was_remembered_is_there():
    volume, sandbox = json.load(open(os.path.join(os.environ["tmp"], "remembered")))
    equal("before\n", run(sandbox, "cat /mnt/v/f"))
    equal(b"before\n", get(volume, "/f"))
    expect(409, "DELETE", "/volumes/" + volume["volumeID"])
    turn = holt("turn", holt_id(sandbox)).split()[0]
    run(sandbox, "echo after >/mnt/v/f")
    holt("rollback", holt_id(sandbox), turn)
    equal("after\n", run(sandbox, "cat /mnt/v/f"))
    expect(204, "POST", f"/sandboxes/{sandbox['sandboxID']}/pause", {"memory": False})
    expect(201, "POST", f"/v2/sandboxes/{sandbox['sandboxID']}/connect", {})
    equal("after\n", run(sandbox, "cat /mnt/v/f"))
    kill(sandbox)
    volume_delete(volume)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
