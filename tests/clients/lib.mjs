// What the tests of the official Connect client share: transports, claims, and which methods were called.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";

export { claim, finish } from "./claims.mjs";

const generated = new URL("gen/holt/v1/", import.meta.url);

// The services of every .proto, by name: { SandboxService: DescService, ... }.
export const services = {};
export const enums = {};
for (const file of readdirSync(generated)) {
  const exported = Object.values(await import(new URL(file, generated)));
  for (const each of exported) {
    if (each?.kind === "service") services[each.name] = each;
    if (each?.kind === "enum") enums[each.name] = each;
  }
}

const called = new Set();
const remember = (next) => (request) => {
  called.add(`${request.service.name}/${request.method.name}`);
  return next(request);
};

// Every method of every service that no client has called.
export function neglected() {
  const all = Object.values(services).flatMap((service) =>
    service.methods.map((method) => `${service.name}/${method.name}`));
  return all.filter((name) => !called.has(name));
}

function clientsOf(options) {
  const transport = createConnectTransport({
    httpVersion: "1.1",
    useBinaryFormat: false,
    // An unknown field in a reply is an error: the contract is to be what is sent.
    jsonOptions: { ignoreUnknownFields: false },
    ...options,
    interceptors: [...(options.interceptors ?? []), remember],
  });
  return Object.fromEntries(Object.values(services).map((service) =>
    [service.name.replace("Service", "").toLowerCase(), createClient(service, transport)]));
}

// One client a service: { sandbox, process, ... }.
export function overUnix(socketPath) {
  return clientsOf({ baseUrl: "http://holt", nodeOptions: { socketPath } });
}

export function overTcp(address, token) {
  const authorize = (next) => (request) => {
    if (token) request.header.set("Authorization", `Bearer ${token}`);
    return next(request);
  };
  return clientsOf({ baseUrl: `http://${address}`, interceptors: [authorize] });
}

// That a call fails as a ConnectError with this code; returns it.
export async function refused(code, promise) {
  try {
    await promise;
  } catch (error) {
    const refusal = ConnectError.from(error);
    assert.equal(Code[refusal.code], Code[code], refusal.message);
    assert.ok(refusal.rawMessage.length > 0);
    return refusal;
  }
  assert.fail(`succeeded, and not ${Code[code]}`);
}

export async function all(stream) {
  const messages = [];
  for await (const message of stream) messages.push(message);
  return messages;
}

// The bytes of one case of a stream of events, as text.
export function text(messages, name) {
  return Buffer.concat(messages.filter((each) => each.event.case === name).map((each) => each.event.value))
    .toString();
}

export async function eventually(isTrue) {
  for (let i = 0; i < 6000; i++) {
    if (await isTrue()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`never came true: ${isTrue}`);
}
