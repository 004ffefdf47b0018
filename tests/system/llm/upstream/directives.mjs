// What a test asks the upstream for, in the text of a prompt. Directives are written as [[verb rest]]:
//
//   [[say TEXT]]                   the text of the reply
//   [[tokens N]]                   a text of N tokens, a delta each
//   [[tool NAME JSON]]             a call of a tool, after the text
//   [[usage IN OUT READ CREATED]]  counts of tokens: READ from and CREATED in the cache of prompts
//   [[status N]]                   an error with this status; [[retry-after N]] adds that header
//   [[once WORD]]                  only the first request with this word gets the error
//   [[delay MS]]                   before the first byte
//   [[pace MS]]                    between two deltas
//   [[cut N]]                      the connection ends after N deltas
//   [[stall N]]                    nothing more comes after N deltas
//   [[malformed N]]                a line that is no event, and JSON that is cut, after N deltas
//   [[no-usage]]                   the reply says nothing of usage
//   [[last]]                       the connection is kept, and reset when another request comes
//   [[key]], [[key-field]]         sends the key of the request back, as text or in a field
//   [[crlf]]                       lines of the stream end with \r\n
const NUMBERS = {
    tokens: "tokenCount",
    status: "status",
    "retry-after": "retryAfter",
    delay: "delayMs",
    pace: "paceMs",
    cut: "cutAfter",
    stall: "stallAfter",
    malformed: "malformedAfter",
};

function applyDirective(plan, verb, rest) {
    if (verb in NUMBERS) plan[NUMBERS[verb]] = Number(rest);
    else if (verb === "say") plan.text = rest;
    else if (verb === "once") plan.onceKey = rest;
    else if (verb === "no-usage") plan.hasNoUsage = true;
    else if (verb === "last") plan.isLast = true;
    else if (verb === "key") plan.reflectsKey = true;
    else if (verb === "key-field") plan.reflectsKeyInField = true;
    else if (verb === "crlf") plan.hasCrlf = true;
    else if (verb === "tool") {
        const [, name, input] = /^(\S+)\s+([^]*)$/.exec(rest);
        plan.tools.push({ name, input: JSON.parse(input) });
    } else if (verb === "usage") {
        const [input, output, read = 0, created = 0] = rest.split(/\s+/).map(Number);
        Object.assign(plan, {
            inputTokens: input,
            outputTokens: output,
            cacheRead: read,
            cacheCreated: created,
        });
    } else throw new Error(`no such directive: ${verb}`);
}

export function directivesOf(text) {
    const plan = { text: "", tools: [], cacheRead: 0, cacheCreated: 0, delayMs: 0, paceMs: 0 };
    for (const [, verb, rest] of text.matchAll(/\[\[([a-z-]+)\s*([^]*?)\]\](?!\])/g)) {
        applyDirective(plan, verb, rest.trim());
        plan.isDirected = true;
    }
    return plan;
}

// The reply's text as the deltas of a stream.
export function deltasOf(plan) {
    if (plan.tokenCount !== undefined)
        return Array.from({ length: plan.tokenCount }, (_, i) => `token${i % 10} `);
    return plan.text.match(/\S+\s*|\s+/g) ?? [];
}

export function outputTokensOf(plan) {
    return plan.outputTokens ?? deltasOf(plan).length + 10 * plan.tools.length;
}
