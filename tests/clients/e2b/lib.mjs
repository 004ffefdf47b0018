// What the tests with E2B's own SDKs share: claims, sandboxes that go when a claim is done, and which
// public methods of the SDKs were called. Covers nothing by itself.
//
// Environment: E2B_API_URL, E2B_SANDBOX_URL, E2B_API_KEY as users set them; E2B_CALLED, a file that
// each process adds what it saw and called to, for complete.mjs.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { appendFileSync } from "node:fs";
import { inspect } from "node:util";
import * as sdk from "e2b";
import { E2B as InterpreterClient, Sandbox as InterpreterSandbox } from "@e2b/code-interpreter";

// --- which methods were called -------------------------------------------------------------------

const seen = new Set(), called = new Set(), instrumented = new Set();
const inside = new AsyncLocalStorage(); // calls that the SDK makes by itself are nobody's test

function instrument(target, prefix) {
  if (instrumented.has(target)) return;
  instrumented.add(target);
  for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(target))) {
    const original = property.value;
    if (name === "constructor" || name.startsWith("default") || typeof original !== "function") continue;
    seen.add(prefix + name);
    Object.defineProperty(target, name, {
      ...property,
      value: function (...args) {
        if (!inside.getStore()) called.add(prefix + name);
        const result = inside.run(true, () => original.apply(this, args));
        return typeof result?.then === "function" ? result.then(noteInstance) : noteInstance(result);
      },
    });
  }
}

function instrumentClass(type, name) {
  instrument(type, `${name}.`);
  instrument(type.prototype, `${name}#`);
}

// Classes that the SDK does not export are met as results.
function noteInstance(result) {
  const name = result?.constructor?.name;
  if (["CommandHandle", "WatchHandle", "SandboxPaginator", "SnapshotPaginator", "SecretPaginator"].includes(name))
    instrument(result.constructor.prototype, `${name}#`);
  return result;
}

const sample = new sdk.Sandbox({ sandboxId: "sample", envdVersion: "0.6.13", apiKey: "e2b_00" });
instrumentClass(Object.getPrototypeOf(sdk.Sandbox), "Sandbox"); // SandboxApi
instrumentClass(sdk.Sandbox, "Sandbox");
instrumentClass(InterpreterSandbox, "CodeInterpreter");
instrumentClass(sdk.TemplateBase, "Template");
instrumentClass(sdk.Volume, "Volume");
instrumentClass(sdk.Secret, "Secret");
for (const each of [sample.commands, sample.pty, sample.files, sample.git])
  instrument(each.constructor.prototype, `${each.constructor.name}#`);

// --- clients -------------------------------------------------------------------------------------

// No limit of time of the client's own: a slow machine is no failure.
const patient = { requestTimeoutMs: 0 };
export const { Sandbox, Template, Volume, Secret } = new sdk.E2B(patient);
export const { Sandbox: Interpreter } = new InterpreterClient(patient);
export const apiUrl = process.env.E2B_API_URL;
export const apiKey = process.env.E2B_API_KEY;
export const e2bKey = apiKey.replace(/^holt_/, "e2b_"); // the same, as older SDKs insist on it
export const longMs = 3600e3;

const made = new Set();

// A sandbox that is killed at the end of the claim that has made it.
export async function sandbox(options = {}) {
  const { template, from = Sandbox, ...rest } = options;
  const opts = { timeoutMs: longMs, ...rest };
  return keep(template ? await from.create(template, opts) : await from.create(opts));
}

export function keep(each) {
  made.add(each.sandboxId);
  return each;
}

export const run = (box, command, opts = {}) => box.commands.run(command, { timeoutMs: 0, ...opts });
export const start = (box, command, opts = {}) => run(box, command, { background: true, ...opts });
export const stdout = async (box, command, opts) => (await run(box, command, opts)).stdout;

// A call to the API by hand: what no current SDK sends, or what it does not show of an answer.
export async function call(method, path, body, headers = {}) {
  const response = await fetch(apiUrl + path, {
    method,
    headers: { "X-API-KEY": apiKey, ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  let json;
  try {
    json = JSON.parse(text);
  } catch { /* not every answer is JSON */ }
  return { status: response.status, headers: response.headers, text, json };
}

// The same to a port of a sandbox; 49983 is envd.
export function callSandbox(box, method, path, { port = 49983, headers = {}, token = box.envdAccessToken, body } = {}) {
  return fetch(apiUrl + path, {
    method,
    headers: {
      "E2b-Sandbox-Id": box.sandboxId, "E2b-Sandbox-Port": String(port),
      ...(token ? { "X-Access-Token": token } : {}), ...headers,
    },
    body,
    ...(body instanceof ReadableStream ? { duplex: "half" } : {}),
  });
}

// --- claims --------------------------------------------------------------------------------------

const only = process.env.TEST_ONLY ?? "";
let failures = 0;

export async function claim(name, body) {
  if (!name.includes(only)) return;
  try {
    await body();
    console.log(`ok: ${name}`);
  } catch (error) {
    failures++;
    console.log(`not ok: ${name}`);
    console.log(inspect(error, { depth: 3 }).replace(/^/gm, "    "));
  }
  for (const id of made) await Sandbox.kill(id).catch(() => {});
  made.clear();
}

export function finish() {
  if (process.env.E2B_CALLED) {
    const lines = [...[...seen].map((each) => `seen ${each}\n`), ...[...called].map((each) => `called ${each}\n`)];
    appendFileSync(process.env.E2B_CALLED, lines.join(""));
  }
  process.exit(failures === 0 ? 0 : 1);
}

// That a promise is rejected with exactly this class, not with one derived from it; returns the error.
export async function refused(type, promise, message) {
  try {
    await promise;
  } catch (error) {
    assert.equal(error?.constructor?.name, type.name, inspect(error));
    if (message) assert.match(error.message, message);
    return error;
  }
  assert.fail(`succeeded, and no ${type.name}`);
}

export async function eventually(isTrue) {
  for (let i = 0; i < 6000; i++) {
    if (await isTrue()) return;
    await pause(50);
  }
  assert.fail(`never came true: ${isTrue}`);
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const pattern = (size) => {
  const bytes = new Uint8Array(size);
  for (let i = 0; i < size; i++) bytes[i] = (i * 31 + (i >> 8)) & 255;
  return bytes;
};
