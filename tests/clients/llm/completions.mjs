// The official client of OpenAI drives the gateway from inside a sandbox: it finds address and key in its environment.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { claim, finish } from "./claims.mjs";
import { PIXEL, rejection } from "./shared.mjs";

const client = new OpenAI();
const ask = (content, more = {}) => ({ model: "gpt", messages: [{ role: "user", content }], ...more });
const respond = (input, more = {}) => ({ model: "gpt", input, ...more });
const PARAMETERS = { type: "object", properties: { a: { type: "number" } } };

await claim("openai_sdk_gets_a_completion_and_a_response", async () => {
  const completion = await client.chat.completions.create(ask("[[say hello there]] [[usage 7 3 2]]"));
  assert.equal(completion.choices[0].message.content, "hello there");
  assert.deepEqual([completion.usage.prompt_tokens, completion.usage.prompt_tokens_details.cached_tokens], [7, 2]);
  const response = await client.responses.create(respond("[[say hello there]] [[usage 7 3]]"));
  assert.deepEqual([response.output_text, response.usage.output_tokens], ["hello there", 3]);
});

await claim("openai_sdk_streams_completions", async () => {
  const texts = [];
  let usage;
  const more = { stream: true, stream_options: { include_usage: true } };
  for await (const chunk of await client.chat.completions.create(ask("[[say one two three]] [[usage 5 3]]", more))) {
    texts.push(chunk.choices[0]?.delta?.content ?? "");
    usage = chunk.usage ?? usage;
  }
  assert.equal(texts.join(""), "one two three");
  assert.equal(usage.completion_tokens, 3);
});

await claim("openai_sdk_streams_responses", async () => {
  const types = new Set();
  let text = "";
  for await (const event of await client.responses.create(respond("[[say one two three]]", { stream: true }))) {
    types.add(event.type);
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  assert.equal(text, "one two three");
  assert.ok(types.has("response.created") && types.has("response.completed"));
});

await claim("openai_sdk_calls_tools", async () => {
  const input = '{"a": 5, "text": "ä \\"quoted\\" 漢"}';
  const tools = [{ type: "function", function: { name: "add", parameters: PARAMETERS } }];
  const completion = await client.chat.completions.create(ask(`[[tool add ${input}]]`, { tools }));
  const call = completion.choices[0].message.tool_calls[0];
  assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["add", JSON.parse(input)]);
  const messages = [{ role: "user", content: "x" }, completion.choices[0].message,
    { role: "tool", tool_call_id: call.id, content: "6" }, { role: "user", content: "[[say six]]" }];
  assert.equal((await client.chat.completions.create({ model: "gpt", messages, tools })).choices[0].message.content, "six");
  const flat = [{ type: "function", name: "add", parameters: PARAMETERS, strict: false }];
  const stream = client.responses.stream(respond(`[[tool add ${input}]]`, { tools: flat }));
  const item = (await stream.finalResponse()).output.find((each) => each.type === "function_call");
  assert.deepEqual(JSON.parse(item.arguments), JSON.parse(input));
});

await claim("openai_sdk_sends_images", async () => {
  const url = `data:image/png;base64,${PIXEL}`;
  const parts = [{ type: "image_url", image_url: { url } }, { type: "text", text: "[[say a pixel]]" }];
  assert.equal((await client.chat.completions.create(ask(parts))).choices[0].message.content, "a pixel");
  const content = [{ type: "input_image", image_url: url, detail: "auto" }, { type: "input_text", text: "[[say a pixel]]" }];
  assert.equal((await client.responses.create(respond([{ role: "user", content }]))).output_text, "a pixel");
});

await claim("openai_sdk_lists_models", async () => {
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.deepEqual(names, ["gpt"]); // those of its format
});

await claim("openai_sdk_knows_every_error", async () => {
  const once = new OpenAI({ maxRetries: 0 });
  const wanted = [[400, OpenAI.BadRequestError], [401, OpenAI.AuthenticationError], [403, OpenAI.PermissionDeniedError],
    [429, OpenAI.RateLimitError], [500, OpenAI.InternalServerError]];
  for (const [status, type] of wanted) {
    const error = await rejection(once.chat.completions.create(ask(`[[status ${status}]]`)));
    assert.ok(error instanceof type, `${status}: ${error}`);
    assert.equal(error.status, status);
  }
  const wrong = await rejection(new OpenAI({ apiKey: "wrong" }).responses.create(respond("x")));
  assert.ok(wrong instanceof OpenAI.AuthenticationError && wrong.code === "invalid_api_key");
  const missing = await rejection(client.responses.create(respond("x", { model: "absent" })));
  assert.ok(missing instanceof OpenAI.NotFoundError && missing.code === "model_not_found");
});

await claim("openai_sdk_tries_again", async () => {
  for (const status of [429, 500]) {
    const prompt = `[[once o${status}]] [[status ${status}]] [[retry-after 0]] [[say again]]`;
    assert.equal((await client.responses.create(respond(prompt))).output_text, "again");
  }
});

await claim("openai_sdk_sees_that_a_stream_was_cut", async () => {
  const read = async () => {
    for await (const _ of await client.chat.completions.create(ask("[[tokens 50]] [[cut 20]]", { stream: true })));
  };
  await rejection(read());
});

await claim("openai_sdk_aborts", async () => {
  const stream = await client.chat.completions.create(ask("[[tokens 100000]] [[pace 5]]", { stream: true }));
  let chunks = 0;
  for await (const _ of stream) if (++chunks === 3) stream.controller.abort();
  assert.equal(chunks, 3);
  const late = await rejection(new OpenAI({ timeout: 200, maxRetries: 0 }).responses.create(respond("[[delay 60000]]")));
  assert.ok(late instanceof OpenAI.APIConnectionTimeoutError, String(late));
  assert.equal((await client.responses.create(respond("[[say after]]"))).output_text, "after");
});

finish();
