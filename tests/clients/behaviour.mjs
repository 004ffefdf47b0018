// Errors, deadlines, cancellation, tokens and the JSON itself, as the official client sees them.
// usage: node behaviour.mjs SOCKET ADDRESS TOKEN
import assert from "node:assert/strict";
import http from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import { fromJson, toJson } from "@bufbuild/protobuf";
import { ErrorInfoSchema } from "./gen/holt/v1/error_pb.js";
import { all, claim, eventually, finish, overTcp, overUnix, refused, services, text } from "./lib.mjs";

const [socketPath, address, token] = process.argv.slice(2);
const holt = overUnix(socketPath), remote = overTcp(address, token), stranger = overTcp(address);
const sandboxId = (await holt.sandbox.create({ name: "manners" })).sandbox.id;
const exec = (script, options) =>
  holt.process.exec({ sandboxId, process: { args: ["sh", "-c", script] } }, options);
const running = async (tag) =>
  (await holt.process.list({ sandboxId })).processes.filter((each) => !each.ended && each.args.includes(tag));

// A call without the client: the reply as it is on the wire.
function raw(method, message, headers = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, path: `/holt.v1.${method}`, method: "POST",
      headers: { "Content-Type": "application/json", ...headers } }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (piece) => (body += piece)).on("end", () => resolve([response, body]));
    });
    request.on("error", reject).end(typeof message === "string" ? message : JSON.stringify(message));
  });
}

await claim("errors_have_the_codes_of_the_contract", async () => {
  await refused(Code.NotFound, holt.sandbox.get({ sandboxId: "nobody" }));
  await refused(Code.NotFound, holt.process.get({ sandboxId, processId: "p99999" }));
  await refused(Code.InvalidArgument, holt.sandbox.get({ sandboxId: "../x" }));
  await refused(Code.InvalidArgument, holt.sandbox.create({ labels: { "a b": "c" } }));
  await refused(Code.AlreadyExists, holt.sandbox.create({ name: "manners" }));
  await refused(Code.FailedPrecondition, holt.sandbox.resume({ sandboxId }));
  await refused(Code.NotFound, holt.snapshot.rollback({ sandboxId, snapshot: "turn-0042" }));
});

await claim("errors_carry_what_a_program_needs_in_their_details", async () => {
  const isPaused = async () => {
    await holt.sandbox.pause({ sandboxId });
    const unary = await refused(Code.FailedPrecondition, holt.process.start({ sandboxId, process: { args: ["true"] } }));
    const stream = await refused(Code.FailedPrecondition, all(exec("true")));
    await holt.sandbox.resume({ sandboxId });
    return [unary, stream];
  };
  for (const refusal of await isPaused()) {
    const [info] = refusal.findDetails(ErrorInfoSchema);
    assert.equal(info.cause, "SessionPaused");
    assert.match(info.remedy, /resume/);
    assert.equal(typeof info.retryable, "boolean");
  }
});

await claim("errors_of_streams_come_in_their_end", async () => {
  await refused(Code.NotFound, all(holt.process.exec({ sandboxId: "nobody", process: { args: ["true"] } })));
  await refused(Code.InvalidArgument, all(holt.process.exec({ sandboxId })));
  await refused(Code.NotFound, all(holt.template.import({ name: "x", path: "/nonexistent" })));
});

await claim("a_deadline_ends_a_call", async () => {
  await refused(Code.DeadlineExceeded, all(exec("sleep 1001", { timeoutMs: 300 })));
  await eventually(async () => (await running("sleep 1001")).length === 0);
  const { process } = await holt.process.start({ sandboxId, process: { args: ["sleep", "1002"] } });
  await refused(Code.DeadlineExceeded, holt.process.wait({ sandboxId, processId: process.id }, { timeoutMs: 200 }));
  assert.equal((await running("1002")).length, 1);
  await holt.process.signal({ sandboxId, processId: process.id, signal: 9 });
});

await claim("the_daemon_keeps_deadlines_by_itself", async () => {
  const { process } = await holt.process.start({ sandboxId, process: { args: ["sleep", "1004"] } });
  const [response, body] = await raw("ProcessService/Wait", { sandboxId, processId: process.id }, { "Connect-Timeout-Ms": "200" });
  assert.equal(response.statusCode, 504);
  assert.equal(JSON.parse(body).code, "deadline_exceeded");
  const [wrong] = await raw("HostService/Health", {}, { "Connect-Timeout-Ms": "soon" });
  assert.equal(wrong.statusCode, 400);
  await holt.process.signal({ sandboxId, processId: process.id, signal: 9 });
});

await claim("leaving_a_stream_ends_its_process", async () => {
  const over = new AbortController();
  const messages = exec("echo up; exec sleep 1003", { signal: over.signal });
  await refused(Code.Canceled, (async () => {
    for await (const message of messages) if (message.event.case === "stdout") over.abort();
  })());
  await eventually(async () => (await running("echo up; exec sleep 1003")).length === 0);
});

await claim("many_streams_share_a_client", async () => {
  const outputs = await Promise.all(Array.from({ length: 16 }, async (_, i) =>
    text(await all(exec(`head -c 300000 /dev/zero | tr '\\0' x; echo ${i}`)), "stdout")));
  outputs.forEach((output, i) => assert.equal(output, `${"x".repeat(300000)}${i}\n`));
});

await claim("tcp_with_a_token_is_the_same", async () => {
  assert.equal((await remote.host.health({})).status, "ok");
  const messages = await all(remote.process.exec({ sandboxId, process: { args: ["echo", "over tcp"] } }));
  assert.equal(text(messages, "stdout"), "over tcp\n");
  await refused(Code.NotFound, remote.sandbox.get({ sandboxId: "nobody" }));
});

await claim("tcp_without_a_token_is_unauthenticated", async () => {
  for (const client of [stranger, overTcp(address, "0".repeat(64)), overTcp(address, `${token}0`), overTcp(address, token.slice(1))]) {
    await refused(Code.Unauthenticated, client.host.health({}));
    await refused(Code.Unauthenticated, client.sandbox.get({ sandboxId }));
    await refused(Code.Unauthenticated, all(client.process.exec({ sandboxId, process: { args: ["true"] } })));
  }
});

await claim("a_read_only_token_changes_nothing", async () => {
  const { token: made, secret } = await holt.token.create({ readOnly: true });
  const reader = overTcp(address, secret);
  assert.equal((await reader.host.health({})).status, "ok");
  assert.equal((await reader.sandbox.get({ sandboxId })).sandbox.id, sandboxId);
  await refused(Code.PermissionDenied, reader.sandbox.create({}));
  await refused(Code.PermissionDenied, reader.sandbox.destroy({ sandboxId }));
  await refused(Code.PermissionDenied, all(reader.process.exec({ sandboxId, process: { args: ["true"] } })));
  await refused(Code.PermissionDenied, reader.token.create({}));
  await holt.token.remove({ id: made.id });
  await refused(Code.Unauthenticated, reader.host.health({}));
});

// What is on the wire, read and written again by the library, is the same but for defaults.
function sameButDefaults(wire, canonical, where) {
  const isTime = typeof wire === "string" && /^\d{4}-.*T.*Z$/.test(wire); // of which the fraction may end in zeros
  if (isTime) return assert.equal(canonical, wire.replace(/\.0+Z$/, "Z").replace(/(\.\d{3}|\.\d{6})(000)+Z$/, "$1Z"), where);
  if (wire === null || typeof wire !== "object") return assert.deepEqual(canonical, wire, where);
  for (const [key, value] of Object.entries(wire)) {
    const isDefault = ["", 0, false, "0", null].includes(value) || (typeof value === "object" && Object.keys(value).length === 0);
    if (canonical?.[key] === undefined && isDefault) continue;
    if (canonical?.[key] === undefined && ["none", "no", "unknown"].includes(value)) continue;
    sameButDefaults(value, canonical?.[key], `${where}.${key}`);
  }
}

await claim("json_is_what_proto3_says", async () => {
  const { process } = await holt.process.start({ sandboxId, process: { args: ["sh", "-c", "echo x"] } });
  await holt.process.wait({ sandboxId, processId: process.id });
  await holt.snapshot.turnComplete({ sandboxId });
  const looks = { "HostService/Health": {}, "SandboxService/Get": { sandboxId }, "SandboxService/List": {},
    "ProcessService/Get": { sandboxId, processId: process.id }, "ProcessService/List": { sandboxId },
    "HostService/Capabilities": {}, "SandboxService/Stats": {}, "TokenService/List": {}, "VolumeService/List": {}, "FileService/Stat": { sandboxId, path: "/" },
    "FileService/List": { sandboxId, path: "/" }, "SnapshotService/List": { sandboxId }, "TemplateService/List": {}, "PortService/List": {}, "ShellService/List": { sandboxId } };
  for (const [name, message] of Object.entries(looks)) {
    const [service, method] = name.split("/");
    const { output } = services[service].methods.find((each) => each.name === method);
    const wire = JSON.parse((await raw(name, message))[1]);
    sameButDefaults(wire, toJson(output, fromJson(output, wire)), name);
  }
});

await claim("requests_may_be_any_json_that_proto3_allows", async () => {
  const ok = async (method, message) => {
    const [response, body] = await raw(method, message);
    assert.equal(response.statusCode, 200, `${JSON.stringify(message)}: ${body}`);
    return JSON.parse(body);
  };
  await ok("SandboxService/Get", { sandboxId: "manners" });
  await ok("SandboxService/Get", { sandbox_id: "manners" }); // the name in the .proto
  await ok("ProcessService/Wait", { sandboxId, processId: "p1", timeoutMs: "1" });
  await ok("ProcessService/Wait", { sandboxId, processId: "p1", timeoutMs: 1 });
  await ok("ProcessService/Wait", '{"sandboxId":"manners","processId":"p1","timeoutMs":1.0}');
  await ok("ProcessService/Wait", '{"sandboxId":"manners","processId":"p1","timeoutMs":1e0}');
  await ok("ProcessService/Wait", { sandboxId, processId: "p1", timeoutMs: null });
  const { process } = await ok("ProcessService/Start", { sandboxId, process: { args: ["cat"], stdin: true } });
  for (const data of ["+/8=", "-_8=", "-_8", "+/8"]) // both alphabets, with padding or without
    await ok("ProcessService/SendInput", { sandboxId, processId: process.id, data });
  await ok("ProcessService/SendInput", { sandboxId, processId: process.id, eof: true });
  await ok("ProcessService/Wait", { sandboxId, processId: process.id });
  const output = await all(holt.process.attach({ sandboxId, processId: process.id }));
  assert.deepEqual(Buffer.concat(output.filter((each) => each.event.case === "stdout").map((each) => each.event.value)),
    Buffer.from("fbfffbfffbfffbff", "hex"));
  for (const restart of ["no", "RESTART_NO", 0]) // the second is that of earlier versions
    await ok("ProcessService/Launch", { sandboxId, process: { args: ["true"] }, restart });
});

await claim("an_error_on_the_wire_is_a_connect_error", async () => {
  const [response, body] = await raw("SandboxService/Get", { sandboxId: "nobody" });
  assert.equal(response.statusCode, 404);
  assert.equal(response.headers["content-type"], "application/json");
  const error = JSON.parse(body);
  assert.equal(error.code, "not_found");
  assert.ok(ConnectError.from(error));
  const [missing] = await raw("SandboxService/Nothing", {});
  assert.equal(missing.statusCode, 404);
  const [wrong] = await raw("SandboxService/Get", "{}", { "Content-Type": "text/plain" });
  assert.equal(wrong.statusCode, 415);
});

await holt.sandbox.destroy({ sandboxId });
finish();
