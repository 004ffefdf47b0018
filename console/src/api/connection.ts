// Whether the daemon is reachable. One probe with back-off runs while it is not; pages read `online`
// and `epoch` and need no timers of their own.
import { effect, signal } from "@preact/signals";
import * as session from "./session";

export const online = signal(true);
// Grows after each broken connection: whatever a page has fetched may be old.
export const epoch = signal(0);
// When it went away, in milliseconds since 1970; 0 while it is there.
export const awaySince = signal(0);
export const visible = signal(!document.hidden);

document.addEventListener("visibilitychange", () => {
  visible.value = !document.hidden;
});

const firstDelay = 200;
const mostDelay = 2000;
let probing = false;
let verifying = false;

// Called by whatever noticed a broken connection.
export function lost(): void {
  if (probing || !session.session.peek()) return;
  probing = true;
  void recover();
}

// A call was refused as unauthenticated: asks whether the session is over. A daemon that does not know
// a method refuses it in the same way.
export function verify(): void {
  if (verifying) return;
  verifying = true;
  void session.probe().then((result) => {
    verifying = false;
    if (result === "out") session.ended("The session has ended. Log in again.");
  });
}

async function recover(): Promise<void> {
  for (let delay = firstDelay; ; delay = Math.min(delay * 2, mostDelay)) {
    await until(() => visible.value);
    const result = await session.probe();
    if (result === "out") {
      session.ended("The session has ended. Log in again.");
      break;
    }
    if (result === "in") break;
    if (online.peek()) {
      awaySince.value = Date.now();
      online.value = false;
    }
    await pause(delay);
  }
  probing = false;
  awaySince.value = 0;
  online.value = true;
  epoch.value++;
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}

// Resolves when isTrue(), which reads signals, holds, or when the signal aborts.
export function until(isTrue: () => boolean, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let isDone = false;
    let dispose: (() => void) | undefined;
    const done = () => {
      isDone = true;
      signal?.removeEventListener("abort", done);
      dispose?.();
      resolve();
    };
    if (signal?.aborted) return done();
    signal?.addEventListener("abort", done, { once: true });
    dispose = effect(() => {
      if (!isDone && isTrue()) queueMicrotask(done);
    });
  });
}
