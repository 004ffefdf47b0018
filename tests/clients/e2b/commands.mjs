// Commands and terminals: run, background, connect, list, kill, stdin, environment, directory, user,
// timeout, large and binary output, the classes of errors; pty create, input, resize, connect, kill.
import assert from "node:assert/strict";
import { AuthenticationError, CommandExitError, InvalidArgumentError, NotFoundError, SandboxNotFoundError, TimeoutError } from "e2b";
import { callSandbox, claim, eventually, finish, refused, run, sandbox, start, stdout } from "./lib.mjs";

await claim("a_command_has_its_output_and_status", async () => {
  const box = await sandbox();
  const chunks = { out: "", err: "" };
  const result = await box.commands.run("echo out; echo err >&2", {
    onStdout: (data) => { chunks.out += data; }, onStderr: (data) => { chunks.err += data; },
  });
  assert.deepEqual([result.exitCode, result.stdout, result.stderr, result.error ?? ""], [0, "out\n", "err\n", ""]);
  assert.deepEqual(chunks, { out: "out\n", err: "err\n" });
  const error = await refused(CommandExitError, run(box, "echo said; echo why >&2; exit 7"));
  assert.deepEqual([error.exitCode, error.stdout, error.stderr, error.error], [7, "said\n", "why\n", "exit status 7"]);
  assert.equal((await refused(CommandExitError, run(box, "no-such-command"))).exitCode, 127);
});

await claim("it_is_a_login_shell_of_the_default_user", async () => {
  const box = await sandbox();
  assert.equal(await stdout(box, 'shopt -q login_shell && echo "$(id -u) $(whoami) $USER $LOGNAME $HOME $PWD"'),
    "1000 user user user /home/user /home/user\n");
  assert.equal(await stdout(box, "stat -Lc %t:%T /proc/self/fd/0"), "1:3\n");
});

await claim("a_command_runs_as_who_where_and_with_what_it_is_told", async () => {
  const box = await sandbox();
  assert.equal(await stdout(box, "id -u; pwd", { user: "root" }), "0\n/root\n");
  assert.equal(await stdout(box, "pwd", { cwd: "/tmp" }), "/tmp\n");
  await box.files.makeDir("sub");
  assert.equal(await stdout(box, "pwd", { cwd: "sub" }), "/home/user/sub\n");
  assert.equal(await stdout(box, "pwd", { cwd: "~/sub" }), "/home/user/sub\n");
  assert.equal(await stdout(box, 'echo "$A|$B"', { envs: { A: "with space", B: "ü\n" } }), "with space|ü\n\n");
  assert.equal(await stdout(box, 'echo "$A"'), "\n");
  await refused(InvalidArgumentError, run(box, "true", { cwd: "/no/such" }), /cwd '\/no\/such' does not exist/);
  await refused(AuthenticationError, run(box, "true", { user: "nobodyhere" }), /invalid username: 'nobodyhere'/);
});

await claim("sudo_gains_the_roots_of_the_sandbox", async () => {
  const box = await sandbox();
  assert.equal(await stdout(box, "sudo id -u"), "0\n");
});

await claim("a_background_command_is_listed_connected_to_and_killed", async () => {
  const box = await sandbox();
  const handle = await start(box, "while :; do echo tick; sleep 0.05; done", { envs: { A: "1" }, cwd: "/tmp" });
  assert.ok(handle.pid > 0);
  await run(box, `kill -0 ${handle.pid}`); // its pid is the one inside
  const listed = (await box.commands.list()).find((each) => each.pid === handle.pid);
  assert.equal(listed.cmd, "/bin/bash");
  assert.deepEqual(listed.args.slice(0, 2), ["-l", "-c"]);
  assert.equal(listed.envs.A, "1");
  assert.equal(listed.cwd, "/tmp");
  let heard = "";
  const other = await box.commands.connect(handle.pid, { timeoutMs: 0, onStdout: (data) => { heard += data; } });
  assert.equal(other.pid, handle.pid);
  await eventually(() => heard.includes("tick") && handle.stdout.includes("tick"));
  await other.disconnect(); // which does not end it
  await run(box, `kill -0 ${handle.pid}`);
  assert.equal(await box.commands.kill(handle.pid), true);
  await refused(CommandExitError, run(box, `kill -0 ${handle.pid} 2>/dev/null`)); // dead when that returns
  const error = await refused(CommandExitError, handle.wait());
  assert.match(error.error, /signal: killed/);
  assert.equal(error.exitCode, -1);
  assert.equal(await box.commands.kill(999999), false);
  await refused(NotFoundError, box.commands.connect(999999), /process with pid 999999 not found/);
});

await claim("a_handle_waits_and_kills", async () => {
  const box = await sandbox();
  const handle = await start(box, "echo a; exit 3");
  const error = await refused(CommandExitError, handle.wait());
  assert.deepEqual([error.exitCode, handle.exitCode, handle.stdout], [3, 3, "a\n"]);
  const sleeper = await start(box, "sleep 100000");
  assert.equal(sleeper.exitCode, undefined);
  assert.equal(await sleeper.kill(), true);
  await assert.rejects(sleeper.wait(), CommandExitError);
  assert.equal(await sleeper.kill(), false);
});

await claim("who_is_late_is_told_the_end", async () => {
  const box = await sandbox();
  const killed = await start(box, "sleep 100000");
  killed.wait().catch(() => {});
  await killed.kill();
  const late = await box.commands.connect(killed.pid, { timeoutMs: 0 });
  assert.equal((await refused(CommandExitError, late.wait())).exitCode, -1);
});

await claim("stdin_is_sent_and_closed", async () => {
  const box = await sandbox();
  const cat = await start(box, "cat; echo done", { stdin: true });
  assert.equal(box.commands.supportsStdinClose, true);
  await box.commands.sendStdin(cat.pid, "first ü\n");
  await cat.sendStdin(new Uint8Array([0x62, 0x79, 0x74, 0x65, 0x73, 0x0a]));
  await eventually(() => cat.stdout.includes("bytes"));
  await box.commands.closeStdin(cat.pid);
  assert.equal((await cat.wait()).stdout, "first ü\nbytes\ndone\n");
  const other = await start(box, "wc -c", { stdin: true });
  for (let i = 0; i < 8; i++) await other.sendStdin("x".repeat(65536));
  await other.closeStdin();
  assert.equal((await other.wait()).stdout.trim(), String(8 * 65536));
  const deaf = await start(box, "sleep 100000");
  await assert.rejects(box.commands.sendStdin(deaf.pid, "x"));
  await deaf.kill();
  await deaf.wait().catch(() => {});
  await refused(NotFoundError, box.commands.sendStdin(999999, "x"));
});

await claim("a_command_ends_at_its_timeout", async () => {
  const box = await sandbox();
  const marked = `sleep 100${process.pid}`;
  await refused(TimeoutError, run(box, `echo $$ > pid; exec ${marked}`, { timeoutMs: 1000 }));
  await eventually(async () => !(await stdout(box, "ps -eo args || true")).includes(marked));
  const abort = new AbortController();
  const waiting = assert.rejects(run(box, "sleep 100000", { signal: abort.signal }));
  abort.abort();
  await waiting;
});

await claim("large_output_is_whole", async () => {
  const box = await sandbox();
  const { stdout: out, stderr } = await run(box, "seq 1000000; seq 1000 >&2");
  assert.equal(out.length, 6888896);
  assert.ok(out.endsWith("\n999999\n1000000\n"));
  assert.equal(stderr.length, 3893);
});

await claim("characters_are_not_torn_and_bytes_do_not_harm", async () => {
  const box = await sandbox();
  const { stdout: text } = await run(box, `python3 -c 'import sys; sys.stdout.write("é€😀" * 100000)'`);
  assert.equal(text, "é€😀".repeat(100000));
  const { stdout: bytes } = await run(box, "printf 'a\\000\\377b'");
  assert.equal(bytes, "a\0�b");
  const { stdout: all } = await run(box, "head -c 1000000 /dev/urandom | base64 -w0 | tee copy; head -c 300000 /dev/urandom > raw; cat raw >&2");
  assert.equal(all, await box.files.read("copy"));
});

await claim("many_commands_at_once_do_not_mix", async () => {
  const box = await sandbox();
  const results = await Promise.all(Array.from({ length: 50 }, (_, i) => run(box, `echo ${i}`)));
  assert.deepEqual(results.map((each) => each.stdout), Array.from({ length: 50 }, (_, i) => `${i}\n`));
});

await claim("two_milliseconds_are_enough_for_an_end", async () => {
  const box = await sandbox();
  for (let i = 0; i < 50; i++) assert.equal((await run(box, ":")).exitCode, 0);
});

await claim("a_command_on_a_killed_sandbox_says_so", async () => {
  const box = await sandbox();
  await box.kill();
  await refused(SandboxNotFoundError, run(box, "true"));
  await assert.rejects(box.commands.list());
  await assert.rejects(box.files.read("a"));
});

await claim("silence_is_filled_with_keepalives", async () => {
  const box = await sandbox();
  const message = JSON.stringify({ process: { cmd: "/bin/sleep", args: ["100000"] }, stdin: false });
  const envelope = Buffer.concat([Buffer.alloc(5), Buffer.from(message)]);
  envelope.writeUInt32BE(message.length, 1);
  const response = await callSandbox(box, "POST", "/process.Process/Start", {
    body: envelope,
    headers: { "Content-Type": "application/connect+json", "Connect-Protocol-Version": "1", "Keepalive-Ping-Interval": "1" },
  });
  assert.equal(response.headers.get("content-type"), "application/connect+json");
  let heard = "";
  for await (const chunk of response.body) {
    heard += Buffer.from(chunk).toString("latin1");
    if (heard.includes("keepalive")) break;
  }
  assert.match(heard, /"start"/);
});

// --- terminals -----------------------------------------------------------------------------------

const decoder = new TextDecoder();
const bytes = (text) => new TextEncoder().encode(text);

async function terminal(box, opts = {}) {
  const said = { text: "" };
  const onData = (data) => { said.text += decoder.decode(data, { stream: true }); };
  const handle = await box.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData, ...opts });
  return { handle, said, says: (part) => eventually(() => said.text.includes(part)) };
}

await claim("a_terminal_is_typed_at_and_resized", async () => {
  const box = await sandbox();
  const { handle, says } = await terminal(box, { envs: { MARK: "marked" }, cwd: "/tmp" });
  await box.pty.sendInput(handle.pid, bytes('echo "<$MARK $TERM $PWD>"\n'));
  await says("<marked xterm-256color /tmp>");
  await box.pty.sendInput(handle.pid, bytes("stty size | tr ' ' x\n"));
  await says("24x80");
  await box.pty.resize(handle.pid, { cols: 132, rows: 43 });
  await box.pty.sendInput(handle.pid, bytes("stty size | tr ' ' x\n"));
  await says("43x132");
  await box.pty.sendInput(handle.pid, bytes("exit 4\n"));
  const error = await refused(CommandExitError, handle.wait());
  assert.equal(error.exitCode, 4);
});

await claim("a_terminal_is_left_and_connected_to_again", async () => {
  const box = await sandbox();
  const { handle, says } = await terminal(box, { user: "root" });
  await box.pty.sendInput(handle.pid, bytes("echo uid=$((0 + UID))-first\n"));
  await says("uid=0-first");
  await handle.disconnect();
  let heard = "";
  const again = await box.pty.connect(handle.pid, { timeoutMs: 0, onData: (data) => { heard += decoder.decode(data); } });
  await box.pty.sendInput(handle.pid, bytes("echo sec''ond\n"));
  await eventually(() => heard.includes("second"));
  assert.equal(await box.pty.kill(handle.pid), true);
  await assert.rejects(again.wait(), CommandExitError);
  assert.equal(await box.pty.kill(handle.pid), false);
  await refused(NotFoundError, box.pty.resize(999999, { cols: 1, rows: 1 }));
});

await claim("control_characters_are_signals", async () => {
  const box = await sandbox();
  const { handle, says } = await terminal(box);
  await box.pty.sendInput(handle.pid, bytes("echo rea''dy; sleep 100000\n"));
  await says("ready");
  await box.pty.sendInput(handle.pid, new Uint8Array([3]));
  await box.pty.sendInput(handle.pid, bytes("echo inter''rupted\n"));
  await says("interrupted");
  await handle.kill();
  await handle.wait().catch(() => {});
});

await claim("a_terminal_gives_much_output_whole", async () => {
  const box = await sandbox();
  const { handle, said, says } = await terminal(box);
  await box.pty.sendInput(handle.pid, bytes("seq 100000; echo the''end\n"));
  await says("theend");
  assert.ok(said.text.includes("\r\n99999\r\n100000\r\n"));
  await box.pty.kill(handle.pid);
  await handle.wait().catch(() => {});
});

finish();
