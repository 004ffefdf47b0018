"""Events and metrics for the tests, the latter by a parser that takes nothing but Prometheus' text format."""
import http.client, re
from api import *


def events(**fields):
    """All that are remembered; the first is behind what is gone."""
    return [message["event"] for message in
            Connection().stream("EventService/Watch", noFollow=True, **fields).messages() if "event" in message]


def refused_stream(cause, method, **fields):
    try:
        list(Connection().stream(method, **fields).messages())
    except Refused as refusal:
        assert cause in (refusal.cause, refusal.code), f"{cause}: {refusal}"
    else:
        raise AssertionError(f"{method} {fields} was accepted")


NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf'^({NAME})(?:\{{((?:{NAME}="(?:[^"\\\n]|\\\\|\\"|\\n)*",?)*)\}})? '
                    r"(-?[0-9]+(?:\.[0-9]+)?|\+Inf|NaN)$")


def family(name, kinds):
    for suffix in ("_bucket", "_sum", "_count"):
        if name.endswith(suffix) and kinds.get(name.removesuffix(suffix)) == "histogram":
            return name.removesuffix(suffix)
    return name


def parse(page):
    """{(name, labels): value}; anything that is not as it must be is an AssertionError."""
    assert page.endswith("\n"), "the last line has no end"
    kinds, helped, samples, closed, last = {}, set(), {}, set(), None
    for line in page.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in helped, f"{name} is explained twice"
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds and kind in ("counter", "gauge", "histogram"), line
            kinds[name] = kind
        else:
            match = SAMPLE.match(line)
            assert match, f"not a sample: {line!r}"
            name, labels, value = match.group(1), match.group(2) or "", float(match.group(3))
            group = family(name, kinds)
            assert group in kinds, f"{name} has no type"
            assert kinds[group] != "counter" or group.endswith("_total"), f"counter {group}"
            assert group == last or group not in closed, f"the samples of {group} are apart"
            assert (name, labels) not in samples, f"{line!r} comes twice"
            closed.add(group)
            last = group
            samples[name, labels] = value
    check_histograms(kinds, samples)
    return samples


def check_histograms(kinds, samples):
    for name in (name for name, kind in kinds.items() if kind == "histogram"):
        for _, labels in [key for key in samples if key[0] == name + "_count"]:
            prefix = labels + "," if labels else ""
            buckets = [(float(key[1].removeprefix(prefix)[4:-1].replace("+Inf", "inf")), value)
                       for key, value in samples.items()
                       if key[0] == name + "_bucket" and key[1].startswith(prefix + "le=")]
            assert buckets == sorted(buckets) and buckets[-1][0] == float("inf"), (name, labels, buckets)
            counts = [count for _, count in buckets]
            assert counts == sorted(counts) and counts[-1] == samples[name + "_count", labels], (name, labels)
            assert (name + "_sum", labels) in samples


def metrics():
    connection = Connection()
    connection.request("GET", "/metrics")
    response = connection.getresponse()
    equal(200, response.status)
    return parse(response.read().decode())
