"""Starts Python kernels by fork from a process that has imported ipykernel already.

The zygote is a child of the server with one thread and no ZeroMQ context. The server asks it for a
kernel with one JSON datagram; the zygote forks and reports the process id, and later its wait
status. jupyter-client uses it like any other way to start a kernel: ForkProvisioner is registered
under the name that kernel.json files give as kernel_provisioner.

The first result of a sandbox waits for all of this, so imports are few, and the zygote forks a first
kernel while the server goes on with its own.
"""

import asyncio
import ctypes
import gc
import json
import logging
import os
import select
import signal
import socket
import sys
import threading
import uuid
from types import ModuleType, SimpleNamespace

gc.disable()  # until there is a kernel: it would look at what is imported again and again


def embed(*words, **options):
    """IPython.embed, which imports the terminal when it is called."""
    from IPython.terminal import embed as terminal
    return terminal.embed(*words, **options)


# A kernel works without a debugger, jedi, setuptools and the terminal, whose imports take as long as
# all the rest. Code can import each of them.
ABSENT = {"debugpy": None, "jedi": None, "pkg_resources": None,
          "IPython.terminal.embed": ModuleType("IPython.terminal.embed")}
ABSENT["IPython.terminal.embed"].embed = embed
sys.modules.update(ABSENT)
import ipykernel.debugger  # noqa: E402
import ipykernel.kernelapp  # noqa: E402
import IPython.core.completerlib  # noqa: E402,F401
import pygments.formatters.terminal256  # noqa: E402,F401
import pygments.lexers.python  # noqa: E402,F401
for name in ABSENT:
    del sys.modules[name]

import zmq  # noqa: E402
from jupyter_client.connect import write_connection_file  # noqa: E402
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner  # noqa: E402

NAME = "holt-fork"
MESSAGE_MAX = 1 << 20
PR_SET_PDEATHSIG = 1
OOM_SCORE = "500"  # a kernel is killed before the server
QUEUE_MESSAGES = 64  # between a kernel and the server, in each of both
WRITE_CHARS = 256 << 10  # of output before it is sent
UNSENT_BYTES = 8 << 20  # of other messages, before their sender waits


class Publisher(ipykernel.iostream.IOPubThread):
    """The thread that sends output. A thread that has more to send than the server reads waits:
    otherwise a cell that prints without end would use up the memory of the sandbox."""

    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        self.unsent, self.has_room = 0, threading.Condition()

    def send_multipart(self, msg, *words, **options):
        if threading.current_thread() is self.thread:
            self._really_send(msg, *words, **options)
        elif not self._is_master_process() or not self.thread.is_alive():
            super().send_multipart(msg, *words, **options)
        else:
            self.send_counted(sum(len(each) for each in msg), msg, words, options)

    def send_counted(self, size, msg, words, options):
        def send():
            try:
                self._really_send(msg, *words, **options)
            finally:
                with self.has_room:
                    self.unsent -= size
                    self.has_room.notify_all()

        with self.has_room:
            while self.unsent > UNSENT_BYTES and self.thread.is_alive():
                self.has_room.wait(1)
            self.unsent += size
        self.schedule(send)


class Stream(ipykernel.iostream.OutStream):
    """stdout or stderr of a kernel: long output is sent in parts, and waits for the server."""

    written = 0

    def write(self, string):
        if not isinstance(string, str):
            return super().write(string)
        for start in range(0, len(string) or 1, WRITE_CHARS):
            part = string[start:start + WRITE_CHARS]
            super().write(part)
            self.written += len(part)
            if self.written >= WRITE_CHARS and self._is_master_process():
                self.written = 0
                self.flush()
        return len(string)


class KernelApp(ipykernel.kernelapp.IPKernelApp):
    """A kernel whose output queue is short, and blocks the sender instead of dropping messages."""

    def write_connection_file(self):
        """Leaves the file as the server has written it: the server may be reading it."""

    def init_iopub(self, context):
        self.iopub_socket = context.socket(zmq.PUB)
        self.iopub_socket.linger = 1000
        self.iopub_socket.set(zmq.SNDHWM, QUEUE_MESSAGES)
        self.iopub_socket.set(zmq.XPUB_NODROP, 1)
        self.iopub_port = self._bind_socket(self.iopub_socket, self.iopub_port)
        self.configure_tornado_logger()
        self.iopub_thread = Publisher(self.iopub_socket, pipe=True)
        self.iopub_thread.start()
        self.iopub_socket = self.iopub_thread.background_socket


def prefer_for_oom_kill(pid):
    """Makes the kernel kill this process before the server when memory is short."""
    try:
        with open(f"/proc/{pid}/oom_score_adj", "w", encoding="ascii") as file:
            file.write(OOM_SCORE)
    except OSError:
        pass


def child_main(request):
    """Runs in the process of a new kernel."""
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # the zygote ends with the server
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    prefer_for_oom_kill("self")
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = ["-m", "ipykernel_launcher", "-f", request["connection_file"]]
    app = KernelApp.instance(parent_handle=os.getppid(), log_level=logging.ERROR)
    app.outstream_class = f"{Stream.__module__}.{Stream.__name__}"
    if request["language"] == "bash":
        from bash_kernel import BashKernel
        app.kernel_class = BashKernel
        app.initialize(["-f", request["connection_file"]])
    else:
        app.initialize(["-f", request["connection_file"], "--HistoryManager.hist_file=:memory:"])
        import display
        display.install(app.shell)
    gc.enable()
    app.start()


class Zygote:
    """The loop of the zygote process."""

    def __init__(self, server):
        self.server = server

    def fork(self, request):
        pid = os.fork()
        if pid:
            self.tell({"started": request["id"], "pid": pid})
            return
        status = 1
        try:
            self.server.close()
            child_main(request)
            status = 0
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        except BaseException:  # it is the last frame of this process
            sys.excepthook(*sys.exc_info())
        finally:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(status)

    def tell(self, message):
        self.server.send(json.dumps(message).encode())

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self.tell({"ended": pid, "status": os.waitstatus_to_exitcode(status)})

    def receive(self):
        try:
            return self.server.recv(MESSAGE_MAX)
        except ConnectionResetError:
            return b""

    def run(self):
        wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        while True:
            ready = select.select([self.server, wake_read], [], [])[0]
            if wake_read in ready:
                os.read(wake_read, 4096)
                self.reap()
            if self.server in ready:
                data = self.receive()
                if not data:
                    return
                self.fork(json.loads(data))


class ForkedProcess:
    """What LocalProvisioner expects of a subprocess.Popen."""

    stdin = stdout = stderr = None

    def __init__(self, pid):
        self.pid, self.returncode = pid, None
        self.ended = asyncio.get_running_loop().create_future()

    def poll(self):
        return self.returncode

    wait = poll  # called only after poll has returned a status

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


class Forks:
    """The server's side: asks the zygote for kernels and hears of their ends."""

    def __init__(self):
        gc.freeze()  # the pages of all objects stay shared
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            ours.close()
            Zygote(theirs).run()
            os._exit(0)
        theirs.close()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_MAX)
        ours.setblocking(False)
        self.socket, self.next_id, self.waiting, self.processes = ours, 0, {}, {}
        self.early_file = self.early_connection = self.early_start = None
        self.is_early_taken = False

    def start_early(self, path, cwd, env):
        """Asks for the first Python kernel, before there is a loop. The path is that of its
        connection file."""
        self.early_file, self.early_connection = write_connection_file(
            path, transport="ipc", ip=path[:-5], key=uuid.uuid4().hex.encode())
        self.ask({"language": "python", "cwd": cwd, "env": env, "connection_file": path})

    def take_early(self):
        """Returns the connection file of the kernel that was started early, once."""
        is_first, self.is_early_taken = not self.is_early_taken, True
        return self.early_file if is_first else None

    def listen(self):
        loop = asyncio.get_running_loop()
        if self.early_file:
            self.early_start = self.waiting[self.next_id] = loop.create_future()
        loop.add_reader(self.socket, self.hear)

    def hear(self):
        while True:
            try:
                data = self.socket.recv(MESSAGE_MAX)
            except BlockingIOError:
                return
            if not data:  # without the zygote no kernel can start: the next request starts a new server
                os._exit(70)
            message = json.loads(data)
            if "started" in message:
                process = self.processes[message["pid"]] = ForkedProcess(message["pid"])
                self.waiting.pop(message["started"]).set_result(process)
            else:
                process = self.processes.pop(message["ended"])
                process.returncode = message["status"]
                process.ended.set_result(message["status"])

    def ask(self, request):
        self.next_id += 1
        self.socket.send(json.dumps({**request, "id": self.next_id}).encode())

    async def start(self, request):
        if request["connection_file"] == self.early_file:
            return await self.early_start
        self.ask(request)
        started = self.waiting[self.next_id] = asyncio.get_running_loop().create_future()
        return await started


class ForkProvisioner(LocalProvisioner):
    """Starts a kernel by fork instead of exec."""

    forks = None

    async def pre_launch(self, **kwargs):
        if self.parent.connection_file == self.forks.early_file:  # its kernel may be reading it
            self.parent.load_connection_info(self.forks.early_connection)
            self.parent._connection_file_written = True  # pylint: disable=protected-access
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd, **kwargs):
        language = self.kernel_spec.language
        self.process = await self.forks.start({
            "language": language, "cwd": kwargs.get("cwd") or "/", "env": kwargs["env"],
            "connection_file": self.parent.connection_file})
        self.pid = self.pgid = self.process.pid
        return self.connection_info


def register():
    """Forks the zygote; the caller has no threads yet."""
    ForkProvisioner.forks = Forks()
    KernelProvisionerFactory.instance().provisioners[NAME] = SimpleNamespace(load=lambda: ForkProvisioner)
    return ForkProvisioner.forks
