// All streams of this page over one WebSocket, /holt.v1/stream: JSON frames of numbered channels.
// Both sides of a channel have credit, in characters of frames with a message: a side sends such a frame
// only while it has credit left. Reading grants more.
import { Code, ConnectError } from "@connectrpc/connect";
import type { JsonValue } from "@bufbuild/protobuf";
import { errorFromJson } from "@connectrpc/connect/protocol-connect";
import { lost } from "./connection";
import * as session from "./session";

const credit = 256 * 1024;
const uploadCredit = 1024 * 1024; // of this side at the start, as the daemon counts it
const idleMs = 10_000; // without a channel, then the socket closes
const pingMs = 15_000;

type EndFrame = { error?: JsonValue };
type Frame = { id?: number; message?: JsonValue; end?: EndFrame; credit?: number; ready?: boolean; error?: JsonValue; pong?: number };

class Channel {
  readonly #queue: { message: JsonValue; size: number }[] = [];
  #ended = false;
  #error: ConnectError | null = null;
  #wake: (() => void) | null = null;
  #eaten = 0;
  #upload = uploadCredit;
  #granted: (() => void) | null = null;

  constructor(readonly id: number, private readonly write: (frame: object) => number) {}

  receive(message: JsonValue, size: number): void {
    this.#queue.push({ message, size });
    this.#wake?.();
  }

  finish(error: ConnectError | null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#wake?.();
    this.#granted?.();
  }

  mayUpload(size: number): void {
    this.#upload += size;
    if (this.#upload > 0) this.#granted?.();
  }

  // Sends one of the messages that follow the first, when there is credit for it.
  async upload(message: JsonValue): Promise<void> {
    while (this.#upload <= 0 && !this.#ended) {
      await new Promise<void>((resolve) => (this.#granted = resolve));
      this.#granted = null;
    }
    if (!this.#ended) this.#upload -= this.write({ id: this.id, message });
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

// A socket belongs to the session that opened it.
session.session.subscribe((current) => {
  if (!current) leave();
});

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
  pongSeen = true; // the last ping of the socket before may have got no answer
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

// Closes the socket. The next call opens another one; it does not wait for the end of the handshake, which
// a broken network may never bring.
function leave(): void {
  const old = socket;
  if (old) closed();
  old?.close();
}

function ping(): void {
  if (document.hidden || !socket) return;
  if (!pongSeen) return leave();
  pongSeen = false;
  write({ ping: ++lastPing });
}

function handle(frame: Frame, text: string): void {
  if (frame.pong !== undefined) pongSeen = true;
  if (frame.id === undefined) return;
  const channel = channels.get(frame.id);
  if (!channel) return;
  if (frame.message !== undefined) channel.receive(frame.message, characters(text));
  if (frame.credit !== undefined) channel.mayUpload(frame.credit);
  if (frame.end) {
    const error = frame.end.error === undefined
      ? null : errorFromJson(frame.end.error, undefined, unavailable("stream failed"));
    channel.finish(error);
    // The session may have been revoked elsewhere: the probe finds out.
    if (error?.code === Code.Unauthenticated) lost();
    forget(channel);
  }
}

function forget(channel: Channel): void {
  channels.delete(channel.id);
  if (channels.size > 0) return;
  clearTimeout(idleTimer);
  idleTimer = setTimeout(() => {
    if (channels.size === 0) leave();
  }, idleMs);
}

// Code points, as the daemon counts them; the length of a string counts surrogates twice.
function characters(text: string): number {
  return /[\ud800-\udbff]/.test(text) ? [...text].length : text.length;
}

function write(frame: object): number {
  const text = JSON.stringify(frame);
  if (socket?.readyState === WebSocket.OPEN) socket.send(text);
  return characters(text);
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
    if (isFirst) write({ id: channel.id, call: call.name, message, credit });
    else await channel.upload(message);
    isFirst = false;
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
