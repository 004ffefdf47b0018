// The wire format of OpenAI: POST /v1/responses.
import { deltasOf, outputTokensOf } from "./directives.mjs";

export { error } from "./openai_error.mjs";

export function check(body) {
    if (body.input === undefined) return "input: required";
    return undefined;
}

function itemsOf(body) {
    if (typeof body.input === "string") return [{ role: "user", content: body.input }];
    return body.input;
}

export function lastUserText(body) {
    const users = itemsOf(body).filter((item) => item.role === "user");
    if (users.length === 0) return "";
    const { content } = users[users.length - 1];
    if (typeof content === "string") return content;
    const texts = content.filter((part) => part.type === "input_text");
    return texts.length > 0 ? texts[texts.length - 1].text : "";
}

export function offersTools(body) {
    return Array.isArray(body.tools) && body.tools.length > 0;
}

export function toolResultCount(body) {
    return itemsOf(body).filter((item) => /_call_output$/.test(item.type ?? "")).length;
}

function usageOf(plan) {
    const output = outputTokensOf(plan);
    return {
        input_tokens: plan.inputTokens,
        input_tokens_details: { cached_tokens: plan.cacheRead },
        output_tokens: output,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: plan.inputTokens + output,
    };
}

function shell(body, status) {
    return {
        id: `resp_${Date.now().toString(36)}`,
        object: "response",
        created_at: Math.floor(Date.now() / 1000),
        status,
        model: body.model,
        output: [],
        parallel_tool_calls: true,
        tools: [],
        tool_choice: "auto",
        usage: null,
    };
}

function textItem(text, status) {
    return {
        id: "msg_test",
        type: "message",
        role: "assistant",
        status,
        content: text === undefined ? [] : [{ type: "output_text", text, annotations: [] }],
    };
}

function callItem(tool, index, status) {
    return {
        id: `fc_test${index}`,
        type: "function_call",
        status,
        call_id: `call_${Date.now().toString(36)}${index}`,
        name: tool.name,
        arguments: status === "completed" ? JSON.stringify(tool.input) : "",
    };
}

function outputOf(plan) {
    const text = deltasOf(plan).join("");
    const output = text || plan.tools.length === 0 ? [textItem(text, "completed")] : [];
    plan.tools.forEach((tool, i) => output.push(callItem(tool, i, "completed")));
    return output;
}

export function message(body, plan) {
    return {
        ...shell(body, "completed"),
        output: outputOf(plan),
        ...(plan.hasNoUsage ? {} : { usage: usageOf(plan) }),
    };
}

async function streamText(send, reply, plan, index) {
    const place = { item_id: "msg_test", output_index: index, content_index: 0 };
    const text = deltasOf(plan).join("");
    const part = { type: "output_text", text: "", annotations: [] };
    await send("response.output_item.added", { output_index: index, item: textItem(undefined, "in_progress") });
    await send("response.content_part.added", { ...place, part });
    for (const delta of deltasOf(plan)) {
        await reply.beforeDelta();
        await send("response.output_text.delta", { ...place, delta });
    }
    await send("response.output_text.done", { ...place, text });
    await send("response.content_part.done", { ...place, part: { ...part, text } });
    await send("response.output_item.done", { output_index: index, item: textItem(text, "completed") });
}

async function streamCall(send, item, index) {
    const place = { item_id: item.id, output_index: index };
    const added = { ...item, status: "in_progress", arguments: "" };
    await send("response.output_item.added", { output_index: index, item: added });
    for (const delta of item.arguments.match(/[^]{1,20}/g))
        await send("response.function_call_arguments.delta", { ...place, delta });
    await send("response.function_call_arguments.done", { ...place, arguments: item.arguments });
    await send("response.output_item.done", { output_index: index, item });
}

export async function stream(reply, body, plan) {
    let number = 0;
    const send = (type, rest) => reply.event(type, { type, sequence_number: number++, ...rest });
    const response = shell(body, "in_progress");
    const whole = { ...message(body, plan), id: response.id, created_at: response.created_at };
    reply.begin();
    await send("response.created", { response });
    await send("response.in_progress", { response });
    for (const [index, item] of whole.output.entries()) {
        if (item.type === "message") await streamText(send, reply, plan, index);
        else await streamCall(send, item, index);
    }
    await send("response.completed", { response: whole });
    reply.response.end();
}
