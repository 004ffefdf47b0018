// What a person types, in order, with one call at a time. While the connection is lost it waits.
import { pause } from "../../../api/connection";

const CALL_BYTES = 48 * 1024;
const QUEUE_BYTES = 4 * 1024 * 1024;
const FAILURE_MS = 500; // in which a lost connection is noticed, and hold() called

export class InputQueue {
  private readonly encoder = new TextEncoder();
  private queue: Uint8Array[] = [];
  private queued = 0;
  private isBusy = false;
  private isHeld = true;
  private isClosed = false;

  constructor(private readonly send: (data: Uint8Array) => Promise<unknown>) {}

  push(text: string) {
    const data = this.encoder.encode(text);
    if (this.isClosed || this.queued + data.length > QUEUE_BYTES) return;
    this.queue.push(data);
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

  private take(): Uint8Array {
    const first = this.queue.shift()!;
    const parts = [first.subarray(0, CALL_BYTES)];
    if (first.length > CALL_BYTES) this.queue.unshift(first.subarray(CALL_BYTES));
    let length = parts[0]!.length;
    while (this.queue.length > 0 && length + this.queue[0]!.length <= CALL_BYTES) {
      const next = this.queue.shift()!;
      parts.push(next);
      length += next.length;
    }
    const data = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      data.set(part, at);
      at += part.length;
    }
    this.queued -= length;
    return data;
  }

  // A call that fails is not repeated: the daemon may have passed its bytes on, and a command must not run twice.
  private async pump() {
    if (this.isBusy) return;
    this.isBusy = true;
    while (!this.isHeld && !this.isClosed && this.queue.length > 0) {
      try {
        await this.send(this.take());
      } catch {
        await pause(FAILURE_MS);
      }
    }
    this.isBusy = false;
  }
}
