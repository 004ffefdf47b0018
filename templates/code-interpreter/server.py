#!/usr/bin/python3
"""The code interpreter of a sandbox: the protocol of E2B in front of Jupyter kernels.

A context is a kernel with a directory; it runs one cell at a time, others wait. Python and bash
kernels are forked from a process that has imported ipykernel (forked.py); kernels of other languages
are programs. All are driven by jupyter-client.

    POST   /execute                {code, context_id?, language?, context_name?, env_vars?, timeout?,
                                    restart?} -> lines of JSON
    GET    /contexts               POST /contexts {language?, cwd?}
    DELETE /contexts/ID            POST /contexts/ID/restart
    GET    /names                  the contexts that have a name (context_name), for the tool run_code
    GET    /health

A client that goes away, or a timeout (in seconds), interrupts its cell. A kernel that does not react
to that is killed and started again.
"""

import asyncio
import gc
import json
import os
import shlex
import shutil
import signal
import ssl
import sys
import tempfile
import time
import uuid

sys.dont_write_bytecode, wrote_bytecode = True, sys.dont_write_bytecode
import forked  # noqa: E402
import bash_kernel  # noqa: E402,F401  # before the fork, for all kernels
import display  # noqa: E402,F401
sys.dont_write_bytecode = wrote_bytecode

PORT = 49999
BODY_MAX = 64 << 20
OUTPUT_MAX = 16 << 20    # bytes of a cell that a client gets
RESULTS_MAX = 128 << 20  # the same for its results: pictures, tables
KEPT_MAX = 1 << 30       # bytes of a cell's output that are kept in a file
KEPT_FILES = 4           # of a context
EVENTS_MAX = 4096        # that wait for a slow client; then its kernel waits
EVENT_BYTES = 256        # that an event takes besides its text
CONTEXTS_MAX = 64
START_SECONDS = 60
RECONNECT_MS = 5         # until a forked kernel listens; twice as long after each attempt
RECONNECT_MAX_MS = 100   # of a kernel that has ended
INTERRUPT_SECONDS = 4
ABORTED_SECONDS = 0.05
REPLY_SECONDS = 0.002
SILENCE_SECONDS = 60     # then a client hears that the cell still runs
OOM_SECONDS = 2          # until memory.events is current
OUTPUT_DIR = "/tmp/code-interpreter"
MEMORY_EVENTS = "/sys/fs/cgroup/memory.events"
HERE = os.path.dirname(os.path.abspath(__file__))
HOME = "/home/user" if os.path.isdir("/home/user") else os.path.expanduser("~")
ALIASES = {"py": "python", "python3": "python", "sh": "bash", "js": "javascript", "ts": "typescript"}
FORMATS = {"text/plain": "text", "text/html": "html", "text/markdown": "markdown",
           "image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpeg",
           "application/pdf": "pdf", "text/latex": "latex", "application/json": "json",
           "application/javascript": "javascript", "e2b/data": "data", "e2b/chart": "chart"}

runtime_dir = tempfile.mkdtemp(prefix="kernels-")
restart_reason = os.environ.pop("HOLT_RESTARTED", None)  # why an earlier server has ended
forks = forked.register()  # before there are threads
if __name__ == "__main__":
    forks.start_early(os.path.join(runtime_dir, "first.json"), HOME, dict(os.environ))

import zmq.asyncio  # noqa: E402
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel  # noqa: E402
from jupyter_client.manager import AsyncKernelManager  # noqa: E402
# tornado would read all certificates, which takes 20 ms; this server has no TLS.
make_context, ssl.create_default_context = \
    ssl.create_default_context, lambda _: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
from tornado import httpserver, web  # noqa: E402
ssl.create_default_context = make_context
from tornado.iostream import StreamClosedError  # noqa: E402
from tornado.netutil import bind_sockets  # noqa: E402


# The kernels.


class Specs(KernelSpecManager):
    """The kernels of this file, then those that are installed for Jupyter, by name or language."""

    def own(self, name):
        if name in ("python", "bash"):
            return KernelSpec(argv=["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                              language=name, display_name=name,
                              metadata={"kernel_provisioner": {"provisioner_name": forked.NAME}})
        tslab = shutil.which("tslab")
        if name in ("javascript", "typescript") and tslab:
            dist = os.path.join(os.path.dirname(os.path.realpath(tslab)), "../dist")
            argv = ["node", os.path.join(HERE, "tslab.js"), os.path.normpath(dist), "kernel",
                    "--config-path", "{connection_file}"]
            return KernelSpec(argv=argv + ["--js"] * (name == "javascript"), language=name, display_name=name)
        if name == "r" and os.path.isdir("/usr/lib/R/site-library/IRkernel"):
            argv = ["R", "--slave", "-e", "IRkernel::main()", "--args", "{connection_file}"]
            return KernelSpec(argv=argv, language=name, display_name=name)
        return None

    def get_kernel_spec(self, kernel_name):  # KernelManager calls "python" by its older name
        return self.own("python" if kernel_name == "python3" else kernel_name) or \
            super().get_kernel_spec(kernel_name)

    def languages(self):
        names = [each for each in ("python", "javascript", "typescript", "bash", "r") if self.own(each)]
        known = names + ["python3"] + ["ir"] * ("r" in names)
        return names + [each for each in self.find_kernel_specs() if each not in known]


class Variables:
    """Code that sets variables of the environment for one cell, in the language of the kernel."""

    setters = {
        "python": lambda name, value: f"__import__('os').environ[{name!r}] = {value!r}",
        "javascript": lambda name, value: f"process.env[{json.dumps(name)}] = {json.dumps(value)}",
        "r": lambda name, value: f"Sys.setenv({json.dumps(name)} = {json.dumps(value)})",
        "bash": lambda name, value: f"export {name}={shlex.quote(value)}",
    }
    removers = {
        "python": lambda name: f"__import__('os').environ.pop({name!r}, None)",
        "javascript": lambda name: f"delete process.env[{json.dumps(name)}]",
        "r": lambda name: f"Sys.unsetenv({json.dumps(name)})",
        "bash": lambda name: f"unset {name}",
    }

    def __init__(self, language, values):
        self.language = "javascript" if language == "typescript" else language
        self.values = values

    def code_to_set(self):
        make = self.setters.get(self.language)
        return "\n".join(make(*each) for each in self.values.items()) if make else ""

    def code_to_reset(self):
        """Gives each variable the value that it has in the sandbox, or removes it."""
        if self.language not in self.setters:
            return ""
        return "\n".join(self.setters[self.language](name, os.environ[name]) if name in os.environ
                         else self.removers[self.language](name) for name in self.values)


class OomKills:
    """How many processes of the sandbox were killed because of its memory limit. Reading the file
    makes holt-init renew it, a moment later."""

    @staticmethod
    def read():
        """Returns the time of the last renewal and the count; (None, 0) if nothing counts them."""
        try:
            changed = os.stat(MEMORY_EVENTS).st_mtime_ns
            with open(MEMORY_EVENTS, encoding="ascii") as file:
                return changed, next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)
        except (OSError, ValueError):
            return None, 0

    @classmethod
    async def count(cls, enough):
        """Returns the current count, or one that is greater than `enough`."""
        first, found = cls.read()
        changed, until = first, time.monotonic() + OOM_SECONDS
        while changed is not None and changed == first and found <= enough and time.monotonic() < until:
            await asyncio.sleep(0.03)
            changed, found = cls.read()
        return found


def byte_count(text):
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


class Kernel:
    """A running kernel: its process, its channels, and the cell that gets its messages."""

    specs = Specs()
    zmq_contexts = {True: zmq.asyncio.Context(), False: zmq.asyncio.Context()}
    zmq_contexts[True].setsockopt(zmq.RCVHWM, forked.QUEUE_MESSAGES)  # then a forked kernel waits
    zmq_contexts[True].setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
    zmq_contexts[True].setsockopt(zmq.RECONNECT_IVL_MAX, RECONNECT_MAX_MS)
    zmq_contexts[False].setsockopt(zmq.RCVHWM, 0)  # others would drop messages

    def __init__(self, language, cwd):
        self.language, self.cwd = language, cwd
        self.manager = self.client = self.reader = self.watcher = None
        self.cell, self.is_ready = None, asyncio.Event()
        self.cause, self.is_told = None, False  # of its end; whether a client has heard it
        self.oom_kills = None

    async def start(self):
        self.oom_kills = asyncio.ensure_future(OomKills.count(1 << 62))
        is_forked = self.language in ("python", "bash")
        self.manager = AsyncKernelManager(
            kernel_name=self.language, kernel_spec_manager=self.specs, context=self.zmq_contexts[is_forked],
            connection_file=(self.language == "python" and self.cwd == HOME and forks.take_early()) or
            os.path.join(runtime_dir, uuid.uuid4().hex + ".json"),
            transport="ipc" if is_forked else "tcp")
        if is_forked:
            self.manager.ip = self.manager.connection_file[:-5]
        await self.manager.start_kernel(cwd=self.cwd, env=dict(os.environ), **quiet(is_forked))
        if not is_forked:
            forked.prefer_for_oom_kill(self.manager.provisioner.pid)
        self.client = self.manager.client(context=self.zmq_contexts[is_forked])
        self.client.start_channels(stdin=False, hb=False)
        self.watcher = asyncio.ensure_future(self.watch())
        self.reader = asyncio.ensure_future(self.read())
        self.reader.add_done_callback(self.reader_ended)
        await asyncio.wait_for(self.wait_ready(), START_SECONDS)

    async def wait_ready(self):
        """Asks until the kernel answers on both channels: a subscription takes a moment."""
        while not self.is_ready.is_set():
            if self.watcher.done():
                raise Refusal(500, f"the kernel of '{self.language}' ended when it started")
            self.client.kernel_info()
            try:
                await asyncio.wait_for(self.is_ready.wait(), 0.05)
            except asyncio.TimeoutError:
                pass

    async def read(self):
        """Passes messages about the cell that runs to it; output of earlier cells is dropped."""
        while True:
            while self.cell and self.cell.queue.qsize() > EVENTS_MAX:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0)  # a message that is there would be received without a turn of the loop
            message = self.parse(await self.client.iopub_channel.socket.recv_multipart())
            self.is_ready.set()
            if message and self.cell and message["parent_header"].get("msg_id") == self.cell.id:
                self.cell.take(message["msg_type"], message["content"])
                if self.cell.is_idle:
                    self.take_replies()
                    if not self.cell.is_over:
                        asyncio.ensure_future(self.wait_reply(self.cell))

    def reader_ended(self, task):
        """A cell whose messages are not read would never end."""
        if not task.cancelled() and self.is_alive():
            self.cause = f"the kernel was ended after an error of the server ({task.exception()!r})"
            asyncio.ensure_future(self.manager.provisioner.kill())

    def parse(self, parts):
        """Returns a message, or None for one that the kernel has not signed."""
        session = self.client.session
        try:
            return session.deserialize(session.feed_identities(parts)[1])
        except ValueError:
            return None

    def take_replies(self):
        """Reads the replies that are there. It polls, because zmq.asyncio can miss the event for a
        reply when a request is sent at that moment."""
        socket = self.client.shell_channel.socket
        while True:
            received = socket.recv_multipart(flags=zmq.NOBLOCK)  # a future that is done
            if received.exception():
                return
            message = self.parse(received.result())
            if message and self.cell and message["parent_header"].get("msg_id") == self.cell.id:
                self.cell.take_reply(message["content"])

    async def wait_reply(self, cell):
        """Waits for the reply to a cell of a kernel that does not announce its cells."""
        while self.cell is cell and cell.reply is None and self.is_alive():
            self.take_replies()
            await asyncio.sleep(REPLY_SECONDS)

    async def watch(self):
        """Waits for the end of the process."""
        process = self.manager.provisioner.process
        if hasattr(process, "ended"):
            status = await asyncio.shield(process.ended)
        else:
            while process.poll() is None:
                await asyncio.sleep(0.1)
            status = process.returncode
        self.cause = self.cause or await self.explain(status)
        if self.cell:
            self.cell.put(("died", self.cause))

    async def explain(self, status):
        before = await self.oom_kills
        if status == -signal.SIGKILL and await OomKills.count(before) > before:
            return "the kernel was killed because the sandbox reached its memory limit; its variables are lost"
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"the kernel {how}; its variables are lost"

    def is_alive(self):
        return bool(self.watcher) and not self.watcher.done()

    def execute(self, cell, code, silent):
        self.cell, cell.is_idle, cell.is_over, cell.reply = cell, False, False, None
        if not self.is_alive():
            cell.put(("died", self.cause))
            return
        cell.id = self.client.execute(code, silent=silent, store_history=not silent,
                                      allow_stdin=False, stop_on_error=False)

    async def interrupt(self):
        if self.is_alive():
            await self.manager.interrupt_kernel()

    async def stop(self, cause):
        """Kills the process and its children, and tells the cell that runs why."""
        self.cause = self.cause or cause
        if not self.manager:
            return
        pid = self.manager.provisioner and self.manager.provisioner.pid
        try:
            await self.manager.shutdown_kernel(now=True)
        except (ProcessLookupError, RuntimeError):
            pass
        if pid and self.watcher:
            await self.watcher
        if self.reader:
            self.reader.cancel()
        if self.client:
            self.client.stop_channels()
        self.manager.cleanup_connection_file()
        self.manager.cleanup_ipc_files()


def quiet(is_forked):
    """A program as a kernel writes nothing to the log of the server, and starts its own group."""
    return {} if is_forked else {"stdout": log, "stderr": log}


# The cells.


class Cell:
    """One execution: turns the messages of the kernel into events for the client, in order."""

    def __init__(self, name):
        self.id, self.name, self.queue = None, name, asyncio.Queue()
        self.output_bytes = self.result_bytes = self.kept_bytes = 0
        self.file, self.reply = None, None
        self.has_count = self.has_failed = self.is_idle = self.is_over = self.is_finished = False

    def put(self, item):
        self.queue.put_nowait(item)

    def take(self, kind, content):
        if kind == "stream":
            self.add_output(content["name"], content["text"])
        elif kind == "execute_input":
            self.add_count(content["execution_count"])
        elif kind in ("execute_result", "display_data"):
            self.add_result(content["data"], kind == "execute_result")
        elif kind == "error":
            self.fail(content["ename"], content["evalue"], "".join(content["traceback"]))
        elif kind == "status" and content["execution_state"] == "idle":
            self.is_idle = True
            self.end()

    def take_reply(self, content):
        self.reply = content
        self.end()

    def end(self):
        """Ends a cell when its kernel is idle. What a reply says, most kernels have said before; some
        do not announce their cells (execute_input), and have the count and errors only there."""
        if not self.is_idle or self.is_over or (self.reply is None and not self.has_count):
            return
        self.is_over = True
        if not self.has_count and self.reply["status"].startswith("abort"):
            self.put(("aborted", None))
            return
        if not self.has_count and self.reply["status"] == "error":
            self.fail(self.reply.get("ename", "Error"), self.reply.get("evalue", "the cell has failed"),
                      "".join(self.reply.get("traceback", [])))
        self.add_count((self.reply or {}).get("execution_count"))
        self.finish()
        self.put(("idle", None))

    def add_count(self, count):
        if count is not None and not self.has_count:
            self.has_count = True
            self.event({"type": "number_of_executions", "execution_count": count})

    def fail(self, name, value, traceback):
        if not self.has_failed:
            self.has_failed = True
            self.event(error(name, value, traceback))

    def event(self, event):
        self.put(("event", event))

    def add_output(self, stream, text):
        size = byte_count(text)
        if self.output_bytes + size <= OUTPUT_MAX and not self.file:
            self.output_bytes += size
            self.event({"type": stream, "text": text, "timestamp": time.time_ns()})
            return
        data = text.encode("utf-8", "replace")
        room = 0 if self.file else OUTPUT_MAX - self.output_bytes
        while room < len(data) and data[room] & 0xc0 == 0x80:  # not within a character
            room -= 1
        if room > 0:
            self.output_bytes += room
            self.event({"type": stream, "text": data[:room].decode(), "timestamp": time.time_ns()})
        self.keep(data[max(room, 0):])

    def keep(self, data):
        """Writes output that the client does not get to a file."""
        if not self.file:
            os.makedirs(OUTPUT_DIR, exist_ok=True)
            self.file = open(os.path.join(OUTPUT_DIR, self.name + ".txt"), "wb")
        self.kept_bytes += len(data)
        if self.kept_bytes <= KEPT_MAX:
            try:
                self.file.write(data)
            except OSError:  # the disk is full
                self.kept_bytes = KEPT_MAX + 1

    def finish(self):
        """Says where output is that the client did not get."""
        if not self.file or self.is_finished:
            return
        self.is_finished = True
        try:
            self.file.close()
        except OSError:
            self.kept_bytes = KEPT_MAX + 1
        rest = "the rest" if self.kept_bytes <= KEPT_MAX else "a part of the rest"
        self.event({"type": "stderr", "timestamp": time.time_ns(),
                    "text": f"\n[the output was cut after {OUTPUT_MAX} bytes; {rest} is in {self.file.name}]\n"})

    def add_result(self, data, is_main):
        if "application/vnd.holt.error" in data:
            self.fail(**data["application/vnd.holt.error"])
            return
        is_main = data.pop("application/vnd.holt.value", False) or is_main
        result = {"type": "result", "is_main_result": is_main}
        extra = {kind: value for kind, value in data.items() if kind not in FORMATS}
        result.update({FORMATS[kind]: value for kind, value in data.items()
                       if kind in FORMATS and value not in (None, {})})
        text = result.get("text")
        if isinstance(text, str) and len(text) > 1 and text[0] == text[-1] == "'":
            result["text"] = text[1:-1]  # as E2B does
        if extra:
            result["extra"] = extra
        size = sum(byte_count(each if isinstance(each, str) else json.dumps(each)) for each in data.values())
        self.result_bytes += size + EVENT_BYTES
        if self.result_bytes > RESULTS_MAX:
            result = {"type": "result", "is_main_result": is_main,
                      "text": f"[a result of {size} bytes was left out: the cell has too many]"}
        self.event(result)


def error(name, value, traceback=None):
    return {"type": "error", "name": name, "value": value,
            "traceback": f"{name}: {value}" if traceback is None else traceback}


def remove_file(path):
    try:
        os.remove(path)
    except OSError:
        pass


class Context:
    """A kernel that can be replaced, and the queue of cells for it."""

    def __init__(self, language, cwd):
        self.id, self.language, self.cwd = str(uuid.uuid4()), language, cwd
        self.lock, self.cells, self.is_removed = asyncio.Lock(), 0, False
        self.kernel, self.starting, self.notice = None, None, None
        self.files = []  # of output that was cut

    def describe(self):
        return {"id": self.id, "language": self.language, "cwd": self.cwd}

    async def ready(self):
        """Returns a running kernel; callers that come meanwhile wait for the same start."""
        if self.kernel and self.kernel.is_alive() and not self.starting:
            return self.kernel
        if not self.starting:
            self.starting = asyncio.ensure_future(self.start())
            self.starting.add_done_callback(self.started)
        return await asyncio.shield(self.starting)

    def started(self, task):
        self.starting = None
        if not task.cancelled():
            task.exception()

    async def start(self):
        if self.kernel:
            if not self.kernel.is_told:
                self.notice = self.kernel.cause
            await self.kernel.stop(self.kernel.cause)
        kernel = self.kernel = Kernel(self.language, self.cwd)
        try:
            await kernel.start()
        except BaseException:
            await kernel.stop("it did not start")
            self.kernel = None
            raise
        return kernel

    async def end(self, cause):
        """Ends the kernel, and with it the cell that runs."""
        if self.starting:
            await asyncio.wait([self.starting])
        kernel = self.kernel
        if kernel:
            await kernel.stop(cause)

    async def restart(self):
        await self.end("the context was restarted")
        async with self.lock:
            self.kernel, self.notice = None, None
            await self.ready()

    async def run(self, request, send, gone):
        """Runs one cell, unless the client goes away while others run or the context is removed.
        Returns whether it has run."""
        taking = asyncio.ensure_future(self.lock.acquire())
        await asyncio.wait([taking, gone], return_when=asyncio.FIRST_COMPLETED)
        if not taking.done():
            taking.cancel()
            return False
        try:
            if gone.done() or self.is_removed:
                return False
            await self.run_cell(request, send, gone)
            return True
        finally:
            self.lock.release()

    async def run_cell(self, request, send, gone):
        kernel = await self.ready()
        self.cells += 1
        notice, self.notice = self.notice or contexts.take_notice(), None
        if notice:
            await send({"type": "stderr", "text": f"[{notice}]\n", "timestamp": time.time_ns()})
        variables = Variables(self.language, request.get("env_vars") or {})
        if variables.values:
            await self.run_silently(kernel, variables.code_to_set())
        cell = Cell(f"{self.id}-{self.cells}")
        gone.add_done_callback(lambda _: cell.put(("gone", None)))
        try:
            kernel.execute(cell, request["code"], False)
            await self.follow(kernel, cell, send, request)
            if variables.values and kernel.is_alive():
                await self.run_silently(kernel, variables.code_to_reset())
        finally:
            kernel.cell = None
            self.keep_file(cell.file)

    def keep_file(self, file):
        """Removes files of earlier cells when there are too many."""
        self.files += [file.name] if file else []
        while len(self.files) > KEPT_FILES or (self.is_removed and self.files):
            remove_file(self.files.pop(0))

    async def run_silently(self, kernel, code):
        """Runs code whose output nobody gets; tries again while the kernel refuses code."""
        cell = Cell("silent")
        kernel.execute(cell, code, True)
        while True:
            kind, _ = await cell.queue.get()
            if kind in ("idle", "died"):
                return
            if kind == "aborted":
                await asyncio.sleep(ABORTED_SECONDS)
                kernel.execute(cell, code, True)

    async def follow(self, kernel, cell, send, request):
        """Sends the events of a cell until it ends, is interrupted or its kernel dies."""
        code, timeout = request["code"], request.get("timeout")
        until = time.monotonic() + timeout if timeout else None
        while True:
            left = SILENCE_SECONDS if until is None else min(SILENCE_SECONDS, max(0, until - time.monotonic()))
            try:
                kind, value = cell.queue.get_nowait() if cell.queue.qsize() else \
                    await asyncio.wait_for(cell.queue.get(), left)
            except asyncio.TimeoutError:
                kind, value = "silence", {"type": "keepalive"}
            if until is not None and time.monotonic() >= until and kind not in ("idle", "died"):
                if kind == "event":
                    await send(value)
                await send(error("TimeoutError", await self.break_off(kernel, cell, send, timeout)))
                return
            if kind == "idle":
                return
            if kind == "aborted":  # some kernels refuse code for a moment after an error
                await asyncio.sleep(ABORTED_SECONDS)
                kernel.execute(cell, code, False)
                continue
            if kind == "gone":
                await self.break_off(kernel, cell, None, None)
                return
            if kind == "died":
                await self.send_rest(cell, send)
                kernel.is_told = True
                await send(error("ContextRestarting", value))
                return
            await send(value)

    async def send_rest(self, cell, send):
        """Sends the output that waits, and says where the rest is."""
        cell.finish()
        while cell.queue.qsize():
            kind, event = cell.queue.get_nowait()
            if send and kind == "event" and event["type"] != "error":
                await send(event)

    async def break_off(self, kernel, cell, send, timeout):
        """Interrupts a cell; kills the kernel if that has no effect. Sends the output until then, if
        there is a client. Returns what was done."""
        cause = f"the cell ran longer than {timeout} s" if timeout else "the client of the cell went away"
        await kernel.interrupt()
        until = time.monotonic() + INTERRUPT_SECONDS
        while time.monotonic() < until:
            try:
                kind, event = await asyncio.wait_for(cell.queue.get(), until - time.monotonic())
            except asyncio.TimeoutError:
                break
            if kind in ("idle", "aborted"):
                return f"{cause} and was interrupted"
            if kind == "died":
                await self.send_rest(cell, send)
                kernel.is_told = bool(send)
                return f"{cause}; {kernel.cause}"
            if send and kind == "event" and event["type"] != "error":
                await send(event)
        await self.send_rest(cell, send)
        lost = f"{cause} and did not react to an interrupt: the kernel was restarted, its variables are lost"
        await kernel.stop(lost)
        self.notice, self.kernel = None if timeout else lost, None
        asyncio.ensure_future(self.ready())
        return lost


# The server.


class Refusal(Exception):
    """An answer other than 200."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Contexts:
    """All contexts; code without a context runs in the first one of its language."""

    def __init__(self):
        self.by_id, self.default = {}, {}
        self.lost = self.notice = restart_reason and f"{restart_reason}: there are no variables from before"

    def take_notice(self):
        """Returns why there are no variables from before, for the first cell alone."""
        notice, self.notice = self.notice, None
        return notice

    def make(self, language, cwd=HOME):
        language = ALIASES.get(language.lower().strip(), language.lower().strip())
        try:
            Kernel.specs.get_kernel_spec(language)
        except NoSuchKernel:
            names = ", ".join(Kernel.specs.languages())
            raise Refusal(400, f"no kernel for '{language}' in this sandbox (there are {names})") from None
        if len(self.by_id) >= CONTEXTS_MAX:
            raise Refusal(429, f"limit of {CONTEXTS_MAX} contexts reached: remove one first")
        if not os.access(cwd, os.X_OK) or not os.path.isdir(cwd):
            raise Refusal(400, f"the directory '{cwd}' does not exist or cannot be entered")
        context = Context(language, cwd)
        self.by_id[context.id] = context
        return context

    def of_language(self, language, name="main"):
        """Returns the context of a language by its name; "main" is the default one."""
        key = ALIASES.get(language.lower().strip(), language.lower().strip()), name
        if key not in self.default:
            self.default[key] = self.make(language)
        return self.default[key]

    def find(self, name):
        if name not in self.by_id:
            raise Refusal(404, f"Context {name} not found" + (f" ({self.lost})" if self.lost else ""))
        return self.by_id[name]

    def named(self):
        """Describes the contexts that code reaches by their names."""
        return [{**context.describe(), "name": name} for (_, name), context in self.default.items()]

    async def remove(self, name):
        context = self.find(name)
        del self.by_id[name]
        self.default = {key: each for key, each in self.default.items() if each is not context}
        context.is_removed = True
        await context.end("the context was removed")
        context.keep_file(None)


contexts = Contexts()


class Handler(web.RequestHandler):
    """Common parts: JSON in, refusals as text."""

    SUPPORTED_METHODS = ("GET", "POST", "DELETE")

    def prepare(self):
        self.gone = asyncio.get_running_loop().create_future()

    def on_connection_close(self):
        if not self.gone.done():
            self.gone.set_result(None)

    def fields(self, **kinds):
        try:
            request = json.loads(self.request.body or b"{}")
        except ValueError:
            raise Refusal(400, "the request is not JSON") from None
        if not isinstance(request, dict):
            raise Refusal(400, "the request is not an object")
        for name, kind in kinds.items():
            if request.get(name) is not None and not isinstance(request[name], kind):
                raise Refusal(400, f"'{name}' is of the wrong type")
        return {name: value for name, value in request.items() if value is not None}

    def write_error(self, status_code, **kwargs):
        refusal = kwargs.get("exc_info", (None, None))[1]
        if isinstance(refusal, Refusal):
            self.set_status(refusal.status)
        self.set_header("Content-Type", "text/plain")
        self.finish(str(refusal) if isinstance(refusal, Refusal) else f"{status_code}: {refusal}")

    def log_exception(self, kind, value, trace):
        if kind is not Refusal:
            super().log_exception(kind, value, trace)


class Health(Handler):
    def get(self):
        self.finish("OK")


class Execute(Handler):
    async def post(self):
        request = self.fields(code=str, context_id=str, language=str, context_name=str, env_vars=dict,
                              timeout=(int, float), restart=bool)
        if "code" not in request:
            raise Refusal(400, "'code' is missing")
        if "context_id" in request and "language" in request:
            raise Refusal(400, "Only one of context_id or language can be provided")
        for name, value in request.get("env_vars", {}).items():
            if not name.isidentifier() or not isinstance(value, str):
                raise Refusal(400, f"'{name}' is no variable with a text")
        context = contexts.find(request["context_id"]) if "context_id" in request else \
            contexts.of_language(request.get("language", "python"), request.get("context_name", "main"))
        if request.get("restart"):
            await context.restart()
        self.set_header("Content-Type", "application/json")
        await self.send_head()
        await self.run(context, request)
        if not self.gone.done():
            await self.send({"type": "end_of_execution"})

    async def run(self, context, request):
        try:
            has_run = await context.run(request, self.send, self.gone)
        except Refusal as refusal:  # the kernel does not start
            await self.send(error("ContextRestarting", str(refusal)))
            return
        if not has_run and not self.gone.done():
            await self.send(error("ContextRestarting", "the context was removed"))

    async def send_head(self):
        """Sends the header at once: clients count the time of a cell from then on."""
        try:
            await self.flush()
        except StreamClosedError:
            self.on_connection_close()

    async def send(self, event):
        """Sends an event at once; a slow client holds the cell's queue back, not the kernel."""
        self.write(json.dumps(event) + "\n")
        try:
            await self.flush()
        except StreamClosedError:
            self.on_connection_close()


class ContextList(Handler):
    def get(self):
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps([each.describe() for each in contexts.by_id.values()]))

    async def post(self):
        request = self.fields(language=str, cwd=str)
        context = contexts.make(request.get("language") or "python", request.get("cwd") or HOME)
        try:
            await context.ready()
        except BaseException:
            contexts.by_id.pop(context.id, None)
            raise
        self.finish(context.describe())


class NameList(Handler):
    def get(self):
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(contexts.named()))


class OneContext(Handler):
    async def delete(self, name):
        await contexts.remove(name)
        self.set_status(204)


class Restart(Handler):
    async def post(self, name):
        await contexts.find(name).restart()
        self.set_status(204)


async def main(port):
    gc.enable()
    forks.listen()
    application = web.Application([
        ("/health", Health), ("/execute", Execute), ("/contexts", ContextList), ("/names", NameList),
        ("/contexts/([^/]+)", OneContext), ("/contexts/([^/]+)/restart", Restart)],
        log_function=lambda _: None)
    sockets = bind_sockets(port, "127.0.0.1")
    server = httpserver.HTTPServer(application, max_body_size=BODY_MAX, max_buffer_size=BODY_MAX * 2)
    python = contexts.of_language("python")
    if Kernel.specs.own("javascript"):
        contexts.of_language("javascript")  # its kernel starts when code comes
    starting = asyncio.ensure_future(python.ready())
    server.add_sockets(sockets)
    print("listening on port", sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await asyncio.wait([starting])
    await ended.wait()
    await asyncio.gather(*[each.end("the server ends") for each in contexts.by_id.values()])


if __name__ == "__main__":
    log = open(os.devnull, "wb")
    os.umask(0o022)
    wanted_port = int(sys.argv[1]) if len(sys.argv) > 1 else PORT
    if wanted_port == PORT:  # the contexts of an earlier server are gone
        shutil.rmtree(OUTPUT_DIR, ignore_errors=True)
    try:
        asyncio.run(main(wanted_port))
    finally:
        shutil.rmtree(runtime_dir, ignore_errors=True)
    os._exit(0)  # kernels end with the zygote, and that with this process
