"""Searches the memory of every descendant of a process for texts.

usage: memory_search.py PID TEXT...

Prints a line for each text: in how many processes it is, and how many were searched.
"""
import os
import sys
from pathlib import Path

WINDOW = 1 << 20


def descendants(pid):
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            children.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
        except OSError:
            continue
    found = list(children.get(pid, []))
    for each in found:
        found += children.get(each, [])
    return found


def areas(pid):
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        place, rights = line.split()[:2]
        if "r" in rights and not line.endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
            yield [int(each, 16) for each in place.split("-")]


def texts_in(pid, texts):
    """Returns which of the texts are in the memory, also across the border of two windows."""
    found, overlap = set(), max(map(len, texts))
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for start, end in areas(pid):
            for at in range(start, end, WINDOW):
                try:
                    memory.seek(at)
                    data = memory.read(min(WINDOW + overlap, end - at))
                except OSError:
                    continue
                found.update(text for text in texts if text in data)
    return found


def main():
    texts = [text.encode() for text in sys.argv[2:]]
    counts, searched = dict.fromkeys(texts, 0), 0
    for pid in descendants(int(sys.argv[1])):
        try:
            if os.readlink(f"/proc/{pid}/exe").endswith("/holt-net"):
                continue  # it sends the key, so it has it
            found = texts_in(pid, texts)
        except OSError:  # it has ended, or is a kernel's
            continue
        searched += 1
        for text in found:
            counts[text] += 1
    for text in texts:
        print(counts[text], searched)


main()
