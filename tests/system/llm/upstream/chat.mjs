// The wire format of OpenAI: POST /v1/chat/completions.
import { deltasOf, outputTokensOf } from "./directives.mjs";

export { error } from "./openai_error.mjs";

export function check(body) {
    if (!Array.isArray(body.messages) || body.messages.length === 0) return "messages: required";
    return undefined;
}

function textOf(message) {
    if (typeof message.content === "string") return message.content;
    const texts = (message.content ?? []).filter((part) => part.type === "text");
    return texts.length > 0 ? texts[texts.length - 1].text : "";
}

export function lastUserText(body) {
    const users = body.messages.filter((message) => message.role === "user");
    return users.length > 0 ? textOf(users[users.length - 1]) : "";
}

export function offersTools(body) {
    return Array.isArray(body.tools) && body.tools.length > 0;
}

export function toolResultCount(body) {
    return body.messages.filter((message) => message.role === "tool").length;
}

function usageOf(plan) {
    const output = outputTokensOf(plan);
    return {
        prompt_tokens: plan.inputTokens,
        completion_tokens: output,
        total_tokens: plan.inputTokens + output,
        prompt_tokens_details: { cached_tokens: plan.cacheRead },
    };
}

function toolCalls(plan) {
    return plan.tools.map((tool, i) => ({
        id: `call_${Date.now().toString(36)}${i}`,
        type: "function",
        function: { name: tool.name, arguments: JSON.stringify(tool.input) },
    }));
}

function finishReason(plan) {
    return plan.tools.length > 0 ? "tool_calls" : "stop";
}

function shell(body, object) {
    return {
        id: `chatcmpl-${Date.now().toString(36)}`,
        object,
        created: Math.floor(Date.now() / 1000),
        model: body.model,
    };
}

export function message(body, plan) {
    const calls = toolCalls(plan);
    const content = deltasOf(plan).join("");
    return {
        ...shell(body, "chat.completion"),
        choices: [
            {
                index: 0,
                message: {
                    role: "assistant",
                    content: content || null,
                    ...(calls.length > 0 ? { tool_calls: calls } : {}),
                },
                finish_reason: finishReason(plan),
            },
        ],
        ...(plan.hasNoUsage ? {} : { usage: usageOf(plan) }),
    };
}

export async function stream(reply, body, plan) {
    const wantsUsage = body.stream_options?.include_usage && !plan.hasNoUsage;
    const common = shell(body, "chat.completion.chunk");
    const chunk = (delta, finish = null) => ({
        ...common,
        choices: [{ index: 0, delta, finish_reason: finish }],
        ...(wantsUsage ? { usage: null } : {}),
    });
    reply.begin();
    await reply.data(chunk({ role: "assistant", content: "" }));
    for (const content of deltasOf(plan)) {
        await reply.beforeDelta();
        await reply.data(chunk({ content }));
    }
    for (const [index, call] of toolCalls(plan).entries()) {
        const { arguments: text } = call.function;
        const first = { ...call, index, function: { ...call.function, arguments: "" } };
        await reply.data(chunk({ tool_calls: [first] }));
        for (const part of text.match(/[^]{1,20}/g))
            await reply.data(chunk({ tool_calls: [{ index, function: { arguments: part } }] }));
    }
    await reply.data(chunk({}, finishReason(plan)));
    if (wantsUsage) await reply.data({ ...common, choices: [], usage: usageOf(plan) });
    await reply.write("data: [DONE]\n\n");
    reply.response.end();
}
