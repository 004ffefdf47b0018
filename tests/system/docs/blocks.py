"""Shell blocks of README.md and docs/*.md.

usage: blocks.py check                 every fenced block has a language, and no shell block is indented
       blocks.py list                  "run PAGE LINE" or "not-run PAGE LINE REASON" a line, for each shell block
       blocks.py run PAGE LINE         runs the block in the present directory, with bash

Comments directly above a block say what is expected of it; a block without one runs, and all its commands exit with 0:
    <!-- not run: REASON -->
    <!-- exit CODE: FRAGMENT -->       the command that contains the fragment exits with this code
A block in the language `console` has its commands behind "$ "; the rest is output, which is not compared.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = ("holt", "holtd", "curl", "make", "export", "printf", "openssl", "systemctl", "apt-get")

HANG_SECONDS = 300  # a guard against a block that never ends, not a speed limit


class Block:
    def __init__(self, page, line, language, lines, comments):
        self.page, self.line, self.language, self.lines = page.relative_to(ROOT), line, language, lines
        self.reason, self.exits = None, []
        for comment in comments:
            if found := re.fullmatch(r"<!-- not run: (.+) -->", comment):
                self.reason = found[1]
            elif found := re.fullmatch(r"<!-- exit (\d+): (.+) -->", comment):
                self.exits.append((int(found[1]), found[2]))
            elif re.match(r"<!-- (not run|exit)", comment):
                sys.exit(f"{self.page}:{line}: a comment that is not understood: {comment}")

    def is_shell(self):
        return self.language in ("sh", "bash", "console")

    def script(self):
        if self.language != "console":
            return "\n".join(self.lines)
        return "\n".join(line[2:] for line in self.lines if line.startswith("$ "))


def blocks(page):
    lines, at = page.read_text().split("\n"), 0
    while at < len(lines):
        fence = re.match(r"( *)```(\w*)$", lines[at])
        if not fence:
            at += 1
            continue
        end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == "```")
        above = at
        while above > 0 and lines[above - 1].strip().startswith("<!--"):
            above -= 1
        yield Block(page, at + 1, fence[2], [line[len(fence[1]):] for line in lines[at + 1:end]],
                    [line.strip() for line in lines[above:at]])
        at = end + 1


def check():
    bad = []
    for page in PAGES:
        text = page.read_text()
        bad += [f"{block.page}:{block.line}: the block has no language" for block in blocks(page) if not block.language]
        outside = re.sub(r"(?ms)^ *```.*?^ *```$", lambda found: "\n" * found[0].count("\n"), text)
        for number, line in enumerate(outside.split("\n"), 1):
            if re.match(rf"    ({'|'.join(COMMANDS)}) ", line):
                bad.append(f"{page.relative_to(ROOT)}:{number}: an indented command; put it into a block ```sh")
    print(*bad, sep="\n", end="\n" if bad else "")
    return bool(bad)


def run(block):
    """Reports each command that exits with another code than expected, and each expectation that is not met."""
    with tempfile.TemporaryDirectory() as directory:
        log = pathlib.Path(directory, "failed")
        log.touch()
        script = f"trap 'printf \"%s\\t%s\\0\" \"$?\" \"$BASH_COMMAND\" >>{log}' ERR\n{block.script()}\n"
        ended = subprocess.run(["timeout", str(HANG_SECONDS), "bash", "-c", script], stdin=subprocess.DEVNULL, check=False)
        failed = [each.split("\t", 1) for each in log.read_text().split("\0") if each]
    left, bad = list(block.exits), []
    for code, command in failed:
        expected = next((each for each in left if each[0] == int(code) and each[1] in command), None)
        if expected:
            left.remove(expected)
        else:
            bad.append(f"exit {code}: {command}")
    bad += [f"did not exit with {code}: {fragment}" for code, fragment in left]
    if ended.returncode and not failed:
        bad.append(f"the block ended with {ended.returncode}")
    for each in bad:
        print(f"{block.page}:{block.line}: {each}")
    return bool(bad)


def main(command, *arguments):
    if command == "check":
        return check()
    for page in PAGES:
        for block in blocks(page):
            if not block.is_shell():
                continue
            if command == "list":
                print(*(["not-run", block.page, block.line, block.reason] if block.reason
                        else ["run", block.page, block.line]))
            elif arguments == (str(block.page), str(block.line)):
                return run(block)
    return command != "list"


sys.exit(main(*sys.argv[1:]))
