"""Tool calls for tests: tool("bash", cmd="true") in the sandbox `box`, with the API of the daemon at $HOLT_HOST."""
import base64, http.client, json, os, re, subprocess, sys, threading, time
from api import Connection, Refused, call, equal, run, start

box = os.environ.get("box", "")


class Result(dict):
    """The result of a call; `text` is all of its text."""

    @property
    def text(self):
        return "\n".join(block["text"] for block in self["content"] if "text" in block)


def execute(name, params, connection=None, **fields):
    return Result((connection or Connection()).call("ToolService/Execute", **{"sandboxId": box, **fields}, tool=name,
                                                    params=params))


def tool(name, /, **params):
    """A call that must succeed."""
    result = execute(name, params)
    assert not result["isError"], f"{name} {str(params)[:200]}: {result.text[:2000]}"
    return result


def wrong(name, /, *parts, **params):
    """A call whose result must be an error that contains these words."""
    result = execute(name, params)
    assert result["isError"], f"{name} {params} did it: {result.text[:2000]}"
    for part in parts:
        assert part.lower() in result.text.lower(), f"{name} {str(params)[:200]}: no {part!r} in {result.text[:2000]!r}"
    return result.text


def refused(code, name, params=None, **fields):
    """A call that must fail with a code or a cause."""
    try:
        execute(name, params or {}, **fields)
    except Refused as refusal:
        assert code in (refusal.code, refusal.cause), refusal
        return refusal.message
    raise AssertionError(f"{name} {params} was accepted")


def has(text, *parts):
    for part in parts:
        assert part in text, f"no {part!r} in {text[:3000]!r}"


def sh(script):
    """Runs a script in the sandbox without a tool; returns its output."""
    output = run(box, "sh", "-c", script)
    equal((script, 0), (script, output.ended.get("exitCode", 0)))
    return output.stdout


def eventually(claim):
    end = time.monotonic() + 60
    while not claim():
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.05)


class Stream:
    """An ExecuteStream: its events, and a connection that can be closed."""

    def __init__(self, name, params, **fields):
        self.connection = Connection()
        self.events = self.connection.stream("ToolService/ExecuteStream", sandboxId=box, tool=name, params=params,
                                             **fields).messages()

    def said(self, wanted):
        """Waits for this output of the tool."""
        text = ""
        while wanted not in text:
            text += next(self.events)["progress"]["content"]
        return text

    def result(self):
        for event in self.events:
            if "result" in event:
                return Result(event["result"])
        raise AssertionError("the stream has no result")

    def hang_up(self):
        self.connection.sock.close()
        self.connection.close()
