// The connection of a screen with a process. It knows the offset of the next byte that the screen needs, so after a
// broken connection or a restart of the daemon it goes on exactly there.
import { Code, type ConnectError } from "@connectrpc/connect";
import { batch, signal } from "@preact/signals";
import { ProcessService, type AttachResponse, type Ended } from "@gen/process_pb";
import { online, pause } from "../../../api/connection";
import { follow } from "../../../api/follow";
import { client } from "../../../api/transport";
import { InputQueue } from "./input";
import type { Screen } from "./screen";

// connecting: no output came yet. live: output is shown as it comes. away: the connection is lost and is made again by
// itself. ended: the process has ended. failed: there is no such process, or the daemon refuses.
export type Phase = "connecting" | "live" | "away" | "ended" | "failed";

const REPLAY_BYTES = 256n * 1024n;
// More output than this that came while the terminal was hidden is left out: the screen could not keep it either.
const BACKLOG_BYTES = 4n * 1024n * 1024n;
const RETRIES = 40;
const RETRY_MS = 250;

export interface Target {
  sandboxId: string;
  processId: string;
}

export class Session {
  readonly phase = signal<Phase>("connecting");
  readonly problem = signal("");
  readonly ended = signal<Ended | undefined>(undefined);
  private readonly input: InputQueue;
  private readonly life = new AbortController();
  private next: bigint | undefined; // of stdout; undefined: nothing was received yet
  private viewer = 0n;
  private liveFrom = 0n; // of stdout: what was there before the last attach is a replay
  private retries = 0;
  private isCut = false; // the replay starts inside a line
  private wasHidden = false; // since the last byte
  private detach: (() => void) | undefined;
  private size: { rows: number; columns: number } | undefined;

  // A session that may not write neither types nor determines the size.
  constructor(readonly target: Target, private readonly screen: Screen, private readonly mayWrite: boolean) {
    this.input = new InputQueue((data, viewer) => client(ProcessService).sendInput({ ...target, data, viewer }));
  }

  // Attaches, unless the session is attached or over.
  show() {
    if (this.detach || this.phase.value === "ended" || this.phase.value === "failed") return;
    this.detach = follow((signal) => this.attached(signal), {
      message: (message) => this.take(message),
      ended: (error) => void this.stopped(error),
    });
  }

  // Detaches: a hidden terminal costs nothing and does not determine the size. The screen keeps what it has.
  hide() {
    this.detach?.();
    this.detach = undefined;
    this.viewer = 0n;
  }

  close() {
    this.life.abort();
    this.hide();
    this.input.close();
  }

  type(data: string) {
    if (this.mayWrite && this.phase.value !== "ended" && this.phase.value !== "failed") this.input.push(data);
  }

  // Sends what the terminal answers by itself. The daemon passes on that of one viewer.
  answer(data: string) {
    if (this.mayWrite && this.phase.value === "live" && this.viewer !== 0n) this.input.push(data, this.viewer);
  }

  resize(rows: number, columns: number) {
    this.size = { rows, columns };
    if (!this.mayWrite || this.viewer === 0n || this.phase.value !== "live") return;
    const { viewer, target } = this;
    // A failed one needs no repetition: the next attach has the size.
    client(ProcessService).resize({ ...target, viewer, size: { rows, columns } }).catch(() => undefined);
  }

  private request() {
    return {
      ...this.target,
      ...(this.next === undefined ? { replayBytes: REPLAY_BYTES } : { stdoutOffset: this.next }),
      follow: true,
      flow: this.mayWrite,
      size: this.mayWrite ? this.size : undefined,
      sizes: true,
    };
  }

  private async *attached(signal: AbortSignal) {
    try {
      const { process } = await client(ProcessService).get(this.target, { signal });
      this.liveFrom = process?.stdout?.total ?? 0n;
      if (this.wasHidden) this.skipBacklog();
      this.wasHidden = false;
      yield* client(ProcessService).attach(this.request(), { signal });
    } finally {
      this.wasHidden ||= signal.aborted;
      this.viewer = 0n;
      this.input.hold();
      if (this.phase.value === "live") this.phase.value = "away";
    }
  }

  private skipBacklog() {
    if (this.next === undefined || this.liveFrom - this.next <= BACKLOG_BYTES) return;
    this.next = undefined;
    this.screen.reset();
  }

  private async take({ offset, event }: AttachResponse) {
    switch (event.case) {
      case "started":
        batch(() => {
          this.phase.value = "live";
          this.problem.value = "";
        });
        this.retries = 0;
        this.viewer = event.value.viewer;
        if (this.next === undefined) {
          this.next = event.value.stdoutOffset;
          this.isCut = this.next > 0n;
        }
        this.input.release();
        // The size may have changed while the call was on its way.
        if (this.size) this.resize(this.size.rows, this.size.columns);
        return;
      case "stdout":
        return this.output(offset, event.value);
      case "size":
        this.screen.limit(event.value.rows, event.value.columns);
        return;
      case "gap":
        this.next = event.value.offset + event.value.missing;
        this.screen.note(`${event.value.missing} bytes of output were not kept`);
        return;
      case "ended":
        batch(() => {
          this.ended.value = event.value;
          this.phase.value = "ended";
        });
        this.hide();
        this.input.close();
    }
  }

  // Writes the bytes that the screen does not have yet.
  private async output(offset: bigint, bytes: Uint8Array) {
    const known = this.next ?? offset;
    const end = offset + BigInt(bytes.length);
    if (end <= known) return;
    if (offset < known) bytes = bytes.subarray(Number(known - offset));
    this.next = end;
    if (this.isCut) {
      this.isCut = false;
      bytes = bytes.subarray(Math.max(0, bytes.indexOf(10) + 1));
    }
    const old = Number(this.liveFrom - (end - BigInt(bytes.length)));
    if (old > 0) await this.screen.write(bytes.subarray(0, old), true);
    if (old < bytes.length) await this.screen.write(bytes.subarray(Math.max(0, old)), false);
  }

  // A daemon that has just started may not have the sandbox or all of its output yet.
  private async stopped(error: ConnectError | null) {
    const mayComeBack = error?.code === Code.NotFound || error?.code === Code.InvalidArgument ||
      error?.code === Code.FailedPrecondition;
    this.detach = undefined;
    if (this.next !== undefined && mayComeBack && this.retries++ < RETRIES) {
      this.phase.value = "away";
      await pause(online.value ? RETRY_MS : RETRY_MS * 4, this.life.signal);
      if (!this.life.signal.aborted) this.show();
      return;
    }
    batch(() => {
      this.problem.value = error?.rawMessage ?? "the daemon ended the stream";
      this.phase.value = "failed";
    });
    this.input.close();
  }
}
