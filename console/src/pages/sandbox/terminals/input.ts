// What a person types, in order, with one call at a time. While the connection is lost it waits.
import { pause } from "../../../api/connection";

const CALL_BYTES = 48 * 1024;
const QUEUE_BYTES = 4 * 1024 * 1024;
const FAILURE_MS = 500; // in which a lost connection is noticed, and hold() called

export class InputQueue {
  private readonly encoder = new TextEncoder();
  private queue: { data: Uint8Array; viewer: bigint }[] = [];
  private queued = 0;
  private isBusy = false;
  private isHeld = true;
  private isClosed = false;

  constructor(private readonly send: (data: Uint8Array, viewer: bigint) => Promise<unknown>) {}

  // With a viewer, the text is what its terminal has answered; otherwise a person has typed it.
  push(text: string, viewer = 0n) {
    const data = this.encoder.encode(text);
    if (this.isClosed || this.queued + data.length > QUEUE_BYTES) return;
    this.queue.push({ data, viewer });
    this.queued += data.length;
    void this.pump();
  }

  hold() {
    this.isHeld = true;
  }

  release() {
    this.isHeld = false;
    void this.pump();
  }

  close() {
    this.isClosed = true;
    this.queue = [];
    this.queued = 0;
  }

  private take(): { data: Uint8Array; viewer: bigint } {
    const { data: first, viewer } = this.queue.shift()!;
    const parts = [first.subarray(0, CALL_BYTES)];
    if (first.length > CALL_BYTES) this.queue.unshift({ data: first.subarray(CALL_BYTES), viewer });
    let length = parts[0]!.length;
    for (let next = this.queue[0]; next && next.viewer === viewer && length + next.data.length <= CALL_BYTES; next = this.queue[0]) {
      this.queue.shift();
      parts.push(next.data);
      length += next.data.length;
    }
    const data = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      data.set(part, at);
      at += part.length;
    }
    this.queued -= length;
    return { data, viewer };
  }

  // A call that fails is not repeated: the daemon may have passed its bytes on, and a command must not run twice.
  private async pump() {
    if (this.isBusy) return;
    this.isBusy = true;
    while (!this.isHeld && !this.isClosed && this.queue.length > 0) {
      try {
        const { data, viewer } = this.take();
        await this.send(data, viewer);
      } catch {
        await pause(FAILURE_MS);
      }
    }
    this.isBusy = false;
  }
}
