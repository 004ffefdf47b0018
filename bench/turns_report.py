#!/usr/bin/python3
"""Prints the tables of bench/turns: results and targets.

usage: bench/turns_report.py [FILE]     results as a table for docs/performance.md; FILE is
                                        build/bench-turns.jsonl by default
"""

import json
import statistics
import sys

TITLES = {
    "create": "create", "snapshot": "snapshot, 10 MiB changed",
    "snapshot, nothing changed": "snapshot, nothing changed",
    "rollback": "rollback, 10 MiB changed", "fork": "fork x 1", "fork x 100": "fork x 100",
    "pause": "pause", "resume": "resume", "stop": "stop", "start": "start", "destroy": "destroy",
    "turns": "turns on one sandbox",
}
SAME = 1.25  # two p50 on a shared machine differ by up to this factor


def slope(samples):
    """Returns the least-squares slope: the extra microseconds of each turn."""
    middle, mean = (len(samples) - 1) / 2, statistics.fmean(samples)
    over = sum((i - middle) * (us - mean) for i, us in enumerate(samples))
    under = sum((i - middle) ** 2 for i in range(len(samples)))
    return over / under if under else 0


def trend(samples):
    """Returns additional results of a series whose samples are ordered."""
    part = min(100, max(1, len(samples) // 2))
    return {"slope_us": round(slope(samples), 3),
            "first_p50_us": round(statistics.median(samples[:part]), 1),
            "last_p50_us": round(statistics.median(samples[-part:]), 1), "part": part}


class Results:
    def __init__(self, results):
        self.by_name = {(r["group"], r["name"]): r for r in results}

    def p50(self, group, name):
        return self.by_name.get((group, name), {}).get("p50_us")

    def get(self, group, name):
        return self.by_name.get((group, name))


def compare(target, measured, limit, unit="ms"):
    """Returns (target, measured, limit, verdict); None means not measured."""
    if measured is None or limit is None:
        return target, "-", "-", "not measured"
    scale = 1e3 if unit == "ms" else 1
    verdict = "met" if measured <= limit else "NOT MET"
    return target, f"{measured / scale:.2f} {unit}", f"{limit / scale:.2f} {unit}", verdict


def times(value, factor, more=0):
    return None if value is None else value * factor + more


def ratio(one, other):
    return None if one is None or not other else one / other


def flat(results, name):
    row = results.get("turns", name) or {}
    return ratio(row.get("last_p50_us"), row.get("first_p50_us"))


def targets(found):
    results = Results(found)
    p50 = results.p50
    still = "snapshot, nothing changed"
    return [
        compare("snapshot, 10 MiB changed: 1.5 x bare ioctl", p50("snapshot", "holt"),
                times(p50("snapshot", "bare ioctl"), 1.5)),
        compare("snapshot, nothing changed: 1.5 x bare ioctl", p50(still, "holt"),
                times(p50(still, "bare ioctl"), 1.5)),
        compare("snapshot, 1 GiB template / small one",
                ratio(p50("snapshot", "holt, 1 GiB template"), p50("snapshot", "holt")), SAME, "x"),
        compare("snapshot, 1 GiB in the sandbox / none",
                ratio(p50("snapshot", "holt, 1 GiB in the sandbox"), p50("snapshot", "holt")), SAME,
                "x"),
        compare("rollback with a running shell: 5 ms", p50("rollback", "holt"), 5000),
        compare("fork x 100: 100 ms + 100 x bare ioctl", p50("fork x 100", "holt"),
                times(p50(still, "bare ioctl"), 100, 100_000)),
        compare("resume: 2 ms", p50("resume", "holt"), 2000),
        compare("create, 1 GiB template / small one",
                ratio(p50("create", "holt, 1 GiB template"), p50("create", "holt, small template")),
                SAME, "x"),
        compare("snapshot, last turns / first turns", flat(results, "holt, snapshot"), SAME, "x"),
        compare("rollback, last turns / first turns", flat(results, "holt, rollback"), SAME, "x"),
    ]


def groups(results):
    for group, title in TITLES.items():
        rows = sorted((r for r in results if r["group"] == group), key=lambda r: r["p50_us"])
        if rows:
            yield title, rows


def print_tables(results):
    for title, rows in groups(results):
        print(f"\n{title:56} {'n':>5} {'p50 ms':>9} {'p99 ms':>9} {'min ms':>9} {'steal %':>8}")
        for r in rows:
            print(f"  {r['name']:54} {r['n']:5} {r['p50_us'] / 1e3:9.3f} {r['p99_us'] / 1e3:9.3f} "
                  f"{r['min_us'] / 1e3:9.3f} {r['steal_pct']:8.1f}")
            if "slope_us" in r:
                print(f"    {r['slope_us']:+.2f} us a turn; p50 of the first {r['part']} "
                      f"{r['first_p50_us'] / 1e3:.3f} ms, of the last {r['last_p50_us'] / 1e3:.3f} ms")
    print(f"\n{'target':44} {'measured':>12} {'at most':>12}")
    for target, measured, limit, verdict in targets(results):
        print(f"  {target:42} {measured:>12} {limit:>12}  {verdict}")


def print_markdown(results):
    for title, rows in groups(results):
        print(f"| {title} | n | p50 | p99 | min |\n|---|---|---|---|---|")
        for r in rows:
            name = f"**{r['name']}**" if r["name"].startswith("holt") else r["name"]
            print(f"| {name} | {r['n']} | " + " | ".join(
                f"{r[key] / 1e3:.3g}" for key in ("p50_us", "p99_us", "min_us")) + " |")
        print()
        for r in rows:
            if "slope_us" in r:
                print(f"{r['name']}: {r['slope_us']:+.2f} us a turn; first {r['part']} "
                      f"{r['first_p50_us'] / 1e3:.3g} ms, last {r['last_p50_us'] / 1e3:.3g} ms.\n")
    print("| target | measured | at most | |\n|---|---|---|---|")
    for row in targets(results):
        print("| " + " | ".join(row) + " |")


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "build/bench-turns.jsonl"
    with open(path) as lines:
        print_markdown([json.loads(line) for line in lines])


if __name__ == "__main__":
    main()
