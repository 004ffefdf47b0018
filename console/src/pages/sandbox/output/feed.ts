// Follows the output of a process into lines, and goes on at the same offsets after a broken connection.
import { Code, type ConnectError } from "@connectrpc/connect";
import { signal } from "@preact/signals";
import { ProcessService, Stream, type AttachResponse, type Ended } from "@gen/process_pb";
import { pause } from "../../../api/connection";
import { follow } from "../../../api/follow";
import { client } from "../../../api/transport";
import { Lines } from "./lines";

// Of each stream; older output is shown on demand.
export const START_BYTES = 16n * 1024n * 1024n;
const SLICE_MS = 12;
const SHOW_MS = 250;
const RETRIES = 40;
const RETRY_MS = 250;

export class Feed {
  readonly lines = new Lines();
  // Changes, at most four times a second, after the lines have changed.
  readonly shown = signal(0);
  readonly problem = signal("");
  readonly ended = signal<Ended | undefined>(undefined);
  // Whether output before the first line was left out.
  readonly isPartial = signal(false);
  private readonly next = { stdout: 0n, stderr: 0n };
  private readonly life = new AbortController();
  private stop: (() => void) | undefined;
  private sliceStart = 0;
  private showTimer = 0;
  private retries = 0;

  constructor(private readonly target: { sandboxId: string; processId: string }, private readonly isWhole: boolean) {}

  async open() {
    try {
      if (!this.isWhole) await this.chooseStart();
    } catch (error) {
      this.problem.value = error instanceof Error ? error.message : String(error);
      return;
    }
    if (!this.life.signal.aborted) this.attach();
  }

  private async chooseStart() {
    const { process } = await client(ProcessService).get(this.target, { signal: this.life.signal });
    for (const stream of ["stdout", "stderr"] as const) {
      const total = process?.[stream]?.total ?? 0n;
      if (total <= START_BYTES) continue;
      this.next[stream] = total - START_BYTES;
      this.isPartial.value = true;
    }
  }

  private attach() {
    const request = () => ({
      ...this.target, stdoutOffset: this.next.stdout, stderrOffset: this.next.stderr, follow: true,
    });
    this.stop = follow((signal) => client(ProcessService).attach(request(), { signal }), {
      message: (message) => this.take(message),
      ended: (error) => void this.stopped(error),
      endIsFinal: false,
    });
  }

  private take({ offset, event }: AttachResponse): void | Promise<void> {
    switch (event.case) {
      case "started":
        this.retries = 0;
        this.problem.value = "";
        return;
      case "stdout":
      case "stderr":
        this.add(event.case, offset, event.value);
        return this.yield();
      case "gap": {
        const stream = event.value.stream === Stream.stderr ? "stderr" : "stdout";
        this.next[stream] = event.value.offset + event.value.missing;
        this.lines.note(`${event.value.missing} bytes of ${stream} were not kept`);
        this.showSoon();
        return;
      }
      case "ended":
        this.ended.value = event.value;
        this.stop?.();
    }
  }

  private add(stream: "stdout" | "stderr", offset: bigint, bytes: Uint8Array) {
    const known = this.next[stream];
    const end = offset + BigInt(bytes.length);
    if (end <= known) return;
    this.lines.add(stream, offset < known ? bytes.subarray(Number(known - offset)) : bytes);
    this.next[stream] = end;
    this.showSoon();
  }

  // Lets the browser draw and react between messages; without this a flood of output would freeze the page.
  private async yield() {
    const now = performance.now();
    if (this.sliceStart === 0) this.sliceStart = now;
    if (now - this.sliceStart < SLICE_MS) return;
    await new Promise((resolve) => setTimeout(resolve, 0));
    this.sliceStart = performance.now();
  }

  private showSoon() {
    if (this.showTimer) return;
    this.showTimer = window.setTimeout(() => {
      this.showTimer = 0;
      this.shown.value++;
    }, SHOW_MS);
  }

  // As in a session of a terminal: a daemon that has just started may not have all output yet.
  private async stopped(error: ConnectError | null) {
    const mayComeBack = error?.code === Code.NotFound || error?.code === Code.InvalidArgument ||
      error?.code === Code.FailedPrecondition;
    if (mayComeBack && this.retries++ < RETRIES) {
      await pause(RETRY_MS, this.life.signal);
      if (!this.life.signal.aborted) this.attach();
      return;
    }
    this.problem.value = error?.rawMessage ?? "the daemon ended the stream";
  }

  close() {
    this.life.abort();
    this.stop?.();
    clearTimeout(this.showTimer);
  }
}
