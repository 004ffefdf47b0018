#!/usr/bin/env python3
"""The code interpreter of a sandbox: POST /execute runs code in a context and streams its output and results.

It needs only the standard library. A Python context is a separate process (this file, started with
"kernel"), so that code that hangs, exits or crashes affects nothing else. Server and kernel exchange
JSON, one object per line, over two pipes (requests and events) that programs started by the code do
not inherit; stdout and stderr are further pipes, which these programs inherit. A context of another
language keeps only its directory between executions.

    POST   /execute                {code, context_id?, language?, env_vars?, timeout?} -> lines of JSON
    GET    /contexts               POST /contexts {language?, cwd?}
    DELETE /contexts/ID            POST /contexts/ID/restart
    GET    /health
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 49999
BODY_MAX = 64 << 20
HOME = os.path.expanduser("~")
LANGUAGES = {"python": "python", "py": "python", "python3": "python", "bash": "bash", "sh": "bash",
             "javascript": "javascript", "js": "javascript"}
INTERPRETERS = {"bash": "bash", "javascript": "node"}
RICH = {"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg",
        "image/png": "png", "image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex",
        "application/json": "json", "application/javascript": "javascript"}


# The kernel: runs in the process of a context.


class Display:
    """Converts values to results, in every format that they or an installed library support."""

    methods = {"_repr_html_": "html", "_repr_markdown_": "markdown", "_repr_svg_": "svg",
               "_repr_png_": "png", "_repr_jpeg_": "jpeg", "_repr_pdf_": "pdf",
               "_repr_latex_": "latex", "_repr_json_": "json", "_repr_javascript_": "javascript"}

    @staticmethod
    def plain(value):
        if isinstance(value, bytes):
            import base64
            return base64.b64encode(value).decode()
        return value

    def bundle(self, value):
        kinds, make = {}, getattr(type(value), "_repr_mimebundle_", None)
        if make:
            made = make(value)
            made = made[0] if isinstance(made, tuple) else made
            kinds.update({RICH[mime]: self.plain(data) for mime, data in made.items() if mime in RICH})
        for name, kind in self.methods.items():
            method = getattr(type(value), name, None)
            if not method or kind in kinds:
                continue
            try:
                made = method(value)
            except Exception:  # a format that fails must not prevent the others
                continue
            made = made[0] if isinstance(made, tuple) else made
            if made is not None:
                kinds[kind] = self.plain(made)
        return kinds

    @staticmethod
    def columns(frame):
        """Returns the values of a pandas table by column, as JSON values."""
        return {str(name): json.loads(frame.iloc[:, i].to_json(orient="values", date_format="iso"))
                for i, name in enumerate(frame.columns)}

    def picture(self, figure):
        """Returns a matplotlib figure as PNG and closes it."""
        import io
        into = io.BytesIO()
        figure.savefig(into, format="png", bbox_inches="tight")
        sys.modules["matplotlib.pyplot"].close(figure)
        return self.plain(into.getvalue())

    def result(self, value, is_main):
        kinds = self.bundle(value)
        kinds.setdefault("text", repr(value))
        pandas, plot = sys.modules.get("pandas"), sys.modules.get("matplotlib.pyplot")
        if pandas and isinstance(value, pandas.DataFrame):
            kinds["data"] = self.columns(value)
        if plot and isinstance(value, plot.Figure):
            kinds["png"] = self.picture(value)
        return {"type": "result", "is_main_result": is_main, **kinds}

    def figures(self):
        """Returns the open matplotlib figures as results."""
        plot = sys.modules.get("matplotlib.pyplot")
        for number in plot.get_fignums() if plot else []:
            yield self.result(plot.figure(number), False)


class Backend:
    """A matplotlib backend, imported on demand: draws like agg, and shows figures as results."""

    name = "holt_display"

    def __init__(self, show):
        self.show = show

    def find_spec(self, name, _path=None, _target=None):
        from importlib.machinery import ModuleSpec
        return ModuleSpec(name, self) if name == self.name else None

    def create_module(self, _spec):
        return None

    def exec_module(self, module):
        from matplotlib.backends import backend_agg
        module.__dict__.update({name: each for name, each in vars(backend_agg).items() if not name.startswith("__")})
        module.show = lambda *_, **__: self.show()


class Python:
    """A namespace that runs one cell after the other; the value of the last expression is the result."""

    def __init__(self, emit):
        import linecache
        import types
        self.emit, self.count, self.display, self.lines = emit, 0, Display(), linecache
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        self.names = module.__dict__
        self.names.update(__builtins__=__builtins__, display=self.show)
        sys.meta_path.append(Backend(self.show_figures))
        os.environ.setdefault("MPLBACKEND", "module://" + Backend.name)

    def show(self, *values):
        for value in values:
            self.emit(self.display.result(value, False))

    def show_figures(self):
        for figure in self.display.figures():
            self.emit(figure)

    def compile(self, code, name):
        import ast
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        if last and code.rstrip().endswith(";"):
            tree.body.append(last)
            last = None
        body = compile(tree, name, "exec", flags, True)
        return body, last and compile(ast.Expression(last.value), name, "eval", flags, True)

    def evaluate(self, code):
        import inspect
        value = eval(code, self.names)  # pylint: disable=eval-used
        if code.co_flags & inspect.CO_COROUTINE:
            import asyncio
            value = asyncio.run(value)
        return value

    def shell(self, code):
        """Rewrites lines that start with ! (shell commands) or % (pip, cd) to Python."""
        lines = []
        for line in code.split("\n"):
            word = line.lstrip()
            indent = line[:len(line) - len(word)]
            if word.startswith(("%pip ", "!")):
                command = "python3 -m " + word[1:] if word[0] == "%" else word[1:]
                line = f"{indent}__import__('subprocess').run({command!r}, shell=True)"
                line += ";" if not indent else ""
            elif word.startswith("%cd "):
                line = f"{indent}__import__('os').chdir({word[4:].strip()!r})"
            lines.append(line)
        return "\n".join(lines)

    def run(self, code):
        self.count += 1
        self.emit({"type": "number_of_executions", "execution_count": self.count})
        name = f"<cell {self.count}>"
        try:
            try:
                body, last = self.compile(code, name)
            except SyntaxError:
                code = self.shell(code)
                body, last = self.compile(code, name)
            self.lines.cache[name] = (len(code), None, code.splitlines(True), name)
            self.evaluate(body)
            value = self.evaluate(last) if last else None
            if value is not None:
                self.names["_"] = value
                self.emit(self.display.result(value, True))
            self.show_figures()
        except BaseException as error:  # also SystemExit and KeyboardInterrupt: the context continues
            self.fail(error, name)

    def fail(self, error, name):
        import traceback
        told = error.__traceback__
        while told and told.tb_frame.f_code.co_filename == __file__:
            told = told.tb_next
        if isinstance(error, SyntaxError) and error.filename == name:  # the code did not run
            text = "".join(traceback.format_exception_only(type(error), error))
        else:
            text = "".join(traceback.format_exception(type(error), error, told))
        self.emit({"type": "error", "name": type(error).__name__, "value": str(error),
                   "traceback": text})


def kernel_main(requests_fd, events_fd):
    os.set_inheritable(requests_fd, False)
    os.set_inheritable(events_fd, False)
    requests, events = os.fdopen(requests_fd, "r"), os.fdopen(events_fd, "w")
    lock = threading.Lock()

    def emit(event):
        sys.stdout.flush()
        sys.stderr.flush()
        with lock:
            events.write(json.dumps(event, default=repr) + "\n")
            events.flush()

    python = Python(emit)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for line in requests:
        try:
            request = json.loads(line)
            before = dict(os.environ)
            os.environ.update(request.get("env_vars") or {})
            python.run(request["code"])
            for name in request.get("env_vars") or {}:
                if name in before:
                    os.environ[name] = before[name]
                else:
                    os.environ.pop(name, None)
            emit({"type": "end_of_execution"})
        except KeyboardInterrupt:  # it arrived after the end of the code
            emit({"type": "end_of_execution"})


# The server.


class Context:
    """A kernel with a lock: one execution at a time, others wait."""

    def __init__(self, language, cwd):
        self.id, self.language, self.cwd = uuid.uuid4().hex, language, cwd
        self.lock, self.count = threading.Lock(), 0
        self.process = self.requests = self.events = None
        if language == "python":
            self.start()

    def start(self):
        ask, answer = os.pipe(), os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-u", os.path.abspath(__file__), "kernel", str(ask[0]), str(answer[1])],
            cwd=self.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, pass_fds=(ask[0], answer[1]))
        os.close(ask[0])
        os.close(answer[1])
        self.requests, self.events = ask[1], answer[0]

    def kill(self):
        """Kills the process; the thread that reads its output cleans up."""
        process = self.process
        try:
            if process:
                os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def stop(self):
        self.kill()
        process, self.process = self.process, None
        if not process:
            return
        process.wait()
        for fd in (self.requests, self.events):
            if fd is not None:
                os.close(fd)
        self.requests = self.events = None
        process.stdout.close()
        process.stderr.close()

    def remove(self):
        self.kill()
        with self.lock:
            self.stop()

    def restart(self):
        self.kill()
        with self.lock:
            self.stop()
            self.count = 0
            if self.language == "python":
                self.start()

    def describe(self):
        return {"id": self.id, "language": self.language, "cwd": self.cwd}

    def run(self, request, send):
        with self.lock:
            if self.language == "python":
                self.run_kernel(request, send)
            else:
                self.run_program(request, send)

    def run_program(self, request, send):
        self.count += 1
        send({"type": "number_of_executions", "execution_count": self.count})
        program = INTERPRETERS[self.language]
        flag = "-c" if program == "bash" else "-e"
        try:
            self.process = process = subprocess.Popen(
                [program, flag, request["code"]], cwd=self.cwd, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                env={**os.environ, **(request.get("env_vars") or {})})
        except FileNotFoundError:
            send({"type": "error", "name": "InterpreterNotFound", "traceback": "",
                  "value": f"'{program}' is not installed in this sandbox"})
        else:
            Pump(self, process, send).until_closed(request.get("timeout"))
            status = process.wait()
            if status:
                send({"type": "error", "name": "ExitCode", "value": str(status),
                      "traceback": f"the program ended with status {status}"})
            self.stop()
        send({"type": "end_of_execution"})

    def run_kernel(self, request, send):
        if not self.process:
            self.start()
        line = json.dumps({"code": request["code"], "env_vars": request.get("env_vars")}) + "\n"
        pump = Pump(self, self.process, send)
        threading.Thread(target=self.ask, args=(self.requests, line.encode()), daemon=True).start()
        if not pump.until_end(request.get("timeout")):
            self.stop()
            self.start()

    @staticmethod
    def ask(fd, data):
        try:
            while data:
                data = data[os.write(fd, data):]
        except OSError:
            pass  # the kernel has ended; the thread that reads its events handles that


class Pump:
    """Sends the output of a process and its events to the client, in order."""

    def __init__(self, context, process, send):
        import codecs
        self.context, self.process, self.send = context, process, send
        self.rest, self.is_over = b"", False
        self.streams = {process.stdout.fileno(): "stdout", process.stderr.fileno(): "stderr"}
        self.decoders = {fd: codecs.getincrementaldecoder("utf-8")("replace") for fd in self.streams}

    def text(self, fd, is_last=False):
        data = b"" if is_last else os.read(fd, 65536)
        text = self.decoders[fd].decode(data, is_last)
        if text:
            self.send({"type": self.streams[fd], "text": text, "timestamp": time.time_ns()})
        return data

    def drain(self):
        """Sends output that was written before an event ahead of it."""
        while True:
            ready = select.select(list(self.streams), [], [], 0)[0]
            if not any([self.text(fd) for fd in ready]):
                return

    def event(self, line):
        self.drain()
        event = json.loads(line)
        self.is_over = event["type"] == "end_of_execution"
        self.send(event)

    def events(self, fd):
        data = os.read(fd, 65536)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.event(line)
        return data

    def until_end(self, timeout):
        """Returns True if the kernel finished the execution, False if it has ended or timed out."""
        until = time.monotonic() + timeout if timeout else None
        events, streams = self.context.events, list(self.streams)
        while not self.is_over:  # streams precede events in the list: see drain
            left = max(0, until - time.monotonic()) if until else None
            ready = select.select([*streams, events], [], [], left)[0]
            if not ready:
                self.fail("TimeoutError", f"the execution took longer than {timeout} s")
                return False
            for fd in ready:
                if fd != events:
                    if not self.text(fd):
                        streams.remove(fd)
                elif not self.events(fd):
                    self.fail("KernelDied", f"the interpreter has ended ({self.process.wait()})")
                    return False
        return True

    def until_closed(self, timeout):
        until = time.monotonic() + timeout if timeout else None
        streams = list(self.streams)
        while streams:
            left = max(0, until - time.monotonic()) if until else None
            ready = select.select(streams, [], [], left)[0]
            if not ready:
                os.killpg(self.process.pid, signal.SIGKILL)
                until = None
            for fd in ready:
                if not self.text(fd):
                    self.text(fd, True)
                    streams.remove(fd)

    def fail(self, name, value):
        self.drain()
        self.send({"type": "error", "name": name, "value": value, "traceback": f"{name}: {value}"})
        self.send({"type": "end_of_execution"})


class Contexts:
    """All contexts; code without a context runs in the first one of its language."""

    def __init__(self):
        self.lock, self.by_id, self.default = threading.Lock(), {}, {}

    def make(self, language, cwd):
        context = Context(language, cwd)
        with self.lock:
            self.by_id[context.id] = context
        return context

    def of_language(self, language):
        with self.lock:
            context = self.default.get(language)
            if not context:
                context = self.default[language] = Context(language, HOME)
                self.by_id[context.id] = context
            return context

    def find(self, name):
        with self.lock:
            return self.by_id.get(name)

    def list(self):
        with self.lock:
            return [context.describe() for context in self.by_id.values()]

    def remove(self, name):
        with self.lock:
            context = self.by_id.pop(name, None)
            if context and self.default.get(context.language) is context:
                del self.default[context.language]
        if context:
            context.remove()
        return context


class Refusal(Exception):
    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    contexts = Contexts()

    def log_message(self, *words):  # no log
        pass

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            data = self.chunked()
        else:
            length = int(self.headers.get("Content-Length") or 0)
            if length > BODY_MAX:
                raise Refusal(413, "the request is too large")
            data = self.rfile.read(length)
        try:
            request = json.loads(data or b"{}")
        except ValueError:
            raise Refusal(400, "the request is not JSON") from None
        if not isinstance(request, dict):
            raise Refusal(400, "the request is not an object")
        return request

    def chunked(self):
        data = b""
        while True:
            size = int(self.rfile.readline(64).split(b";")[0], 16)
            if len(data) + size > BODY_MAX:
                raise Refusal(413, "the request is too large")
            data += self.rfile.read(size)
            self.rfile.readline(64)
            if size == 0:
                return data

    def answer(self, status, value=None):
        data = b"" if value is None else value.encode() if isinstance(value, str) \
            else json.dumps(value).encode()
        self.send_response(status)
        if value is not None:
            self.send_header("Content-Type",
                             "text/plain" if isinstance(value, str) else "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def context(self, request):
        if request.get("context_id"):
            context = self.contexts.find(request["context_id"])
            if not context:
                raise Refusal(404, f"Context {request['context_id']} not found")
            return context
        return self.contexts.of_language(self.language(request))

    @staticmethod
    def language(request):
        name = request.get("language") or "python"
        if name not in LANGUAGES:
            raise Refusal(400, f"unsupported language '{name}'")
        return LANGUAGES[name]

    def execute(self):
        request = self.body()
        if not isinstance(request.get("code"), str):
            raise Refusal(400, "field 'code' is missing")
        context = self.context(request)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        gone = False

        def send(event):
            nonlocal gone
            data = json.dumps(event).encode() + b"\n"
            try:
                if not gone:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            except OSError:  # the code continues without its client
                gone = True

        context.run(request, send)
        if not gone:
            self.wfile.write(b"0\r\n\r\n")

    def make_context(self):
        request = self.body()
        cwd = request.get("cwd") or HOME
        if not os.path.isdir(cwd):
            raise Refusal(400, f"directory '{cwd}' not found")
        self.answer(200, self.contexts.make(self.language(request), cwd).describe())

    def of_context(self, verb, words):
        if verb == "DELETE" and len(words) == 2:
            if not self.contexts.remove(words[1]):
                raise Refusal(404, f"Context {words[1]} not found")
            return self.answer(204)
        if verb == "POST" and words[2:] == ["restart"]:
            self.body()
            context = self.contexts.find(words[1])
            if not context:
                raise Refusal(404, f"Context {words[1]} not found")
            context.restart()
            return self.answer(204)
        raise Refusal(404, "not found")

    def route(self, verb):
        words = self.path.split("?")[0].strip("/").split("/")
        try:
            if (verb, words) == ("GET", ["health"]):
                self.answer(200, "OK")
            elif (verb, words) == ("POST", ["execute"]):
                self.execute()
            elif (verb, words) == ("GET", ["contexts"]):
                self.answer(200, self.contexts.list())
            elif (verb, words) == ("POST", ["contexts"]):
                self.make_context()
            elif words[0] == "contexts" and len(words) in (2, 3):
                self.of_context(verb, words)
            else:
                raise Refusal(404, "not found")
        except Refusal as refusal:
            self.answer(refusal.status, str(refusal))

    def do_GET(self):
        self.route("GET")

    def do_POST(self):
        self.route("POST")

    def do_DELETE(self):
        self.route("DELETE")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else PORT
    server = Server(("0.0.0.0", port), Handler)
    Handler.contexts.of_language("python")  # so that the first execution need not wait for its start
    print(f"ready on {server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1:2] == ["kernel"]:
        kernel_main(int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
