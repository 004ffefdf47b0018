// The official client of the Tasks extension drives calls that take long, and the official client negotiates the revision itself.
// usage: node tasks.mjs SOCKET ADDRESS TOKEN
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";
import { claim, finish } from "./claims.mjs";

const [socketPath, address, token] = process.argv.slice(2);
const holt = (...args) => execFileSync("holt", args, { env: { PATH: process.env.PATH, HOLT_HOST: `unix://${socketPath}` }, encoding: "utf8" }).trim();
const revision = "2026-07-28";
const clientInfo = { name: "holt-tests", version: "1" };
const authorization = { Authorization: `Bearer ${token}` };
const patient = { timeout: 600_000 };

holt("create", "--name", "tasks", "-q");
const url = new URL(`http://${address}/mcp?sandbox=tasks`);
const client = new Client(clientInfo, { versionNegotiation: { mode: "auto" } });
await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: authorization } }), patient);

await claim("a_client_that_negotiates_finds_the_newest_revision", async () => {
  assert.equal(client.getProtocolEra(), "modern");
  assert.match(client.getInstructions(), /There is no network/);
  const { content: [said] } = await client.callTool({ name: "bash", arguments: { cmd: "echo agreed" } }, patient);
  assert.match(said.text, /^agreed\n/);
  const plain = new Client(clientInfo); // with its defaults
  await plain.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: authorization } }), patient);
  assert.match((await plain.callTool({ name: "bash", arguments: { cmd: "echo agreed" } }, patient)).content[0].text, /^agreed\n/);
  await plain.close();
});

// The SDK does not know results of the extension, so its client sends messages itself.
let number = 0;
async function rawDispatch(request) {
  const id = `raw-${++number}`;
  const reply = await fetch(url, {
    method: "POST", body: JSON.stringify({ ...request, jsonrpc: "2.0", id }),
    headers: { ...authorization, "Content-Type": "application/json", Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": revision, "Mcp-Method": request.method, "Mcp-Name": request.params.name ?? request.params.taskId },
  });
  return reply.json();
}

const session = createTaskSessionFromClient(client, { endpointId: "holt", rawDispatch,
  v2RequestFraming: { protocolVersion: revision, clientInfo, clientCapabilities: {} } });
const shell = (text) => client.callTool({ name: "bash", arguments: { cmd: text } }, patient);
const waiting = "until [ -e go ]; do sleep 0.1; done";

await claim("the_client_of_the_extension_waits_for_tasks", async () => {
  const [processId] = (await client.callTool({ name: "process_start", arguments: { cmd: waiting } }, patient)).content[0].text.match(/\bp\d+\b/);
  const executions = await Promise.all([
    session.callTool("bash", { cmd: `${waiting}; echo done` }), // silent
    session.callTool("process_wait", { process_id: processId, timeout_ms: 200000 }),
    session.callTool("bash", { cmd: "echo short" })]);
  const settled = executions.map((execution) => execution.settle());
  await shell("touch go");
  const [slow, wait, short] = await Promise.all(settled);
  assert.match(resultFromTaskOutcome(slow.outcome).content[0].text, /^done\n/);
  assert.equal(slow.lastTask.status, "completed");
  assert.match(resultFromTaskOutcome(wait.outcome).content[0].text, /has ended/);
  assert.match(resultFromTaskOutcome(short.outcome).content[0].text, /^short\n/);
  assert.equal(short.lastTask, undefined); // it was none
});

await claim("the_client_of_the_extension_cancels_a_task", async () => {
  const execution = await session.callTool("shell", { cmd: "sleep 100000" });
  const settled = execution.settle();
  await execution.cancel();
  assert.equal((await settled).outcome.status, "cancelled");
});

await session.close();
await client.close();
holt("rm", "-f", "tasks");
finish();
