#!/usr/bin/python3
"""Prints the tables of bench/exec: results and targets.

usage: bench/exec_report.py [FILE]      results as tables for docs/performance.md; FILE is
                                        build/bench-exec.jsonl by default
"""

import json
import sys

from turns_report import Results, compare, ratio, times

TITLES = {
    "exec": "exec of true in a running sandbox", "echo": "echo of a terminal",
    "shell": "a command in a persistent shell",
}
STREAMS = {"output": "output of a process", "input": "input of a process"}


def at_least(target, measured, limit, unit):
    """Like compare, for values where more is better."""
    if measured is None or limit is None:
        return target, "-", "-", "not measured"
    return (target, f"{measured:.2f} {unit}", f">= {limit:.2f} {unit}",
            "met" if measured >= limit else "NOT MET")


def stream_target(results, group):
    """Returns 1 GiB/s, or half the rate of a pipe on the host, whichever is lower."""
    def speed(name):
        return (results.get(group, name) or {}).get("gib_per_s")

    half = times(speed("cat | cat"), 0.5)
    return at_least(f"{group}: 1 GiB/s, or half of cat | cat", speed("libholt"),
                    half if half is None else min(1.0, half), "GiB/s")


def targets(found):
    results = Results(found)
    p50 = results.p50
    return [
        compare("exec: 1.5 x floor", p50("exec", "libholt"), times(p50("exec", "floor"), 1.5)),
        at_least("exec: crun exec / libholt", ratio(p50("exec", "crun exec"), p50("exec", "libholt")),
                 10, "x"),
        stream_target(results, "output"),
        stream_target(results, "input"),
        compare("echo of a terminal: 1 ms", p50("echo", "libholt"), 1000),
        compare("a command in a shell: 0.5 ms", p50("shell", "libholt"), 500),
    ]


def groups(results, titles, key, backwards=False):
    for group, title in titles.items():
        rows = sorted((r for r in results if r["group"] == group), key=lambda r: r[key],
                      reverse=backwards)
        if rows:
            yield title, rows


def print_tables(results):
    for title, rows in groups(results, TITLES, "p50_us"):
        print(f"\n{title:40} {'n':>5} {'p50 ms':>9} {'p99 ms':>9} {'min ms':>9} {'x floor':>8} "
              f"{'steal %':>8}")
        floor = next((r["p50_us"] for r in rows if r["name"] == "floor"), None)
        for r in rows:
            over = f"{r['p50_us'] / floor:8.2f}" if floor else f"{'-':>8}"
            print(f"  {r['name']:38} {r['n']:5} {r['p50_us'] / 1e3:9.3f} {r['p99_us'] / 1e3:9.3f} "
                  f"{r['min_us'] / 1e3:9.3f} {over} {r['steal_pct']:8.1f}")
    for title, rows in groups(results, STREAMS, "gib_per_s", True):
        print(f"\n{title:40} {'n':>5} {'GiB/s':>9} {'best':>9} {'MiB':>9} {'':8} {'steal %':>8}")
        for r in rows:
            best = r["mib"] / 1024 / (r["min_us"] / 1e6)
            print(f"  {r['name']:38} {r['n']:5} {r['gib_per_s']:9.3f} {best:9.3f} {r['mib']:9} "
                  f"{'':8} {r['steal_pct']:8.1f}")
    print(f"\n{'target':40} {'measured':>14} {'at most':>14}")
    for target, measured, limit, verdict in targets(results):
        print(f"  {target:38} {measured:>14} {limit:>14}  {verdict}")


def cell(text):
    return text.replace("|", "\\|")


def bold(name):
    return f"**{name}**" if name.startswith(("holt", "libholt")) else cell(name)


def print_markdown(results):
    for title, rows in groups(results, TITLES, "p50_us"):
        print(f"| {title}, ms | n | p50 | p99 | min |\n|---|---|---|---|---|")
        for r in rows:
            print(f"| {bold(r['name'])} | {r['n']} | " + " | ".join(
                f"{r[key] / 1e3:.3g}" for key in ("p50_us", "p99_us", "min_us")) + " |")
        print()
    for title, rows in groups(results, STREAMS, "gib_per_s", True):
        print(f"| {title} | n | GiB/s | best |\n|---|---|---|---|")
        for r in rows:
            best = r["mib"] / 1024 / (r["min_us"] / 1e6)
            print(f"| {bold(r['name'])} | {r['n']} | {r['gib_per_s']:.3g} | {best:.3g} |")
        print()
    print("| target | measured | at most | |\n|---|---|---|---|")
    for row in targets(results):
        print("| " + " | ".join(map(cell, row)) + " |")


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "build/bench-exec.jsonl"
    with open(path) as lines:
        print_markdown([json.loads(line) for line in lines])


if __name__ == "__main__":
    main()
