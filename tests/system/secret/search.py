#!/usr/bin/env python3
"""Searches the memory, the environment and the arguments of processes for a text, which comes by standard input.
usage: search.py PID..."""
import sys


def regions(pid):
    for line in open(f"/proc/{pid}/maps"):
        span, mode = line.split()[:2]
        if mode[0] == "r" and "[vvar" not in line and "[vsyscall" not in line:
            yield [int(end, 16) for end in span.split("-")]


def found(pid, text):
    for name in ("environ", "cmdline"):
        if text in open(f"/proc/{pid}/{name}", "rb").read():
            yield name
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for start, end in regions(pid):
            try:
                memory.seek(start)
                if text in memory.read(end - start):
                    yield f"memory at {start:x}"
            except (OSError, OverflowError, ValueError):
                continue


def main():
    text = sys.stdin.buffer.read().strip()
    assert text and len(sys.argv) > 1
    for pid in sys.argv[1:]:
        for where in found(pid, text):
            print(f"process {pid}: {where}")


main()
