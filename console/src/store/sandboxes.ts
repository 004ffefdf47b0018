// All sandboxes that the session sees, kept current by events. One list is fetched when the stream of
// events (re)starts; then an event changes one entry, and changes are shown at most four times a second.
import { signal } from "@preact/signals";
import { EventService, type Event } from "@gen/event_pb";
import { SandboxService, type Sandbox } from "@gen/sandbox_pb";
import { Code, ConnectError } from "@connectrpc/connect";
import { useEffect } from "preact/hooks";
import { online } from "../api/connection";
import { follow } from "../api/follow";
import { client } from "../api/transport";
import { merged } from "../lib/merge";

export const sandboxes = signal<ReadonlyMap<string, Sandbox>>(new Map());
export const isLoaded = signal(false);
export const listError = signal<unknown>(null);

// State after an event that changes nothing else.
const states: Record<string, string> = {
  "sandbox.paused": "paused",
  "sandbox.deep-paused": "deep-paused",
  "sandbox.resumed": "active",
  "sandbox.stopped": "stopped",
  "sandbox.started": "active",
  "sandbox.adopted": "active",
};
const bulkFrom = 16; // changed sandboxes: one list costs less than as many single calls
const retryMs = 1000;
const types = ["sandbox.*", "turn.*", "snapshot.*"];

let users = 0;
let stop: (() => void) | null = null;
let draft = new Map<string, Sandbox>();
let stale = new Set<string>();
// What has changed while calls were on their way, and when, in numbers that grow: a reply to a call that was made before
// is older than that.
let clock = 0;
let flights = 0;
const changed = new Map<string, number>();
let isListing = false;
let isListWanted = false;
let isCurrent = false;

const publish = merged(() => {
  sandboxes.value = new Map(draft);
});
const refresh = merged(() => void fetchStale());

function touch(id: string): void {
  if (flights > 0) changed.set(id, ++clock);
}

async function flight<T>(call: Promise<T>): Promise<T> {
  flights++;
  try {
    return await call;
  } finally {
    // The caller looks at `changed` first.
    setTimeout(() => --flights === 0 && changed.clear());
  }
}

function apply(event: Event): void {
  const id = event.sandboxId;
  if (!id) return;
  touch(id);
  if (event.type === "sandbox.destroyed") {
    stale.delete(id);
    if (draft.delete(id)) publish();
    return;
  }
  const known = draft.get(id);
  const state = states[event.type];
  if (known && state) {
    draft.set(id, { ...known, state, reason: "" });
    publish();
  } else {
    stale.add(id);
    refresh();
  }
}

async function fetchAll(): Promise<void> {
  if (isListing) {
    isListWanted = true;
    return;
  }
  isListing = true;
  isListWanted = false;
  stale = new Set();
  const start = clock;
  try {
    const reply = await flight(client(SandboxService).list({}));
    draft = withNewer(reply.sandboxes, start);
    listError.value = null;
    isLoaded.value = true;
    publish();
  } catch (error) {
    // The banner says that the daemon is away; what is known stays visible.
    if (ConnectError.from(error).code !== Code.Unavailable) listError.value = error;
  } finally {
    isListing = false;
  }
  // What changed while the list was made may be newer than it.
  if (isListWanted) return fetchAll();
  if (stale.size > 0) refresh();
}

// The list that was asked for at `start`, with the entries that changed since as they are here. Those are fetched again.
function withNewer(list: Sandbox[], start: number): Map<string, Sandbox> {
  const next = new Map(list.map((each) => [each.id, each]));
  for (const [id, at] of changed) {
    if (at <= start) continue;
    const known = draft.get(id);
    if (known) next.set(id, known);
    else next.delete(id);
    stale.add(id);
  }
  return next;
}

async function fetchOne(id: string): Promise<void> {
  const start = clock;
  let sandbox: Sandbox | undefined;
  try {
    sandbox = (await flight(client(SandboxService).get({ sandboxId: id }))).sandbox;
  } catch (error) {
    if (ConnectError.from(error).code !== Code.NotFound) return retry(id);
  }
  if ((changed.get(id) ?? 0) > start) return reload(id);
  if (sandbox) draft.set(id, sandbox);
  else draft.delete(id);
  publish();
}

// Without a daemon there is nothing to repeat: the list is fetched when it is back.
function retry(id: string): void {
  setTimeout(() => users > 0 && online.value && reload(id), retryMs);
}

async function fetchStale(): Promise<void> {
  if (isListing) return;
  if (stale.size > bulkFrom) return fetchAll();
  const ids = [...stale];
  stale.clear();
  await Promise.all(ids.map(fetchOne));
}

// Puts in what a call has returned, before its event arrives.
export function put(sandbox: Sandbox | undefined): void {
  if (!sandbox || users === 0) return;
  touch(sandbox.id);
  draft.set(sandbox.id, sandbox);
  publish();
}

// Shows a state that a call is about to bring, until the event says what became of it.
export function expect(id: string, state: string): void {
  const known = draft.get(id);
  if (!known) return;
  touch(id);
  draft.set(id, { ...known, state });
  publish();
}

export function reload(id: string): void {
  stale.add(id);
  refresh();
}

function start(): void {
  stop = follow((signal) => client(EventService).watch({ types }, { signal }), {
    message: ({ message }) => {
      // The stream begins with a heartbeat: from here on no event is missed.
      if (message.case === "heartbeat" && !isCurrent) {
        isCurrent = true;
        return fetchAll();
      }
      if (message.case === "event") apply(message.value);
      if (message.case === "lost") return fetchAll();
      return undefined;
    },
    opening: () => (isCurrent = false),
    ended: (error) => (listError.value = error),
  });
}

// Keeps the list current while a component with it is shown.
export function useSandboxes(): void {
  useEffect(() => {
    if (++users === 1) start();
    return () => {
      if (--users > 0) return;
      stop?.();
      stop = null;
      isLoaded.value = false;
      draft = new Map();
      sandboxes.value = draft;
    };
  }, []);
}
