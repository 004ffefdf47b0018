#!/usr/bin/python3 -IS
"""The client of the tool run_code: sends a cell to the server, prints its output and results.
usage: run.py REQUEST    (JSON: code, language, context_name, restart, timeout, images, waits, is_rolled_back)

It exits with 75 if nothing listens, unless it is to wait; with 1 if the code fails. Images go to
files below the directory `images`."""

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


def lines(reply):
    """Yields the lines of a chunked body."""
    rest = b""
    while True:
        size = int(reply.readline().split(b";")[0] or b"0", 16)
        *whole, rest = (rest + reply.read(size)).split(b"\n")
        yield from whole
        if size == 0:
            return
        reply.readline()


class Printer:
    def __init__(self, images):
        self.images, self.count, self.status = images, 0, 0

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

    def result(self, event):
        image = next((each for each in ("png", "jpeg") if each in event), None)
        if image:
            self.count += 1
            os.makedirs(self.images, exist_ok=True)
            with open(f"{self.images}/{self.count:02}.{image}", "wb") as file:
                file.write(binascii.a2b_base64(event[image]))
            print(f"[image {self.count}]", flush=True)
        else:
            text = next((event[each] for each in ("text", "markdown", "html", "svg", "latex") if each in event), "")
            print(text, flush=True)


def main():
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    sys.stderr.reconfigure(encoding="utf-8", errors="replace")
    request = json.loads(sys.argv[1])
    images, rolled_back = request.pop("images"), request.pop("is_rolled_back")
    connection = connect(request.pop("waits"))
    if rolled_back:
        print("[the kernels ended with a rollback: there are no variables from before]", file=sys.stderr)
    body = json.dumps(request).encode()
    connection.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    reply = connection.makefile("rb")
    status = int(reply.readline().split()[1])
    headers = {}
    for line in iter(reply.readline, b"\r\n"):
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    if status != 200:
        print(reply.read(int(headers.get(b"content-length", b"0"))).decode(), file=sys.stderr)
        return 1
    printer = Printer(images)
    for line in lines(reply):
        if line:
            printer.show(json.loads(line))
    return printer.status


sys.exit(main())
