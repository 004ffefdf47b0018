// The code interpreter: results, streams, errors, contexts, languages, environment, timeouts.
import assert from "node:assert/strict";
import { NotFoundError, TimeoutError } from "e2b";
import { callSandbox, claim, eventually, finish, Interpreter, longMs, refused, sandbox } from "./lib.mjs";

const interpreter = (opts) => sandbox({ from: Interpreter, ...opts });
const code = (box, text, opts = {}) => box.runCode(text, { timeoutMs: 0, requestTimeoutMs: 0, ...opts });

await claim("code_gives_its_last_value_and_its_output", async () => {
  const box = await interpreter();
  const execution = await box.runCode("import sys\nprint('out')\nprint('err', file=sys.stderr)\nx = 6\nx * 7");
  assert.equal(execution.text, "42");
  assert.equal(execution.logs.stdout.join(""), "out\n");
  assert.equal(execution.logs.stderr.join(""), "err\n");
  assert.equal(execution.error, undefined);
  assert.equal(execution.results.length, 1);
  assert.equal(execution.results[0].isMainResult, true);
  assert.deepEqual(execution.results[0].formats(), []); // of text alone: the SDK does not count it
  assert.equal(typeof execution.executionCount, "number");
  assert.equal((await code(box, "x + 1")).text, "7"); // state stays
  assert.equal((await code(box, "y = 1")).text, undefined);
  assert.equal((await code(box, "'a\\u00fc'")).text, "aü"); // without the quotes, as at E2B
  assert.deepEqual((await code(box, "print(1)")).logs.stdout, ["1\n"]); // in one piece
});

await claim("an_error_is_a_result", async () => {
  const box = await interpreter();
  const errors = [];
  const execution = await code(box, "print('before')\n1 / 0", { onError: (error) => { errors.push(error); } });
  assert.deepEqual([execution.error.name, execution.error.value], ["ZeroDivisionError", "division by zero"]);
  assert.match(execution.error.traceback, /ZeroDivisionError/);
  assert.equal(execution.logs.stdout.join(""), "before\n");
  assert.equal(errors.length, 1);
  assert.equal((await code(box, "def f(:")).error.name, "SyntaxError");
  assert.equal((await code(box, "raise SystemExit(3)")).error.name, "SystemExit");
  assert.equal((await code(box, "input()")).error.name, "StdinNotImplementedError");
  assert.equal((await code(box, "1 + 1")).text, "2"); // and no end
});

await claim("output_streams_while_the_code_runs", async () => {
  const box = await interpreter();
  const heard = { out: [], err: [], results: [] };
  const running = code(box, `
import os, sys, time
print("first", flush=True)
print("warned", file=sys.stderr, flush=True)
while not os.path.exists("/tmp/go"): time.sleep(0.02)
print("second")
"done"`, {
    onStdout: (message) => { heard.out.push(message); },
    onStderr: (message) => { heard.err.push(message); },
    onResult: (result) => { heard.results.push(result); },
  });
  await eventually(() => heard.out.length > 0 && heard.err.length > 0);
  assert.match(heard.out[0].line, /first/);
  assert.equal(heard.out[0].error, false);
  assert.equal(heard.err[0].error, true);
  assert.ok(heard.out[0].timestamp > 0);
  await box.files.write("/tmp/go", "");
  assert.equal((await running).text, "done");
  assert.equal(heard.results.length, 1);
});

await claim("contexts_are_apart", async () => {
  const box = await interpreter();
  const defaults = await box.listCodeContexts();
  assert.deepEqual(defaults.map((each) => each.language).sort(), ["javascript", "python"]);
  assert.ok(defaults.every((each) => each.cwd === "/home/user"));
  const known = defaults.map((each) => each.id);
  const one = await box.createCodeContext({ cwd: "/tmp" });
  const two = await box.createCodeContext({ language: "python" });
  assert.deepEqual([one.language, one.cwd], ["python", "/tmp"]);
  await code(box, "x = 1", { context: one });
  await code(box, "x = 2", { context: two });
  assert.equal((await code(box, "x", { context: one })).text, "1");
  assert.equal((await code(box, "x", { context: two })).text, "2");
  assert.equal((await code(box, "x")).error.name, "NameError");
  assert.equal((await code(box, "import os; os.getcwd()", { context: one })).text, "/tmp");
  const listed = (await box.listCodeContexts()).map((each) => each.id);
  assert.ok([...known, one.id, two.id].every((each) => listed.includes(each)));
  await box.restartCodeContext(one);
  assert.equal((await code(box, "x", { context: one })).error.name, "NameError");
  await box.restartCodeContext(two.id);
  await box.removeCodeContext(one);
  await box.removeCodeContext(two.id);
  assert.ok(!(await box.listCodeContexts()).some((each) => [one.id, two.id].includes(each.id)));
  await refused(NotFoundError, code(box, "1", { context: one }));
  await assert.rejects(box.removeCodeContext(one));
});

await claim("two_contexts_run_at_once", async () => {
  const box = await interpreter();
  const [one, two] = [await box.createCodeContext(), await box.createCodeContext()];
  const meet = (mine, other) => `
import os, time
open("/tmp/${mine}", "w").close()
while not os.path.exists("/tmp/${other}"): time.sleep(0.02)
"met"`;
  const both = await Promise.all([code(box, meet("a", "b"), { context: one }), code(box, meet("b", "a"), { context: two })]);
  assert.deepEqual(both.map((each) => each.text), ["met", "met"]);
});

await claim("environment_is_for_one_run", async () => {
  const box = await interpreter({ envs: { GLOBAL: "g" } });
  const seen = "import os; os.environ.get('GLOBAL', '-') + os.environ.get('RUN', '-')";
  assert.equal((await code(box, seen, { envs: { RUN: "r" } })).text, "gr");
  assert.equal((await code(box, seen)).text, "g-");
});

await claim("other_languages_keep_their_state_or_are_refused_by_name", async () => {
  const box = await interpreter();
  assert.equal((await code(box, "cd /tmp; x=hi; echo $x", { language: "bash" })).logs.stdout.join(""), "hi\n");
  assert.equal((await code(box, "echo $x; pwd", { language: "bash" })).logs.stdout.join(""), "hi\n/tmp\n");
  assert.equal((await code(box, "false", { language: "bash" })).error.value, "1");
  assert.equal((await code(box, "import fs from 'fs'; let n = 6; fs.existsSync('/etc')", { language: "javascript" })).text, "true");
  const script = await code(box, "console.log(n); await Promise.resolve(n * 7)", { language: "js" });
  assert.deepEqual([script.logs.stdout.join(""), script.text, script.executionCount], ["6\n", "42", 2]);
  const thrown = (await code(box, "throw new TypeError('no')", { language: "js" })).error;
  assert.deepEqual([thrown.name, thrown.value], ["TypeError", "no"]);
  assert.equal((await code(box, "const t: string = 'ts'; t", { language: "typescript" })).text, "ts");
  assert.equal((await code(box, "const u: string = 3", { language: "typescript" })).error.name, "SyntaxError");
  await assert.rejects(code(box, "1", { language: "cobol" }));
});

await claim("the_environment_of_a_script_is_for_one_run_too", async () => {
  const box = await interpreter();
  const seen = "process.env.RUN ?? '-'";
  assert.equal((await code(box, seen, { language: "js", envs: { RUN: "r" } })).text, "r");
  assert.equal((await code(box, seen, { language: "js" })).text, "-");
  const thrown = await code(box, "throw new Error(process.env.RUN)", { language: "js", envs: { RUN: "r" } });
  assert.equal(thrown.error.value, "r");
  assert.equal((await code(box, seen, { language: "js" })).text, "-"); // although the kernel refuses code after an error
});

await claim("a_script_that_takes_too_long_is_given_up", async () => {
  const box = await interpreter();
  await code(box, "let kept = 1", { language: "js" });
  const late = await code(box, "console.log('before'); await new Promise((done) => setTimeout(done, 1e8))",
    { language: "js", timeoutMs: 2000 }).catch((error) => error);
  assert.ok(late instanceof TimeoutError, String(late));
  assert.equal((await code(box, "1 + 1", { language: "js" })).text, "2"); // the next one runs
});

await claim("results_and_executions_have_a_json_form", async () => {
  const box = await interpreter();
  const execution = await code(box, "print('out')\n'value'");
  const json = JSON.parse(JSON.stringify(execution));
  assert.deepEqual(json.logs.stdout, ["out\n"]);
  assert.equal(json.results[0].text, "value");
  assert.equal(execution.toJSON().results[0].text, "value");
  assert.equal(execution.results[0].toJSON().text, "value");
});

await claim("twenty_contexts_run_at_once", async () => {
  const box = await interpreter();
  const contexts = await Promise.all(Array.from({ length: 20 }, () => box.createCodeContext()));
  await Promise.all(contexts.map((context, i) => code(box, `x = ${i}`, { context })));
  const values = await Promise.all(contexts.map((context) => code(box, "x", { context })));
  assert.deepEqual(values.map((each) => each.text), contexts.map((_, i) => String(i)));
});

await claim("much_output_is_whole", async () => {
  const box = await interpreter();
  const execution = await code(box, "for i in range(100000): print(i)");
  const out = execution.logs.stdout.join("");
  assert.equal(out.length, 588890);
  assert.ok(out.endsWith("99998\n99999\n"));
});

await claim("rich_results_carry_their_forms", async () => {
  const box = await interpreter();
  const execution = await code(box, `
class Rich:
    def _repr_html_(self): return "<b>x</b>"
    def _repr_markdown_(self): return "**x**"
    def _repr_svg_(self): return "<svg/>"
    def __repr__(self): return "plain"
Rich()`);
  const [result] = execution.results;
  assert.deepEqual([result.text, result.html, result.markdown, result.svg], ["plain", "<b>x</b>", "**x**", "<svg/>"]);
  assert.ok(["html", "markdown", "svg"].every((each) => result.formats().includes(each)));
});

await claim("figures_and_tables_have_their_data", async () => {
  const box = await interpreter();
  const { results: [figure] } = await code(box, `
import matplotlib.pyplot as plt
plt.bar(["a", "b"], [1, 2], label="g")
plt.title("T")
plt.show()`);
  assert.ok(figure.png.length > 1000);
  assert.equal(figure.chart.type, "bar");
  assert.equal(figure.chart.title, "T");
  assert.deepEqual(figure.chart.elements, [{ label: "a", group: "g", value: 1 }, { label: "b", group: "g", value: 2 }]);
  const { results: [table] } = await code(box, "import pandas as pd\npd.DataFrame({'n': [1, 2], 's': ['x', None]})");
  assert.deepEqual(table.data, { n: [1, 2], s: ["x", null] });
  assert.ok(table.formats().includes("data") && table.html.includes("<table"));
});

await claim("magics_and_programs_work", async () => {
  const box = await interpreter();
  assert.equal((await code(box, "%%bash\necho $((1 + 2))")).logs.stdout.join(""), "3\n");
  assert.match((await code(box, "!whoami")).logs.stdout.join(""), /root/); // as at E2B
  assert.match((await code(box, "%pip --version")).logs.stdout.join(""), /^pip /);
  assert.equal((await code(box, "import numpy, requests, scipy\n    1")).error?.name, "IndentationError");
  assert.equal((await code(box, "    import numpy, requests\n    numpy.arange(3).sum()")).text, "3");
});

await claim("code_that_takes_too_long_is_given_up_and_interrupted", async () => {
  const box = await interpreter();
  await code(box, "kept = 1");
  await refused(TimeoutError, box.runCode("import time; time.sleep(100000)", { timeoutMs: 1000 }));
  assert.equal((await code(box, "kept")).text, "1"); // the next one runs, in the same kernel
});

await claim("the_rest_of_a_sandbox_is_there_too", async () => {
  const box = await interpreter();
  await code(box, "open('/home/user/made', 'w').write('by code')");
  assert.equal(await box.files.read("made"), "by code");
  assert.equal((await box.commands.run("cat made")).stdout, "by code");
  assert.equal((await box.getInfo()).name, "code-interpreter-v1");
  const health = await callSandbox(box, "GET", "/health", { port: 49999 });
  assert.match(await health.text(), /OK/);
  await box.pause();
  const again = await Interpreter.connect(box.sandboxId, { timeoutMs: longMs });
  await eventually(async () => (await callSandbox(box, "GET", "/health", { port: 49999 })).status === 200);
  assert.equal((await code(again, "1 + 2")).text, "3");
});

await claim("a_kernel_killed_for_memory_says_so", async () => {
  const box = await interpreter();
  const total = Number((await box.commands.run("awk '/MemTotal/ { print $2 }' /proc/meminfo")).stdout);
  assert.ok(total <= 1 << 20, `the sandbox has ${total} KiB: without a limit, the machine would be short of memory`);
  const { error } = await code(box, `b"x" * ${total * 2048}`);
  assert.equal(error.name, "ContextRestarting");
  assert.match(error.value, /the sandbox reached its memory limit; its variables are lost/);
  assert.equal((await code(box, "1 + 1")).text, "2");
});

await claim("code_on_a_killed_sandbox_says_so", async () => {
  const box = await interpreter();
  await box.kill();
  await assert.rejects(code(box, "1"));
});

finish();
