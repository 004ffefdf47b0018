"""A session like that of a model: 200 tool calls in 20 turns with 5 rollbacks, and the same operations in a plain
directory with Python and bash. The results of the tools are compared with the plain files, and at the end both trees
must have the same names, modes and contents.
usage: tool_session.py SANDBOX DIRECTORY SEED"""
import fnmatch, io, os, random, re, shutil, stat, subprocess, sys, tarfile
from api import Connection, equal

TURNS, CALLS, ROLLBACKS = 20, 10, 5
BOX, TOP, SEED = sys.argv[1:]
rng = random.Random(int(SEED))
connection = Connection()
plain = os.path.join(TOP, "now")
turns = {}  # the name of a snapshot: a copy of the plain directory
calls = 0
shell_at = None


# --- both sides -------------------------------------------------------------------------------------

def tool(name, call_id="", changed=False, **params):
    global calls
    calls += 1
    result = connection.call("ToolService/Execute", sandboxId=BOX, tool=name, params=params, toolCallId=call_id,
                             changed=changed, maxOutputTokens=1 << 20)
    return "".join(block.get("text", "") for block in result["content"]), result["isError"], result


def here(path):
    return os.path.join(plain, path)


def run_plainly(script, directory=""):
    done = subprocess.run(["bash", "-c", script], cwd=here(directory), capture_output=True,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
    return done.returncode, done.stdout.decode()


def files():
    found = []
    for top, _, names in os.walk(plain):
        found += [os.path.relpath(os.path.join(top, name), plain) for name in names]
    return sorted(path for path in found if stat.S_ISREG(os.lstat(here(path)).st_mode))


def content(path):
    with open(here(path), "rb") as file:
        return file.read().decode()


def put(path, text):
    """Writes the file and keeps its mode."""
    with open(here(path), "wb") as file:
        file.write(text.encode())


# --- random content ---------------------------------------------------------------------------------

WORDS = ["alpha", "beta", "gamma", "delta", "int x = 1;", "return 0;", "# TODO", "\tindented", "caf\u00e9", "\u65e5\u672c",
         "", "  ", "$HOME", "'quoted'", "a\\b", "end"]


def some_text():
    ending = rng.choice(["\n", "\n", "\n", "\r\n"])
    text = ending.join(rng.choice(WORDS) for _ in range(rng.randrange(0, 30)))
    return text + (ending if rng.random() < 0.8 else "")


def some_path():
    directory = rng.choice(["", "", "src/", "src/deep/er/", "doc/", "..odd/", ".hidden/"])
    return directory + rng.choice("abcdefgh") + rng.choice([".c", ".txt", ".md", ""])


def some_file():
    return rng.choice(files() or [None])


# --- calls ------------------------------------------------------------------------------------------

def write():
    path, text = some_path(), some_text()
    if os.path.isdir(here(path)) or os.path.islink(here(path)):
        return
    answer, is_error, result = tool("write_file", path=path, content=text, create_dirs=True)
    assert not is_error, answer
    os.makedirs(os.path.dirname(here(path)), exist_ok=True)
    put(path, text)


def write_without_directories():
    path = f"none{rng.randrange(1000)}/x"
    answer, is_error, _ = tool("write_file", path=path, content="x")
    assert is_error and path in answer, answer


def read():
    path = some_file()
    if path is None:
        return
    answer, is_error, _ = tool("read_file", path=rng.choice([path, "/workspace/" + path]))
    assert not is_error, answer
    lines = re.findall(r"(.*?)(\r?\n|$)", content(path), re.DOTALL)
    wanted = "".join(f"{number:6d}\t{line}\n" for number, (line, end) in enumerate(lines, 1) if line or end)
    assert answer.startswith(wanted), f"{path}: wanted {wanted!r}, got {answer!r}"


def a_piece_of(text):
    if not text:
        return "nothing of this is there"
    start = rng.randrange(len(text))
    piece = text[start:start + rng.randrange(1, 12)]
    # How the tool matches \n with \r\n is not tested here, so use what the file has.
    if piece.startswith("\n") and start > 0 and text[start - 1] == "\r":
        piece = "\r" + piece
    return piece + "\n" if piece.endswith("\r") else piece


def overlaps_itself(text, piece):
    """Which of two overlapping occurrences is replaced is not specified."""
    return text.count(piece) != sum(text.startswith(piece, start) for start in range(len(text)))


def replaced(text, old, new, everywhere):
    """The text after an edit, or None if the edit must be refused."""
    times = text.count(old)
    if times == 0 or old == new or (times > 1 and not everywhere):
        return None
    return text.replace(old, new)


def edit():
    path = some_file()
    if path is None:
        return
    text = content(path)
    old = a_piece_of(text) if rng.random() < 0.8 else "no such text here"
    new = rng.choice(["", "changed", old + "!", "caf\u00e9"])
    if "\r\n" in text and "\r" not in old and "\n" in old:
        return
    everywhere = rng.random() < 0.4
    if overlaps_itself(text, old):
        return
    wanted = replaced(text, old, new, everywhere)
    answer, is_error, result = tool("edit_file", path=path, old_string=old, new_string=new, replace_all=everywhere)
    equal((path, old, new, text, wanted is None), (path, old, new, text, is_error))
    if wanted is not None:
        put(path, wanted)


def edit_several():
    path = some_file()
    if path is None or "\r" in content(path):
        return
    text, edits = content(path), []
    for _ in range(rng.randrange(1, 4)):
        old = a_piece_of(text or "")
        if text is not None and overlaps_itself(text, old):
            return
        edits.append({"old_string": old, "new_string": rng.choice(["one", "two\n", ""])})
        if text is not None:
            text = replaced(text, old, edits[-1]["new_string"], False)
    if text is not None and text == content(path):
        return
    answer, is_error, _ = tool("multi_edit", path=path, edits=edits)
    equal((path, edits, text is None), (path, edits, is_error))
    if text is not None:
        put(path, text)


def command():
    """Scripts with the same effect in both trees."""
    global shell_at
    a, b = some_path(), some_path()
    script = rng.choice([
        f"mkdir -p '{os.path.dirname(a) or 'empty'}' && printf 'made\\n' >>'{a}'",
        f"mv -n '{a}' '{b}'",
        f"rm -f '{a}'",
        f"[ ! -f '{a}' ] || chmod {rng.choice(['600', '755', '444', '4755'])} '{a}'",
        f"[ -e 'l{a[-1]}' ] || ln -s '{a}' 'l{a[-1]}'",
        f"[ ! -f '{a}' ] || sort -o '{a}' '{a}'",
        "mkdir -p empty/in/it; rmdir empty/in/it 2>/dev/null; exit 3",
        "rm -rf src/deep",
        "for i in 1 2 3; do echo $i; done | tee -a counted | wc -l",
        "cat nothing-of-that-name",
    ])
    answer, _, result = tool("bash", cmd=script)
    status, output = run_plainly(script)
    if "rm -r" in script or "rmdir" in script:
        shell_at = None  # the shell may be in a removed directory, also if there is a new one of that name
    equal((script, status), (script, result.get("exitCode")))
    assert output.strip() in answer, (script, output, answer)


def command_once():
    """A call with an id is executed once."""
    script = "echo again >>counted; wc -l <counted"
    call_id = f"call-{SEED}-{calls}"
    first = tool("bash", call_id, cmd=script)
    second = tool("bash", call_id, cmd=script)
    run_plainly(script)
    equal(first[0], second[0])
    equal((False, True), (first[2].get("repeatedCall", False), second[2].get("repeatedCall", False)))


def in_a_shell():
    """A shell keeps its directory between calls."""
    global shell_at
    if shell_at is None or not os.path.isdir(here(shell_at)) or rng.random() < 0.3:
        shell_at = rng.choice(sorted({os.path.dirname(path) for path in files()} | {""}))
        _, is_error, result = tool("shell", cmd=f"cd '/workspace/{shell_at}'")
        equal((shell_at, 0), (shell_at, result.get("exitCode")))
    script = f"echo {rng.randrange(1000)} >>from-shell"
    _, _, result = tool("shell", cmd=script)
    equal(0, result.get("exitCode"))
    run_plainly(script, shell_at)


def paths_in(answer):
    """The files that have their own line."""
    lines = {line.removeprefix("/workspace/").removeprefix("./") for line in answer.splitlines()}
    return [path for path in files() if path in lines]


def search():
    """Files that contain a word."""
    word = rng.choice(["alpha", "TODO", "caf\u00e9", "changed", "x = 1"])
    answer, is_error, _ = tool("grep", pattern=word, literal=True, mode="files", hidden=True, max_results=1000)
    assert not is_error, answer
    equal((word, [path for path in files() if word in content(path)]), (word, paths_in(answer)))


def find():
    pattern = rng.choice(["*.c", "*.md", "[a-d]*", "counted"])
    answer, is_error, _ = tool("glob", pattern="**/" + pattern, hidden=True, max_results=1000)
    assert not is_error, answer
    wanted = sorted(path for path in files() if fnmatch.fnmatchcase(os.path.basename(path), pattern))
    equal((pattern, wanted), (pattern, paths_in(answer)))


def list_top():
    answer, is_error, _ = tool("list_dir")
    assert not is_error, answer
    for name in os.listdir(plain):
        assert name in answer, (name, answer)


def report_changes():
    """The changes that a call reports."""
    path = f"told-{rng.randrange(10)}"
    kind = "M" if os.path.exists(here(path)) else "A"
    _, _, result = tool("write_file", path=path, content="x", changed=True)
    equal([{"kind": kind, "path": "/workspace/" + path}], result.get("changed"))
    put(path, "x")


KINDS = [write, write, write, write, read, read, edit, edit, edit, edit_several, command, command, command, command_once,
         in_a_shell, search, find, list_top, report_changes, write_without_directories]


# --- turns ------------------------------------------------------------------------------------------

def snapshots():
    return [each["name"] for each in connection.call("SnapshotService/List", sandboxId=BOX)["snapshots"]]


def end_turn():
    before = set(snapshots())
    answer, is_error, _ = tool("snapshot")
    assert not is_error, answer
    name, = set(snapshots()) - before
    assert name in answer, (name, answer)
    turns[name] = os.path.join(TOP, name)
    shutil.copytree(plain, turns[name], symlinks=True)


def go_back():
    global shell_at
    name = rng.choice(sorted(turns))
    answer, is_error, _ = tool("rollback", snapshot=name)
    assert not is_error, answer
    shutil.rmtree(plain)
    shutil.copytree(turns[name], plain, symlinks=True)
    shell_at = None


# --- the end ----------------------------------------------------------------------------------------

def sandbox_tree():
    """Maps a name to its type, mode, and content or target."""
    done = subprocess.run(["holt", "exec", BOX, "--", "tar", "-C", "/workspace", "-cf", "-", "."], check=True,
                          stdout=subprocess.PIPE)
    tree = {}
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        for each in archive:
            name = os.path.normpath(each.name)
            body = archive.extractfile(each).read() if each.isreg() else each.linkname
            tree[name] = (each.type, each.mode & 0o7777, body)
    tree.pop(".")
    return tree


def plain_tree():
    tree = {}
    for top, directories, names in os.walk(plain):
        for name in directories + names:
            path = os.path.join(top, name)
            mode = os.lstat(path).st_mode
            kind = {stat.S_IFLNK: tarfile.SYMTYPE, stat.S_IFDIR: tarfile.DIRTYPE}.get(stat.S_IFMT(mode), tarfile.REGTYPE)
            if kind == tarfile.REGTYPE:
                body = open(path, "rb").read()
            else:
                body = os.readlink(path) if kind == tarfile.SYMTYPE else ""
            tree[os.path.relpath(path, plain)] = (kind, mode & 0o7777, body)
    return tree


def compare():
    wanted, got = plain_tree(), sandbox_tree()
    for name in sorted(wanted.keys() | got.keys()):
        assert wanted.get(name) == got.get(name), f"{name}: wanted {wanted.get(name)}, got {got.get(name)}"


os.umask(0o022)
os.mkdir(plain)
rollbacks = set(rng.sample(range(2, TURNS), ROLLBACKS))
for turn in range(TURNS):
    target = calls + CALLS
    while calls < target:
        rng.choice(KINDS)()
    end_turn()
    if turn in rollbacks:
        go_back()
        compare()
assert calls >= TURNS * CALLS and len(turns) == TURNS, (calls, len(turns))
compare()
