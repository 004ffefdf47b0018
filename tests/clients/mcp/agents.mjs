// Claude Code and Codex, as npm has them, are configured with the commands of docs/mcp.md and call a tool of Holt. The model is a
// server on loopback that answers with a call of that tool, and then with the text of its result.
// usage: node agents.mjs SOCKET ADDRESS TOKEN DIRECTORY DOCUMENT
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import { claim, finish } from "./claims.mjs";

const [socketPath, address, token, directory, document] = process.argv.slice(2);
const modules = new URL("node_modules/", import.meta.url).pathname;
const claude = `${modules}@anthropic-ai/claude-code-linux-x64/claude`;
const codex = `${modules}@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex`;

const events = (list) => list.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join("");
const bodyOf = async (request) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
};

// The answers of Anthropic's Messages API: a tool call if there is a tool and no result yet, else the result.
function anthropic(body) {
  const tool = body.tools?.find((each) => /^mcp__holt__bash$/.test(each.name));
  const results = body.messages.flatMap((each) => Array.isArray(each.content) ? each.content : []).filter((each) => each.type === "tool_result");
  const block = tool && results.length === 0
    ? [{ type: "tool_use", id: "toolu_1", name: tool.name, input: {} }, { type: "input_json_delta", partial_json: '{"cmd":"echo from $((40+2))"}' }]
    : [{ type: "text", text: "" }, { type: "text_delta", text: `the tool said ${JSON.stringify(results.at(-1)?.content ?? "nothing")}` }];
  return events([
    ["message_start", { type: "message_start", message: { id: "msg_1", type: "message", role: "assistant", model: body.model, content: [],
      stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } } }],
    ["content_block_start", { type: "content_block_start", index: 0, content_block: block[0] }],
    ["content_block_delta", { type: "content_block_delta", index: 0, delta: block[1] }],
    ["content_block_stop", { type: "content_block_stop", index: 0 }],
    ["message_delta", { type: "message_delta", delta: { stop_reason: block[0].type === "tool_use" ? "tool_use" : "end_turn", stop_sequence: null },
      usage: { output_tokens: 1 } }],
    ["message_stop", { type: "message_stop" }]]);
}

// The same of OpenAI's Responses API. Tools of a server come in a namespace, or with its name before theirs.
function openai(body) {
  const spaces = (body.tools ?? []).flatMap((each) => each.type === "namespace" ? each.tools.map((tool) => ({ ...tool, namespace: each.name })) : [each]);
  const tool = spaces.find((each) => /holt/.test(`${each.namespace ?? ""}${each.name}`) && /bash$/.test(each.name));
  const results = body.input.filter((each) => each.type === "function_call_output");
  const item = tool && results.length === 0
    ? { type: "function_call", id: "fc_1", call_id: "call_1", name: tool.name, ...(tool.namespace ? { namespace: tool.namespace } : {}),
      arguments: '{"cmd":"echo from $((40+2))"}' }
    : { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: `the tool said ${JSON.stringify(results.at(-1)?.output ?? "nothing")}`,
      annotations: [] }] };
  return events([
    ["response.created", { type: "response.created", response: { id: "resp_1" } }],
    ["response.output_item.done", { type: "response.output_item.done", output_index: 0, item }],
    ["response.completed", { type: "response.completed", response: { id: "resp_1", output: [item],
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } } }]]);
}

const asked = [];
const model = http.createServer(async (request, reply) => {
  const text = await bodyOf(request);
  asked.push(`${request.method} ${request.url}`);
  const answer = /\/messages(\?|$)/.test(request.url) ? anthropic : /\/responses$/.test(request.url) ? openai : null;
  reply.writeHead(answer ? 200 : 404, { "content-type": answer ? "text/event-stream" : "application/json" });
  reply.end(answer ? answer(JSON.parse(text)) : "{}");
}).listen(0, "127.0.0.1");
await new Promise((resolve) => model.on("listening", resolve));
const upstream = `http://127.0.0.1:${model.address().port}`;

// What a command prints; it gets no input.
const run = (command, args, env, cwd) => new Promise((resolve, reject) => {
  const child = spawn(command, args, { env: { PATH: process.env.PATH, LANG: "C.UTF-8", ...env }, cwd, stdio: ["ignore", "pipe", "pipe"] });
  let out = "", errors = "";
  child.stdout.on("data", (data) => out += data);
  child.stderr.on("data", (data) => errors += data);
  child.on("error", reject);
  child.on("close", (status) => status === 0 ? resolve(out) : reject(new Error(`${command} ${args.join(" ")}: status ${status}\n${out}\n${errors}\n${asked.join("\n")}`)));
});

// The command of a row of the document's table for this transport, with the names of this test in it, as a list of words.
function documented(client, isHttp) {
  const rows = readFileSync(document, "utf8").split("\n").filter((line) => line.startsWith(`| ${client} | \`${client.toLowerCase().split(" ")[0]} mcp add`));
  const row = rows.find((line) => line.includes("https://box:7070") === isHttp);
  assert.ok(row, `docs/mcp.md has no command for ${client}`);
  const command = row.split("`")[1].replace("https://box:7070", `http://${address}`).replace("$HOLT_TOKEN", token);
  return command.match(/"[^"]*"|\S+/g).map((word) => word.replaceAll('"', "")).slice(1);
}

const home = (name) => {
  for (const each of [`${directory}/${name}`, `${directory}/${name}/work`]) mkdirSync(each);
  return `${directory}/${name}`;
};

for (const [transport, isHttp] of [["stdio", false], ["http", true]]) {
  await claim(`claude_code_calls_a_tool_over_${transport}`, async () => {
    const own = home(`claude-${transport}`);
    const env = { HOME: own, HOLT_HOST: `unix://${socketPath}`, HOLT_TOKEN: token, ANTHROPIC_BASE_URL: upstream, ANTHROPIC_API_KEY: "none",
      ENABLE_TOOL_SEARCH: "false", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1", DISABLE_TELEMETRY: "1" };
    await run(claude, documented("Claude Code", isHttp), env, `${own}/work`);
    const said = await run(claude, ["-p", "use the tool", "--model", "claude-sonnet-4-5", "--allowedTools", "mcp__holt__bash"], env, `${own}/work`);
    assert.match(said, /from 42/);
  });

  await claim(`codex_calls_a_tool_over_${transport}`, async () => {
    const own = home(`codex-${transport}`);
    const env = { HOME: own, CODEX_HOME: own, HOLT_HOST: `unix://${socketPath}`, HOLT_TOKEN: token, OPENAI_API_KEY: "none" };
    const words = documented("Codex", isHttp); // it passes no variables on to its servers
    if (!isHttp) words.splice(words.indexOf("--"), 0, "--env", `HOLT_HOST=${env.HOLT_HOST}`, "--env", `PATH=${process.env.PATH}`);
    await run(codex, words, env, `${own}/work`);
    const config = readFileSync(`${own}/config.toml`, "utf8");
    writeFileSync(`${own}/config.toml`, `model = "gpt-5"\nmodel_provider = "local"\n${config}\n[model_providers.local]\nname = "local"\n` +
      `base_url = "${upstream}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n`);
    const said = await run(codex, ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "use the tool"], env, `${own}/work`);
    assert.match(said, /from 42/);
  });
}

model.close();
finish();
