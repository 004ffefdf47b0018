// Refusals and the wire: a wrong token, both generations of create, fields that are absent or unknown,
// sandboxes and templates that are not there, the exact status, body and class of each error.
import assert from "node:assert/strict";
import { request } from "node:http";
import { AuthenticationError, Sandbox as Plain, SandboxError, SandboxNotFoundError } from "e2b";
import { apiKey, apiUrl, call, callSandbox, claim, e2bKey, finish, refused, sandbox, Sandbox } from "./lib.mjs";

const none = "inosuchsandbox0000000";

await claim("a_wrong_key_is_refused_everywhere", async () => {
  for (const key of ["e2b_" + "0".repeat(40), "holt_" + "0".repeat(64), "nonsense"]) {
    await refused(AuthenticationError, Plain.create({ apiKey: key }));
    await refused(AuthenticationError, Plain.list({ apiKey: key }).nextItems());
    await refused(AuthenticationError, Plain.kill(none, { apiKey: key }));
  }
  for (const [method, path] of [["GET", "/v2/sandboxes"], ["POST", "/v2/sandboxes"], ["GET", "/templates"], ["GET", `/sandboxes/${none}`]]) {
    const response = await fetch(apiUrl + path, { method });
    assert.equal(response.status, 401, path);
    const body = await response.json();
    assert.deepEqual([body.code, typeof body.message], [401, "string"]);
  }
});

await claim("a_key_in_either_form_is_accepted", async () => {
  assert.match(e2bKey, /^e2b_[0-9a-f]+$/);
  for (const key of [apiKey, e2bKey]) assert.ok(Array.isArray(await Plain.list({ apiKey: key }).nextItems()));
});

await claim("a_sandbox_that_is_not_there_has_its_error", async () => {
  await refused(SandboxNotFoundError, Sandbox.connect(none));
  await refused(SandboxNotFoundError, Sandbox.getInfo(none));
  await refused(SandboxNotFoundError, Sandbox.setTimeout(none, 1000));
  await refused(SandboxNotFoundError, Sandbox.createSnapshot(none));
  assert.equal(await Sandbox.kill(none), false);
  for (const [method, path, body] of [["GET", ""], ["DELETE", ""], ["POST", "/pause", {}], ["POST", "/timeout", { timeout: 1 }], ["POST", "/connect", {}],
    ["POST", "/resume", {}], ["POST", "/refreshes", {}], ["PUT", "/network", {}], ["GET", "/metrics"], ["POST", "/snapshots", {}], ["POST", "/fork", {}],
    ["GET", "/logs"]]) {
    const { status, json } = await call(method, `/sandboxes/${none}${path}`, body);
    assert.deepEqual([status, json?.code, typeof json?.message], [404, 404, "string"], `${method} ${path}`);
  }
  assert.equal((await call("GET", `/sandboxes/${encodeURIComponent("../../etc/passwd")}`)).status, 404);
});

await claim("a_sandbox_that_is_gone_is_502_on_every_path", async () => {
  const box = await sandbox();
  const gone = { ...box, sandboxId: box.sandboxId, envdAccessToken: box.envdAccessToken };
  const body = { sandboxId: box.sandboxId, message: "The sandbox was not found", code: 502 };
  const paths = [["GET", "/health"], ["GET", "/files?path=a"], ["POST", "/process.Process/List"], ["GET", "/anything", 3000], ["GET", "/metrics"]];
  const look = async () => {
    for (const [method, path, port] of paths) {
      const response = await callSandbox(gone, method, path, { port, ...(method === "POST" ? { body: "{}" } : {}) });
      assert.deepEqual([response.status, await response.json()], [502, body], path);
    }
  };
  await box.pause();
  await look();
  await box.kill();
  await look();
});

await claim("the_inside_needs_its_token", async () => {
  const box = await sandbox();
  const message = "unauthorized access, please provide a valid access token or method signing if supported";
  for (const token of [null, "wrong"]) {
    const response = await callSandbox(box, "POST", "/process.Process/List", { token, body: "{}", headers: { "Content-Type": "application/json" } });
    assert.deepEqual([response.status, await response.json()], [401, { code: 401, message }]);
    assert.equal((await callSandbox(box, "GET", "/envs", { token })).status, 401);
    assert.equal((await callSandbox(box, "GET", "/health", { token })).status, 204);
  }
  assert.equal((await callSandbox(box, "GET", "/envs")).status, 200);
  const { ts, mem_total: total } = await (await callSandbox(box, "GET", "/metrics")).json();
  assert.ok(ts > 0 && total > 0);
  for (const path of ["/init", "/freeze", "/unfreeze", "/fsfreeze", "/fsthaw", "/collapse"])
    assert.equal((await callSandbox(box, "POST", path, { body: "{}" })).status, 404, path);
});

await claim("a_template_that_is_not_there_is_refused", async () => {
  await assert.rejects(Sandbox.create("no-such-template"), SandboxError);
  const { status, json } = await call("POST", "/v2/sandboxes", { templateID: "no-such-template" });
  assert.ok([400, 404].includes(status));
  assert.equal(json.code, status);
});

await claim("both_generations_of_create_work", async () => {
  const made = [];
  const seconds = async (id) => {
    const { json } = await call("GET", `/sandboxes/${id}`);
    assert.match(json.startedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}Z$/);
    return Math.round((new Date(json.endAt) - new Date(json.startedAt)) / 1000);
  };
  for (const [path, body, secured] of [["/sandboxes", { templateID: "base" }, true], ["/sandboxes", { templateID: "base", secure: true }, true],
    ["/v2/sandboxes", { templateID: "base" }, true],
    ["/v2/sandboxes", { templateID: "base", timeout: 60, unknown: { a: [1, { b: null }] }, metadata: {}, envVars: {}, mcp: {}, iam: { tokens: {} } }, true],
    ["/sandboxes", { templateID: "base", timeout: 60, secure: true, allow_internet_access: true, autoPause: false, later: "field" }, true]]) {
    const { status, json } = await call("POST", path, body);
    assert.equal(status, 201, JSON.stringify(json));
    made.push(json.sandboxID);
    for (const key of ["sandboxID", "templateID", "clientID", "envdVersion"]) assert.equal(typeof json[key], "string", key);
    assert.equal(typeof json.envdAccessToken, secured ? "string" : "undefined", path);
    if (path === "/sandboxes" && !body.timeout) {
      assert.equal(await seconds(json.sandboxID), 15);
      assert.equal((await call("POST", `/sandboxes/${json.sandboxID}/connect`, { timeout: 600 })).status, 200);
    }
  }
  assert.equal(await seconds(made[2]), 300);
  assert.equal(await seconds(made[3]), 60);
  assert.equal((await call("POST", `/v2/sandboxes/${made[2]}/connect`, {})).status, 200);
  await call("POST", `/sandboxes/${made[2]}/pause`, {});
  assert.equal((await call("POST", `/v2/sandboxes/${made[2]}/connect`, {})).status, 201);
  for (const id of made) assert.equal((await call("DELETE", `/sandboxes/${id}`)).status, 204);
});

await claim("bad_requests_are_400_with_a_reason", async () => {
  const bad = [["POST", "/v2/sandboxes", {}], ["POST", "/v2/sandboxes", { templateID: 5 }], ["POST", "/v2/sandboxes", { templateID: "base", timeout: -1 }],
    ["POST", "/v2/sandboxes", { templateID: "base", timeout: 1e12 }], ["POST", "/v2/sandboxes", { templateID: "base", metadata: { a: 1 } }],
    ["POST", "/v2/sandboxes", []], ["GET", "/v2/sandboxes?limit=0"], ["GET", "/v2/sandboxes?limit=101"],
    ["GET", "/v2/sandboxes?order=sideways"], ["GET", "/v2/sandboxes?state=asleep"]];
  for (const [method, path, body] of bad) {
    const { status, json } = await call(method, path, body);
    assert.deepEqual([status, json?.code, typeof json?.message], [400, 400, "string"], `${path} ${JSON.stringify(body)}`);
  }
  const broken = await fetch(`${apiUrl}/v2/sandboxes`, { method: "POST", headers: { "X-API-KEY": apiKey, "Content-Type": "application/json" }, body: "{" });
  assert.equal(broken.status, 400);
  const nowhere = await call("GET", "/no/such/endpoint");
  assert.deepEqual([nowhere.status, nowhere.json.code], [404, 404]);
  assert.equal((await call("GET", "/health")).status, 204);
});

await claim("a_body_in_pieces_is_one_body", async () => {
  const body = JSON.stringify({ templateID: "base", metadata: { a: "ü".repeat(1000) } });
  const answer = await new Promise((resolve, reject) => {
    const call = request(`${apiUrl}/v2/sandboxes`, { method: "POST", headers: { "X-API-KEY": apiKey, "Content-Type": "application/json", "Transfer-Encoding": "chunked" } }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => { text += part; }).on("end", () => resolve({ status: response.statusCode, json: JSON.parse(text) }));
    }).on("error", reject);
    const bytes = Buffer.from(body);
    for (let i = 0; i < bytes.length; i += 7) call.write(bytes.subarray(i, i + 7));
    call.end();
  });
  assert.equal(answer.status, 201);
  const { json } = await call("GET", `/sandboxes/${answer.json.sandboxID}`);
  assert.equal(json.metadata.a, "ü".repeat(1000));
  await Sandbox.kill(answer.json.sandboxID);
});

await claim("errors_of_the_inside_have_their_codes", async () => {
  const box = await sandbox();
  const rpc = async (method, message, headers = {}) => {
    const response = await callSandbox(box, "POST", `/${method}`, {
      headers: { "Content-Type": "application/json", "Connect-Protocol-Version": "1", ...headers }, body: JSON.stringify(message),
    });
    return [response.status, (await response.json()).code];
  };
  assert.deepEqual(await rpc("filesystem.Filesystem/Stat", { path: "nope" }), [404, "not_found"]);
  assert.deepEqual(await rpc("filesystem.Filesystem/ListDir", { path: "/etc/passwd" }), [400, "invalid_argument"]);
  await rpc("filesystem.Filesystem/MakeDir", { path: "d" });
  assert.deepEqual(await rpc("filesystem.Filesystem/MakeDir", { path: "d" }), [409, "already_exists"]);
  assert.deepEqual(await rpc("filesystem.Filesystem/Stat", { path: "a" }, { Authorization: `Basic ${btoa("nobodyhere:")}` }), [401, "unauthenticated"]);
  assert.deepEqual(await rpc("process.Process/SendSignal", { process: { pid: 999999 }, signal: "SIGNAL_SIGKILL" }), [404, "not_found"]);
  assert.deepEqual(await rpc("process.Process/StreamInput", {}), [501, "unimplemented"]);
  assert.equal((await rpc("process.Process/NoSuchMethod", {}))[0], 404);
});

await claim("an_error_of_a_stream_is_in_its_end", async () => {
  const box = await sandbox();
  const envelope = (text) => {
    const bytes = Buffer.concat([Buffer.alloc(5), Buffer.from(text)]);
    bytes.writeUInt32BE(bytes.length - 5, 1);
    return bytes;
  };
  const response = await callSandbox(box, "POST", "/process.Process/Connect", {
    headers: { "Content-Type": "application/connect+json", "Connect-Protocol-Version": "1" }, body: envelope('{"process":{"pid":999999}}'),
  });
  assert.equal(response.status, 200);
  const bytes = Buffer.from(await response.arrayBuffer());
  assert.equal(bytes[0], 2);
  assert.equal(bytes.readUInt32BE(1), bytes.length - 5);
  assert.equal(JSON.parse(bytes.subarray(5)).error.code, "not_found");
});

finish();
