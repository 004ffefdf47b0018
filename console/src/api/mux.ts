// All streams of this page over one WebSocket, /holt.v1/stream: JSON frames of numbered channels.
// A channel has credit: the server sends no more bytes than were granted, and reading grants more.
import { Code, ConnectError } from "@connectrpc/connect";
import type { JsonValue } from "@bufbuild/protobuf";
import { errorFromJson } from "@connectrpc/connect/protocol-connect";
import { lost } from "./connection";
import * as session from "./session";

const credit = 256 * 1024;
const idleMs = 10_000; // without a channel, then the socket closes
const pingMs = 15_000;

type EndFrame = { error?: JsonValue };
type Frame = { id?: number; message?: JsonValue; end?: EndFrame; ready?: boolean; error?: JsonValue; pong?: number };

class Channel {
  readonly #queue: { message: JsonValue; size: number }[] = [];
  #ended = false;
  #error: ConnectError | null = null;
  #wake: (() => void) | null = null;
  #eaten = 0;

  constructor(readonly id: number, private readonly write: (frame: object) => void) {}

  receive(message: JsonValue, size: number): void {
    this.#queue.push({ message, size });
    this.#wake?.();
  }

  finish(error: ConnectError | null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#wake?.();
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  // Credit is granted for what was read, in few frames.
  #grant(size: number): void {
    this.#eaten += size;
    if (this.#eaten < credit / 4 || this.#ended) return;
    this.write({ id: this.id, credit: this.#eaten });
    this.#eaten = 0;
  }

  async *messages(): AsyncGenerator<JsonValue> {
    for (;;) {
      const next = this.#queue.shift();
      if (next) {
        this.#grant(next.size);
        yield next.message;
        continue;
      }
      if (this.#error) throw this.#error;
      if (this.#ended) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = null;
    }
  }
}

let socket: WebSocket | null = null;
let ready: Promise<void> | null = null;
let lastId = 0;
let lastPing = 0;
let pongSeen = true;
let idleTimer: ReturnType<typeof setTimeout> | undefined;
let pingTimer: ReturnType<typeof setInterval> | undefined;
const channels = new Map<number, Channel>();

function unavailable(text: string): ConnectError {
  return new ConnectError(text, Code.Unavailable);
}

function connect(): Promise<void> {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const opened = new WebSocket(`${scheme}://${location.host}/holt.v1/stream`);
  socket = opened;
  ready = new Promise((resolve, reject) => {
    opened.onopen = () => opened.send(JSON.stringify({ key: session.key() }));
    opened.onmessage = ({ data }: MessageEvent<string>) => {
      const frame = JSON.parse(data) as Frame;
      if (frame.ready) resolve();
      else handle(frame, data);
    };
    opened.onclose = () => {
      reject(unavailable("the daemon closed the connection"));
      if (socket === opened) closed();
    };
  });
  // A caller that waits gets the error; nobody else needs to.
  ready.catch(() => undefined);
  pingTimer = setInterval(ping, pingMs);
  return ready;
}

function closed(): void {
  socket = null;
  ready = null;
  clearInterval(pingTimer);
  const orphans = [...channels.values()];
  channels.clear();
  for (const each of orphans) each.finish(unavailable("the connection to the daemon was lost"));
  if (orphans.length > 0) lost();
}

function ping(): void {
  if (document.hidden || !socket) return;
  if (!pongSeen) {
    socket.close();
    return;
  }
  pongSeen = false;
  write({ ping: ++lastPing });
}

function handle(frame: Frame, text: string): void {
  if (frame.pong !== undefined) pongSeen = true;
  if (frame.id === undefined) return;
  const channel = channels.get(frame.id);
  if (!channel) return;
  if (frame.message !== undefined) channel.receive(frame.message, text.length);
  if (frame.end) {
    const error = frame.end.error;
    channel.finish(error === undefined ? null : errorFromJson(error, undefined, unavailable("stream failed")));
    forget(channel);
  }
}

function forget(channel: Channel): void {
  channels.delete(channel.id);
  if (channels.size > 0) return;
  clearTimeout(idleTimer);
  idleTimer = setTimeout(() => {
    if (channels.size === 0) socket?.close();
  }, idleMs);
}

function write(frame: object): void {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame));
}

async function drain(socketNow: WebSocket): Promise<void> {
  while (socketNow.readyState === WebSocket.OPEN && socketNow.bufferedAmount > 1 << 20)
    await new Promise((resolve) => setTimeout(resolve, 10));
}

export interface Call {
  name: string; // holt.v1.ProcessService/Attach
  input: AsyncIterable<JsonValue>;
  isStreamOfInputs: boolean;
  signal: AbortSignal | undefined;
}

async function send(call: Call, channel: Channel): Promise<void> {
  let isFirst = true;
  for await (const message of call.input) {
    if (channel.isEnded) return;
    write(isFirst ? { id: channel.id, call: call.name, message, credit } : { id: channel.id, message });
    isFirst = false;
    if (socket) await drain(socket);
  }
  if (isFirst) write({ id: channel.id, call: call.name, credit });
  if (call.isStreamOfInputs && !channel.isEnded) write({ id: channel.id, end: true });
}

// Makes a call and yields its replies. Ending the iteration early, or the signal, cancels the call.
export async function* stream(call: Call): AsyncGenerator<JsonValue> {
  clearTimeout(idleTimer);
  try {
    await (ready ?? connect());
  } catch (error) {
    lost();
    throw error;
  }
  call.signal?.throwIfAborted();

  const channel = new Channel(++lastId, write);
  channels.set(channel.id, channel);
  const cancel = () => {
    write({ id: channel.id, cancel: true });
    channel.finish(new ConnectError("canceled", Code.Canceled));
    forget(channel);
  };
  call.signal?.addEventListener("abort", cancel, { once: true });
  send(call, channel).catch((error: unknown) => {
    channel.finish(ConnectError.from(error));
    cancel();
  });
  try {
    yield* channel.messages();
  } finally {
    call.signal?.removeEventListener("abort", cancel);
    if (!channel.isEnded) cancel();
  }
}
