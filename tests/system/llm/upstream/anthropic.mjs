// The wire format of Anthropic: POST /v1/messages.
import { deltasOf, outputTokensOf } from "./directives.mjs";

const ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
};

export function error(status, message) {
    const type = ERROR_TYPES[status] ?? "api_error";
    return { type: "error", error: { type, message }, request_id: "req_test" };
}

export function check(body) {
    if (!Array.isArray(body.messages) || body.messages.length === 0) return "messages: required";
    return undefined;
}

function blocksOf(message) {
    if (typeof message.content === "string") return [{ type: "text", text: message.content }];
    return message.content;
}

export function lastUserText(body) {
    const users = body.messages.filter((message) => message.role === "user");
    const texts = users.flatMap(blocksOf).filter((block) => block.type === "text");
    return texts.length > 0 ? texts[texts.length - 1].text : "";
}

export function offersTools(body) {
    return Array.isArray(body.tools) && body.tools.length > 0;
}

export function toolResultCount(body) {
    return body.messages.flatMap(blocksOf).filter((block) => block.type === "tool_result").length;
}

function usageOf(plan) {
    return {
        input_tokens: plan.inputTokens,
        cache_creation_input_tokens: plan.cacheCreated,
        cache_read_input_tokens: plan.cacheRead,
        output_tokens: outputTokensOf(plan),
    };
}

function toolId(index) {
    return `toolu_${Date.now().toString(36)}${index}`;
}

function stopReason(plan) {
    return plan.tools.length > 0 ? "tool_use" : "end_turn";
}

function shell(body, usage) {
    return {
        id: `msg_${Date.now().toString(36)}`,
        type: "message",
        role: "assistant",
        model: body.model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        ...(usage ? { usage } : {}),
    };
}

export function message(body, plan) {
    const content = [{ type: "text", text: deltasOf(plan).join("") }].filter((block) => block.text);
    plan.tools.forEach((tool, i) => content.push({ type: "tool_use", id: toolId(i), ...tool }));
    const usage = plan.hasNoUsage ? undefined : usageOf(plan);
    return { ...shell(body, usage), content, stop_reason: stopReason(plan) };
}

async function streamText(reply, plan) {
    await reply.event("content_block_start", {
        type: "content_block_start",
        index: 0,
        content_block: { type: "text", text: "" },
    });
    await reply.event("ping", { type: "ping" });
    for (const text of deltasOf(plan)) {
        await reply.beforeDelta();
        await reply.event("content_block_delta", {
            type: "content_block_delta",
            index: 0,
            delta: { type: "text_delta", text },
        });
    }
    await reply.event("content_block_stop", { type: "content_block_stop", index: 0 });
}

async function streamTool(reply, tool, index) {
    await reply.event("content_block_start", {
        type: "content_block_start",
        index,
        content_block: { type: "tool_use", id: toolId(index), name: tool.name, input: {} },
    });
    for (const part of JSON.stringify(tool.input).match(/[^]{1,20}/g))
        await reply.event("content_block_delta", {
            type: "content_block_delta",
            index,
            delta: { type: "input_json_delta", partial_json: part },
        });
    await reply.event("content_block_stop", { type: "content_block_stop", index });
}

export async function stream(reply, body, plan) {
    const start = { ...usageOf(plan), output_tokens: 1 };
    const usage = { output_tokens: outputTokensOf(plan) };
    reply.begin();
    await reply.event("message_start", {
        type: "message_start",
        message: shell(body, plan.hasNoUsage ? undefined : start),
    });
    const hasText = plan.tools.length === 0 || deltasOf(plan).length > 0;
    if (hasText) await streamText(reply, plan);
    for (const [i, tool] of plan.tools.entries()) await streamTool(reply, tool, i + Number(hasText));
    await reply.event("message_delta", {
        type: "message_delta",
        delta: { stop_reason: stopReason(plan), stop_sequence: null },
        ...(plan.hasNoUsage ? {} : { usage }),
    });
    await reply.event("message_stop", { type: "message_stop" });
    reply.response.end();
}
