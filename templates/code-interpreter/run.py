#!/usr/bin/python3 -IS
"""The client of the tool run_code: sends a cell to the server, prints its output and results.
usage: run.py REQUEST    (JSON: action, code, language, context_name, restart, timeout, images,
                          images_max, images_bytes, waits)

The action is "run", "list" (the contexts) or "remove" (a context). It exits with 75 if nothing
listens, unless it is to wait; with 1 if the code fails. Images go to files below the directory
`images`."""

import binascii
import json
import os
import re
import socket
import sys
import time

PORT = 49999
NO_SERVER = 75
WAIT_SECONDS = 60


def connect(waits):
    until = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", PORT))
        except OSError:
            if not waits or time.monotonic() > until:
                sys.exit(NO_SERVER)
            time.sleep(0.01)


class Ended(Exception):
    """The server has closed the connection before its reply was whole."""


def read(reply, size):
    data = reply.read(size)
    if len(data) < size:
        raise Ended
    return data


def read_line(reply):
    line = reply.readline()
    if not line.endswith(b"\n"):
        raise Ended
    return line


def lines(reply):
    """Yields the lines of a chunked body."""
    rest = b""
    while True:
        size = int(read_line(reply).split(b";")[0], 16)
        *whole, rest = (rest + read(reply, size)).split(b"\n")
        yield from whole
        if size == 0:
            return
        read_line(reply)


class Printer:
    def __init__(self, request):
        self.images, self.max, self.room = (request.pop(each) for each in ("images", "images_max", "images_bytes"))
        self.count, self.status, self.is_whole = 0, 0, False

    def show(self, event):
        kind = event["type"]
        if kind in ("stdout", "stderr"):
            stream = getattr(sys, kind)
            stream.write(event["text"])
            stream.flush()
        elif kind == "result":
            self.result(event)
        elif kind == "error":
            self.status = 1
            text = re.sub("\x1b\\[[0-9;]*m", "", event["traceback"]) or f"{event['name']}: {event['value']}"
            print(text, file=sys.stderr)
        elif kind == "end_of_execution":
            self.is_whole = True

    def result(self, event):
        image = next((each for each in ("png", "jpeg") if each in event), None)
        if image:
            self.image(image, event[image])
        else:
            text = next((event[each] for each in ("text", "markdown", "html", "svg", "latex") if each in event), "")
            print(text, flush=True)

    def image(self, kind, text):
        """Writes an image to a file, if the result of the call has room for it."""
        self.count += 1
        data = binascii.a2b_base64(text)
        size = len(data) * 4 // 3 + 32  # in the result
        if self.count > self.max or size > self.room:
            print(f"[image {self.count} was left out: one call returns at most {self.max} images, in 24 MiB]", flush=True)
            self.room = 0  # no smaller one may take its place
            return
        self.room -= size
        os.makedirs(self.images, exist_ok=True)
        with open(f"{self.images}/{self.count:04}.{kind}", "wb") as file:
            file.write(data)
        print(f"[image {self.count}]", flush=True)


class Connection:
    """One connection for several requests."""

    def __init__(self, waits):
        self.socket = connect(waits)
        self.reply = self.socket.makefile("rb")

    def ask(self, verb, path, body=b""):
        """Sends a request. Returns the status of the reply and its headers; the body follows."""
        self.socket.sendall(b"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" %
                            (verb, path, len(body)) + body)
        status, headers = int(read_line(self.reply).split()[1]), {}
        for line in iter(lambda: read_line(self.reply), b"\r\n"):
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        return status, headers

    def body(self, headers):
        return read(self.reply, int(headers.get(b"content-length", b"0"))).decode()


def run(connection, request):
    printer = Printer(request)
    try:
        status, headers = connection.ask(b"POST", b"/execute", json.dumps(request).encode())
        if status != 200:
            print(connection.body(headers), file=sys.stderr)
            return 1
        for line in lines(connection.reply):
            if line:
                printer.show(json.loads(line))
    except (Ended, ConnectionError):
        pass
    if not printer.is_whole:
        print("[the code interpreter ended before the cell did: output may be missing, and all variables are lost]",
              file=sys.stderr)
    return printer.status if printer.is_whole else 1


def named(connection):
    _, headers = connection.ask(b"GET", b"/names")
    return json.loads(connection.body(headers))


def list_contexts(connection, _):
    for each in named(connection):
        print(f"{each['name']} ({each['language']})")
    return 0


def remove(connection, request):
    aliases = {"py": "python", "python3": "python", "sh": "bash", "js": "javascript", "ts": "typescript"}
    language = request["language"].lower().strip()
    language = aliases.get(language, language)
    found = [each["id"] for each in named(connection)
             if (each["name"], each["language"]) == (request["context_name"], language)]
    if not found:
        print(f"there is no context '{request['context_name']}' of {language}", file=sys.stderr)
        return 1
    connection.ask(b"DELETE", b"/contexts/" + found[0].encode())
    return 0


def main():
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    sys.stderr.reconfigure(encoding="utf-8", errors="replace")
    request = json.loads(sys.argv[1])
    action = {"run": run, "list": list_contexts, "remove": remove}[request.pop("action")]
    try:
        return action(Connection(request.pop("waits")), request)
    except (Ended, ConnectionError):
        print("the code interpreter has ended: try again", file=sys.stderr)
        return 1


sys.exit(main())
