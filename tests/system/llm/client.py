"""What runs in the sandbox: requests to llm.holt with plain sockets, so that every byte is seen."""
import concurrent.futures
import http.client
import json
import os
import socket
import sys
import time

KEY = os.environ["ANTHROPIC_API_KEY"]


def ask(prompt, model="claude", stream=True, max_tokens=100, path="/v1/messages", key=KEY, **more):
    """Returns status, body and whether the body is whole."""
    body = json.dumps({"model": model, "stream": stream, "max_tokens": max_tokens,
                       "messages": [{"role": "user", "content": prompt}], **more})
    connection = http.client.HTTPConnection("llm.holt", 80)
    connection.request("POST", path, body, {"x-api-key": key, "content-type": "application/json"})
    reply = connection.getresponse()
    try:
        return reply.status, reply.read().decode(), True
    except (http.client.IncompleteRead, ConnectionError) as error:
        return reply.status, getattr(error, "partial", b"").decode(), False
    finally:
        connection.close()


def say(prompt, **more):
    status, body, is_whole = ask(prompt, **more)
    print(status, "whole" if is_whole else "cut")
    print(body)


def crowd(count, tokens):
    """That many streams at once, all of which must be whole."""
    prompt = f"[[tokens {tokens}]] [[pace 20]] [[usage 10 {tokens}]]"
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        done = list(pool.map(lambda _: ask(prompt), range(count)))
    good = [body for status, body, whole in done if status == 200 and whole and body.count("token") > tokens]
    print(len(good))


def race(count):
    """Requests at once; prints how many of them a budget has let pass."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        statuses = list(pool.map(lambda _: ask("[[delay 300]] [[say x]] [[usage 1 1]]")[0], range(count)))
    print(statuses.count(200), statuses.count(429))


def big(megabytes):
    """A body of that size, most of it one text."""
    status, body, _ = ask("x" * (megabytes << 20), stream=False)
    print(status, body[:100])


def slow():
    """Reads a large stream late and slowly; prints how many tokens came."""
    body = json.dumps({"model": "claude", "stream": True, "max_tokens": 9,
                       "messages": [{"role": "user", "content": "[[tokens 20000]]"}]}).encode()
    with socket.create_connection(("llm.holt", 80)) as each:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        each.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: llm.holt\r\nConnection: close\r\nx-api-key: " + KEY.encode() +
                     b"\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
        time.sleep(1)
        data = bytearray()
        while part := each.recv(65536):
            data += part
    print(data.count(b'"text_delta"'), data.endswith(b"0\r\n\r\n"))


def entry(name):
    """One model of the list, as the clients ask for it."""
    connection = http.client.HTTPConnection("llm.holt", 80)
    connection.request("GET", "/v1/models/" + name, headers={"x-api-key": KEY})
    reply = connection.getresponse()
    print(reply.status, reply.read().decode())


def raw(text, *headers):
    """A body as it is; prints status and reply."""
    connection = http.client.HTTPConnection("llm.holt", 80)
    connection.request("POST", "/v1/messages", text.encode(),
                       {"x-api-key": KEY, **dict(each.split("=", 1) for each in headers)})
    reply = connection.getresponse()
    print(reply.status, reply.read().decode())


def whole(text):
    """All bytes that come back, and whether they are a complete reply without an error."""
    body = text.encode()
    with socket.create_connection(("llm.holt", 80)) as each:
        each.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: llm.holt\r\nConnection: close\r\nx-api-key: " + KEY.encode() +
                     b"\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
        data = bytearray()
        while part := each.recv(65536):
            data += part
    print(data.decode())
    head, _, rest = data.partition(b"\r\n\r\n")
    length = [line.split()[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    if b" 200 " in head and (len(rest) == int(length[0]) if length else rest.endswith(b"0\r\n\r\n")):
        print("complete")


def pair(first, second):
    """Two requests on one connection; prints their status."""
    connection = http.client.HTTPConnection("llm.holt", 80)
    for prompt in (first, second):
        body = {"model": "claude", "max_tokens": 50, "messages": [{"role": "user", "content": prompt}]}
        headers = {"x-api-key": KEY}
        if prompt == "early":  # the provider does not wait for the body
            headers["x-test-early"] = "1"
            body["messages"][0]["content"] = "x" * (30 << 20)
        connection.request("POST", "/v1/messages", json.dumps(body), headers)
        reply = connection.getresponse()
        reply.read()
        print(reply.status, flush=True)


def hoard(count, megabytes):
    """Sends the first part of that many bodies and no more; prints how many are still taken."""
    part = b'{"model":"claude","messages":[{"role":"user","content":"' + b"x" * (megabytes << 20)
    held = []
    for _ in range(count):
        each = socket.create_connection(("llm.holt", 80))
        each.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: llm.holt\r\nx-api-key: " + KEY.encode() +
                     b"\r\nContent-Length: " + str(len(part) + 3).encode() + b"\r\n\r\n" + part)
        held.append(each)
    print("held", flush=True)
    sys.stdin.read()
    statuses = []
    for each in held:
        each.sendall(b'"}]')
        statuses.append(each.recv(64).split()[1].decode())
    print(*statuses)


def abort(count):
    """Goes away in the middle of streams."""
    for _ in range(count):
        connection = http.client.HTTPConnection("llm.holt", 80)
        body = json.dumps({"model": "claude", "stream": True, "max_tokens": 50,
                           "messages": [{"role": "user", "content": "[[tokens 100000]] [[pace 5]]"}]})
        connection.request("POST", "/v1/messages", body, {"x-api-key": KEY})
        connection.getresponse().read1(100)
        connection.close()


def main():
    name, *values = sys.argv[1:]
    if name == "say":
        options = json.loads(values[1]) if len(values) > 1 else {}
        say(values[0], **options)
    elif name in ("entry", "raw", "pair", "whole"):
        globals()[name](*values)
    else:
        globals()[name](*map(int, values))


main()
