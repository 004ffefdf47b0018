// Keeps a stream open: again after a broken connection, with back-off, and not while the tab is hidden.
import { Code, ConnectError } from "@connectrpc/connect";
import { online, pause, until, visible } from "./connection";

export interface Follower<T> {
  // Called before each (re)opening; may be used to fetch what the stream continues.
  opening?: () => void;
  message: (message: T) => void | Promise<void>;
  // An end that is not repeated: a refusal, or an orderly end if endIsFinal.
  ended?: (error: ConnectError | null) => void;
  // Stay open in a hidden tab.
  whileHidden?: boolean;
  // An end without an error is the end; otherwise the stream is opened again.
  endIsFinal?: boolean;
}

const again = new Set([Code.Unavailable, Code.Canceled, Code.DeadlineExceeded, Code.Aborted, Code.Unknown]);
const mostDelay = 4000;

// Returns a function that ends it. `open` makes the call with the signal it gets:
// follow((signal) => client(EventService).watch({}, { signal }), { message: ... }).
export function follow<T>(open: (signal: AbortSignal) => AsyncIterable<T>, follower: Follower<T>): () => void {
  const all = new AbortController();
  void loop(open, follower, all.signal);
  return () => all.abort();
}

async function loop<T>(open: (signal: AbortSignal) => AsyncIterable<T>, follower: Follower<T>, all: AbortSignal) {
  const wanted = () => online.value && (follower.whileHidden === true || visible.value);
  let delay = 0;
  for (;;) {
    await until(wanted, all);
    if (all.aborted) return;
    const one = new AbortController();
    const abort = () => one.abort();
    all.addEventListener("abort", abort, { once: true });
    if (!follower.whileHidden) void until(() => !visible.value, one.signal).then(abort);
    let error: ConnectError | null = null;
    try {
      follower.opening?.();
      for await (const message of open(one.signal)) {
        delay = 0;
        await follower.message(message);
        if (all.aborted) break;
      }
    } catch (thrown) {
      error = ConnectError.from(thrown);
    }
    const wasStopped = one.signal.aborted;
    one.abort();
    all.removeEventListener("abort", abort);
    if (all.aborted) return;
    if (wasStopped) continue;
    if (error ? !again.has(error.code) : follower.endIsFinal) {
      follower.ended?.(error);
      return;
    }
    delay = delay === 0 ? 200 : Math.min(delay * 2, mostDelay);
    await pause(delay * (0.75 + Math.random() / 2), all);
  }
}
