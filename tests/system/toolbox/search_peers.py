"""The programs that grep and glob are compared with (GNU grep, ripgrep, bash, git), the tools in a
process of their own, and the trees to search."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

IS_ERROR, IS_CUT = 1, 2
UTF8 = {**os.environ, "LC_ALL": "C.UTF-8"}
BINARY_BYTES = 8192


class Tools:
    """The functions of the tool worker, called with parameters as JSON."""

    def __init__(self):
        build = Path(os.environ.get("HOLT_BUILD_DIR", "build"))
        program = next(build.glob("tests/unit/**/*search_test"))
        self.process = subprocess.Popen([str(program), "--answer"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def call(self, tool, **params):
        call = {"tool": tool, "params": {key: value for key, value in params.items()
                                         if value is not None}}
        self.process.stdin.write(json.dumps(call).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the tools ended at {call}")
        answer = json.loads(line)
        return answer["text"], answer["flags"]

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


class Cut(dict):
    pass


def count_matches(found):
    return sum(mark == ":" for lines in found.values() for _, mark, _ in lines)


def first_matches(found, count):
    """The first matching lines of a truncated result."""
    first = {}
    for name in sorted(found, key=os.fsencode):
        lines = found[name][:count]
        count -= len(lines)
        if lines:
            first[name] = lines
    return first


def is_binary(path):
    with open(path, "rb") as file:
        return b"\0" in file.read(BINARY_BYTES)


def shown(data):
    """A line as the tool shows it: UTF-8, without its line ending."""
    if data.endswith(b"\r"):
        data = data[:-1]
    try:
        return data.decode().replace("\0", "\ufffd")
    except UnicodeDecodeError:
        pass
    text, at = [], 0
    while at < len(data):  # one U+FFFD a byte, where Python has one for several
        for size in (1, 2, 3, 4):
            try:
                text.append(data[at:at + size].decode())
                break
            except UnicodeDecodeError:
                continue
        else:
            text.append("\ufffd")
            size = 1
        at += size
    return "".join(text).replace("\0", "\ufffd")


def grep_by_tool(tools, root, pattern, **params):
    """{file: [(line, mark, text)]}, or None for an error. The text of long lines is None. A
    truncated result is a Cut."""
    text, flags = tools.call("grep", pattern=pattern, path=str(root), max_results=100000,
                             max_bytes=8 << 20, **params)
    if flags & IS_ERROR:
        return None
    found = Cut() if flags & IS_CUT else {}
    if text.startswith("No matches"):
        return found
    lines = text.split("\n")
    counts = re.match(r"Found (?:at least )?(\d+) match(?:es)? in (\d+) files?(?:; showing (\d+).*)?$",
                      lines[0])
    assert counts and bool(counts[3]) == bool(flags & IS_CUT), lines[0]
    for line in lines[1:-1]:
        parts = re.match(r"(/.*?)([:-])(\d+)\2 (.*)$", line)
        assert parts or line == "--", repr(line)
        if parts:
            name, mark, number, rest = parts.groups()
            assert len(rest) <= 506, line
            rest = None if len(rest) >= 500 else rest
            found.setdefault(name, []).append((int(number), mark, rest))
    assert int(counts[3] or counts[1]) == count_matches(found), lines[0]
    assert counts[3] or int(counts[2]) == len(found), lines[0]
    assert list(found) == sorted(found, key=os.fsencode)
    return found


def lines_of_peer(output):
    found = {}
    for line in output.split(b"\n")[:-1]:
        if b"\0" not in line:
            assert line == b"--", line
            continue
        name, rest = line.split(b"\0", 1)
        number, mark, text = re.match(rb"(\d+)([:-])(.*)$", rest, re.DOTALL).groups()
        text = shown(text)
        found.setdefault(os.fsdecode(name), []).append(
            (int(number), mark.decode(), None if len(text) >= 500 else text))
    return {name: lines for name, lines in found.items() if not is_binary(name)}


def run_peer(argv):
    done = subprocess.run(argv, env=UTF8, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    return done.returncode, done.stdout


def grep_by_gnu(root, pattern, *options):
    status, output = run_peer(["grep", "-rnaZP", "--exclude-dir=.*", *options, "-e", pattern,
                               str(root)])
    return None if status == 2 else lines_of_peer(output)


def grep_by_ripgrep(root, pattern, *options):
    status, output = run_peer(["rg", "--no-config", "--no-ignore", "-na0", "--no-heading",
                               "--encoding", "none", "--color", "never", *options, "-e", pattern,
                               str(root)])
    return None if status == 2 else lines_of_peer(output)


def glob_by_tool(tools, root, pattern, **params):
    text, flags = tools.call("glob", pattern=pattern, path=str(root), max_results=100000, **params)
    if flags & IS_ERROR or text.startswith("No files match"):
        return []
    assert not flags & IS_CUT
    return [line[len(str(root)) + 1:] for line in text.split("\n")[:-1]]


def glob_by_bash(root, patterns, hidden):
    """Returns the files for each pattern, sorted by bytes."""
    options = "globstar nullglob" + (" dotglob" if hidden else "")
    script = f"shopt -s {options}; IFS=; cd {root}\n" + "".join(
        f"printf '%s\\0' {pattern}; printf '\\n\\0'\n" for pattern in patterns)
    done = subprocess.run(["bash", "-c", script], env=UTF8, stdout=subprocess.PIPE, check=True)
    results, found = [], set()
    for name in done.stdout.split(b"\0")[:-1]:
        if name == b"\n":
            results.append(sorted(found, key=os.fsencode))
            found = set()
            continue
        name = os.fsdecode(name)
        if name and os.path.isfile(os.path.join(root, name)):
            found.add(os.path.normpath(name))
    return results


def copy_files(sources, target, max_bytes):
    """Copies regular files from the sources, up to a number of bytes."""
    total = 0
    for source in sources:
        for at, dirs, files in os.walk(source):
            dirs.sort()
            for name in sorted(files):
                path = os.path.join(at, name)
                try:
                    if os.path.islink(path) or not os.path.isfile(path):
                        continue
                    size = os.path.getsize(path)
                    if size > max_bytes // 20:
                        continue
                    total += size
                    if total > max_bytes:
                        return
                    copy = str(target) + path
                    os.makedirs(os.path.dirname(copy), exist_ok=True)
                    shutil.copyfile(path, copy)
                except OSError:
                    continue  # it changes under our hands, and any files will do
