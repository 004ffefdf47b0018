// A value that is fetched again and again while somebody looks at it.
import { useEffect, useState } from "preact/hooks";
import { epoch, online, pause, until, visible } from "../api/connection";

export interface Polled<T> {
  value: T | null;
  error: unknown;
  // Fetches it again now.
  refresh: () => void;
}

// Fetches when the component is shown, every `ms` while the tab is visible, and when the daemon is back.
// Keys are those of an effect: another one starts again without a value.
export function usePolled<T>(fetch: (signal: AbortSignal) => Promise<T>, ms: number, keys: unknown[] = []): Polled<T> {
  const [result, setResult] = useState<{ value: T | null; error: unknown }>({ value: null, error: null });
  const [round, setRound] = useState(0);
  useEffect(() => setResult({ value: null, error: null }), keys);
  useEffect(() => {
    const stop = new AbortController();
    void poll(fetch, ms, stop.signal, setResult);
    return () => stop.abort();
  }, [...keys, round, epoch.value]);
  return { ...result, refresh: () => setRound(round + 1) };
}

type Setter<T> = (change: (old: { value: T | null; error: unknown }) => { value: T | null; error: unknown }) => void;

async function poll<T>(fetch: (signal: AbortSignal) => Promise<T>, ms: number, stop: AbortSignal, set: Setter<T>) {
  while (!stop.aborted) {
    await until(() => visible.value && online.value, stop);
    if (stop.aborted) return;
    try {
      const value = await fetch(stop);
      if (!stop.aborted) set(() => ({ value, error: null }));
    } catch (error) {
      if (!stop.aborted && online.peek()) set((old) => ({ value: old.value, error }));
    }
    await pause(ms, stop);
  }
}
