// Writes a reply with the faults that its plan asks for, and waits for readers that are slow.
const EVENT_STREAM = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "request-id": "req_test",
};

export class Reply {
    constructor(response, plan) {
        this.response = response;
        this.plan = plan;
        this.deltas = 0;
    }

    pause(ms) {
        return ms > 0 ? new Promise((resolve) => setTimeout(resolve, ms)) : undefined;
    }

    async whole(message) {
        const text = JSON.stringify(message);
        this.response.writeHead(200, {
            "content-type": "application/json",
            "content-length": Buffer.byteLength(text),
            "request-id": "req_test",
        });
        if (this.plan.cutAfter === undefined) return this.response.end(text);
        this.response.write(text.slice(0, this.plan.cutAfter), () => this.response.destroy());
    }

    begin() {
        this.response.writeHead(200, EVENT_STREAM);
        this.response.flushHeaders();
    }

    async write(text) {
        if (this.response.destroyed) throw new Error("the client has gone");
        if (this.plan.hasCrlf) text = text.replaceAll("\n", "\r\n");
        if (!this.response.write(text)) await this.drained();
    }

    drained() {
        return new Promise((resolve) => {
            const done = () => {
                this.response.off("drain", done);
                this.response.off("close", done);
                resolve();
            };
            this.response.on("drain", done);
            this.response.on("close", done);
        });
    }

    event(name, data) {
        return this.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
    }

    data(data) {
        return this.write(`data: ${JSON.stringify(data)}\n\n`);
    }

    // To be called before each delta of the text.
    async beforeDelta() {
        const { cutAfter, stallAfter, malformedAfter, paceMs } = this.plan;
        if (this.deltas === cutAfter) {
            await new Promise((resolve) => setImmediate(resolve)); // what was written is sent first
            this.response.destroy();
            throw new Error("cut, as was asked");
        }
        if (this.deltas === stallAfter) await new Promise(() => {});
        if (this.deltas === malformedAfter)
            await this.write(`what is this\ndata: {"type":"message_delta","usage":{"output\n\n:\n\n`);
        this.deltas++;
        await this.pause(paceMs);
    }
}
