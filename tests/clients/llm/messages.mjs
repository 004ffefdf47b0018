// The official client of Anthropic drives the gateway from inside a sandbox: it finds address and key in its environment.
import assert from "node:assert/strict";
import Anthropic, { APIConnectionError, APIUserAbortError } from "@anthropic-ai/sdk";
import { claim, finish } from "./claims.mjs";
import { PIXEL, rejection } from "./shared.mjs";

const client = new Anthropic();
const ask = (content, more = {}) => ({ model: "claude", max_tokens: 100, messages: [{ role: "user", content }], ...more });
const TOOL = { name: "add", description: "adds", input_schema: { type: "object", properties: { a: { type: "number" } } } };

await claim("anthropic_sdk_gets_a_message", async () => {
  const message = await client.messages.create(ask("[[say hello there]] [[usage 7 3 2 1]]"));
  assert.deepEqual(message.content.map((each) => each.text), ["hello there"]);
  assert.deepEqual([message.usage.input_tokens, message.usage.output_tokens, message.usage.cache_read_input_tokens], [7, 3, 2]);
});

await claim("anthropic_sdk_streams", async () => {
  const texts = [];
  const stream = client.messages.stream(ask("[[say one two three]] [[usage 5 3]]")).on("text", (text) => texts.push(text));
  const message = await stream.finalMessage();
  assert.equal(texts.join(""), "one two three");
  assert.ok(texts.length > 1, "it came in one piece");
  assert.deepEqual([message.stop_reason, message.usage.output_tokens], ["end_turn", 3]);
});

await claim("anthropic_sdk_calls_tools_and_returns_results", async () => {
  const prompt = '[[tool add {"a": 5, "text": "ä \\"quoted\\" \\\\ 漢"}]]';
  const first = await client.messages.stream(ask(prompt, { tools: [TOOL] })).finalMessage();
  const call = first.content.find((each) => each.type === "tool_use");
  assert.equal(first.stop_reason, "tool_use");
  assert.deepEqual(call.input, { a: 5, text: 'ä "quoted" \\ 漢' });
  const messages = [
    { role: "user", content: prompt },
    { role: "assistant", content: first.content },
    { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "6" }, { type: "text", text: "[[say six]]" }] },
  ];
  const second = await client.messages.create({ model: "claude", max_tokens: 100, tools: [TOOL], messages });
  assert.equal(second.content[0].text, "six");
});

await claim("anthropic_sdk_sends_images", async () => {
  const source = { type: "base64", media_type: "image/png", data: PIXEL };
  const message = await client.messages.create(ask([{ type: "image", source }, { type: "text", text: "[[say a pixel]]" }]));
  assert.equal(message.content[0].text, "a pixel");
});

await claim("anthropic_sdk_counts_tokens_and_lists_models", async () => {
  const { max_tokens: _, ...request } = ask("[[usage 42 0]]");
  assert.equal((await client.messages.countTokens(request)).input_tokens, 42);
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.deepEqual(names, ["claude"]); // those of its format
});

await claim("anthropic_sdk_knows_every_error", async () => {
  const once = new Anthropic({ maxRetries: 0 });
  const wanted = [[400, Anthropic.BadRequestError], [401, Anthropic.AuthenticationError], [403, Anthropic.PermissionDeniedError],
    [429, Anthropic.RateLimitError], [500, Anthropic.InternalServerError], [529, Anthropic.InternalServerError]];
  for (const [status, type] of wanted) {
    const error = await rejection(once.messages.create(ask(`[[status ${status}]]`)));
    assert.ok(error instanceof type, `${status}: ${error}`);
    assert.equal(error.status, status);
  }
  const wrong = await rejection(new Anthropic({ apiKey: "wrong" }).messages.create(ask("x")));
  assert.ok(wrong instanceof Anthropic.AuthenticationError && wrong.error.error.type === "authentication_error");
  const missing = await rejection(client.messages.create(ask("x", { model: "absent" })));
  assert.ok(missing instanceof Anthropic.NotFoundError && missing.error.error.type === "not_found_error");
});

await claim("anthropic_sdk_tries_again", async () => {
  for (const status of [429, 500, 529]) {
    const message = await client.messages.create(ask(`[[once a${status}]] [[status ${status}]] [[retry-after 0]] [[say again]]`));
    assert.equal(message.content[0].text, "again");
  }
});

await claim("anthropic_sdk_sees_that_a_stream_was_cut", async () => {
  const error = await rejection(client.messages.stream(ask("[[tokens 50]] [[cut 20]]")).finalMessage());
  assert.ok(error instanceof APIConnectionError || /terminated|ended without|aborted|socket/i.test(String(error.cause ?? error)), String(error));
});

await claim("anthropic_sdk_aborts", async () => {
  const stream = client.messages.stream(ask("[[tokens 100000]] [[pace 5]]"));
  stream.once("text", () => stream.abort());
  assert.ok((await rejection(stream.finalMessage())) instanceof APIUserAbortError);
  const times_out = new Anthropic({ timeout: 200, maxRetries: 0 });
  const late = await rejection(times_out.messages.create(ask("[[delay 60000]]")));
  assert.ok(late instanceof Anthropic.APIConnectionTimeoutError, String(late));
  assert.equal((await client.messages.create(ask("[[say after]]"))).content[0].text, "after");
});

finish();
