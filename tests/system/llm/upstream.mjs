// A provider of models for tests: the wire formats of Anthropic and OpenAI, as their documents
// describe them, over HTTP or HTTPS. Needs Node 18 and no packages.
//
//   node upstream.mjs [--port N] [--host ADDRESS] [--key KEY]... [--cert FILE --tls-key FILE]
//                     [--script FILE] [--log FILE]
//
// It prints "listening PORT" and ends with SIGTERM. Without --key it accepts any key. It serves
//   HEAD /, GET /v1/models, POST /v1/messages, POST /v1/messages/count_tokens,
//   POST /v1/chat/completions, POST /v1/responses
// and, for tests only,
//   GET /_requests        what it was asked: [{method, path, headers, bytes, model}]
//   POST /_keys           replaces the keys that are accepted: ["..."]
//   GET /_open            {"streams": N, "held": N}: streams that are not ended; steps that wait
//   POST /_release        ends the waiting of all steps with "hold"
// A request with the header x-test-early is refused before its body is read.
// Any model is known but those whose names begin with "missing"; /v1/models lists a few.
// --log appends the same as /_requests to a file, one JSON object a line.
//
// A reply is decided by, in this order:
// 1. directives in the last text of the user, see directives.mjs: [[say hello]] [[status 529]] ...
// 2. --script: a JSON array of steps, [{"text": "...", "tools": [{"name": "Bash", "input": {...}}],
//    "hold": true}]; one with hold is answered after /_release.
//    The step is the number of tool results in the conversation, so requests may come in any order
//    and any number of conversations may run. It is used for requests that offer tools.
// 3. otherwise the text "You said: " and the last text of the user.
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { parseArgs } from "node:util";
import * as anthropic from "./upstream/anthropic.mjs";
import * as chat from "./upstream/chat.mjs";
import { directivesOf } from "./upstream/directives.mjs";
import { Reply } from "./upstream/reply.mjs";
import * as responses from "./upstream/responses.mjs";

const { values: options } = parseArgs({
    options: {
        port: { type: "string", default: "0" },
        host: { type: "string", default: "127.0.0.1" },
        key: { type: "string", multiple: true, default: [] },
        cert: { type: "string" },
        "tls-key": { type: "string" },
        script: { type: "string" },
        log: { type: "string" },
    },
});

const MODELS = ["claude-test", "claude-test-small", "gpt-test", "gpt-test-small"];
const REQUESTS_MAX = 100_000;
const script = options.script ? JSON.parse(readFileSync(options.script, "utf8")) : [];
const failed = new Map(); // text of a request with [[once]]: how often it was refused
const requests = [];
let keys = options.key;
const waiting = new Set(); // functions that answer a step with hold
let isReleased = false;
const doomed = new WeakSet(); // connections that are reset when another request comes
let streams = 0;

function readBody(request) {
    return new Promise((resolve, reject) => {
        const parts = [];
        request.on("data", (part) => parts.push(part));
        request.on("end", () => resolve(Buffer.concat(parts)));
        request.on("error", reject);
    });
}

function keyOf(headers) {
    const bearer = /^Bearer (.*)$/.exec(headers.authorization ?? "");
    return headers["x-api-key"] ?? bearer?.[1] ?? "";
}

function note(request, body, model) {
    const entry = {
        method: request.method,
        path: request.url,
        headers: request.headers,
        bytes: body.length,
        model,
    };
    if (requests.length < REQUESTS_MAX) requests.push(entry);
    if (options.log) appendFileSync(options.log, JSON.stringify(entry) + "\n");
}

function sendJson(response, status, value, headers = {}) {
    const text = JSON.stringify(value);
    response.writeHead(status, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(text),
        "request-id": "req_test",
        ...headers,
    });
    response.end(text);
}

// What to answer: directives, else a step of the script, else an echo.
function planOf(format, body, raw) {
    const text = format.lastUserText(body);
    const plan = directivesOf(text);
    plan.inputTokens ??= Math.ceil(raw.length / 4);
    if (plan.isDirected) return plan;
    const step = format.offersTools(body) ? script[format.toolResultCount(body)] : undefined;
    if (step) return { ...plan, text: step.text ?? "", tools: step.tools ?? [], isHeld: step.hold };
    return { ...plan, text: `You said: ${text.slice(0, 200)}` };
}

async function answer(format, path, request, response, raw) {
    let body;
    try {
        body = JSON.parse(raw.toString("utf8"));
    } catch {
        return sendJson(response, 400, format.error(400, "the body is not JSON"));
    }
    note(request, raw, body.model);
    if (typeof body.model !== "string" || body.model.startsWith("missing"))
        return sendJson(response, 404, format.error(404, `model: ${body.model}`));
    const wrong = format.check(body);
    if (wrong) return sendJson(response, 400, format.error(400, wrong));
    const plan = planOf(format, body, raw);
    if (path.endsWith("/count_tokens"))
        return sendJson(response, 200, { input_tokens: plan.inputTokens });

    const refusals = failed.get(plan.onceKey) ?? 0;
    if (plan.status && (!plan.onceKey || refusals === 0)) {
        if (plan.onceKey) failed.set(plan.onceKey, refusals + 1);
        const headers = plan.retryAfter === undefined ? {} : { "retry-after": plan.retryAfter };
        return sendJson(response, plan.status, format.error(plan.status, "asked for"), headers);
    }
    if (plan.reflectsKey) plan.text = `The key is ${keyOf(request.headers)} here`;
    if (plan.reflectsKeyInField) response.setHeader("x-key", keyOf(request.headers));
    if (plan.isLast) doomed.add(request.socket);
    streams++;
    response.on("close", () => streams--);
    if (plan.isHeld && !isReleased) await new Promise((resolve) => waiting.add(resolve));
    const reply = new Reply(response, plan);
    await reply.pause(plan.delayMs);
    if (body.stream) await format.stream(reply, body, plan);
    else await reply.whole(format.message(body, plan));
}

function listModels(request, response) {
    const data = MODELS.map((id) => ({
        id,
        type: "model",
        object: "model",
        display_name: id,
        created: 1767225600,
        created_at: "2026-01-01T00:00:00Z",
        owned_by: "test",
    }));
    const last = MODELS[MODELS.length - 1];
    sendJson(response, 200, { object: "list", data, has_more: false, first_id: MODELS[0], last_id: last });
}

function control(path, response, raw) {
    if (path === "/_requests") return sendJson(response, 200, requests);
    if (path === "/_open") return sendJson(response, 200, { streams, held: waiting.size });
    if (path === "/_release") {
        isReleased = true;
        for (const each of waiting) each();
        waiting.clear();
        return sendJson(response, 200, {});
    }
    keys = JSON.parse(raw.toString("utf8"));
    sendJson(response, 200, {});
}

const FORMATS = {
    "/v1/messages": anthropic,
    "/v1/messages/count_tokens": anthropic,
    "/v1/chat/completions": chat,
    "/v1/responses": responses,
};

async function handle(request, response) {
    const path = request.url.split("?")[0];
    if (doomed.has(request.socket)) return request.socket.resetAndDestroy();
    if (request.headers["x-test-early"])
        return sendJson(response, 413, anthropic.error(413, "not read to its end"));
    const raw = await readBody(request);
    if (["/_requests", "/_open", "/_keys", "/_release"].includes(path)) return control(path, response, raw);
    if (request.method === "HEAD" && path === "/") {
        note(request, raw, undefined);
        return response.writeHead(200).end();
    }
    const isAnthropic = path.startsWith("/v1/messages") || "anthropic-version" in request.headers;
    const format = FORMATS[path] ?? (isAnthropic ? anthropic : chat);
    if (keys.length > 0 && !keys.includes(keyOf(request.headers))) {
        note(request, raw, undefined);
        return sendJson(response, 401, format.error(401, "invalid key"));
    }
    if (request.method === "GET" && path === "/v1/models") {
        note(request, raw, undefined);
        return listModels(request, response);
    }
    if (request.method !== "POST" || !FORMATS[path])
        return sendJson(response, 404, format.error(404, `no such path: ${path}`));
    await answer(format, path, request, response, raw);
}

function onRequest(request, response) {
    handle(request, response).catch((error) => {
        if (!response.destroyed) console.error(error);
        response.destroy();
    });
}

const server = options.cert
    ? createSecureServer(
          { cert: readFileSync(options.cert), key: readFileSync(options["tls-key"]) },
          onRequest,
      )
    : createServer(onRequest);
server.keepAliveTimeout = 600_000;
server.requestTimeout = 0;
server.listen({ port: Number(options.port), host: options.host, backlog: 4096 }, () => {
    console.log(`listening ${server.address().port}`);
});
process.on("SIGTERM", () => process.exit(0));
