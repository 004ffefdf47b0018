// The result of a call for a page: fetched when it is shown, when the daemon is back, and on demand.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { epoch, pause, until, visible } from "../api/connection";

export interface Resource<T> {
  data: T | undefined;
  error: unknown;
  reload: () => Promise<void>;
}

// everyMs: fetch again after this time, but not in a hidden tab.
export function useResource<T>(fetch: () => Promise<T>, inputs: unknown[] = [], everyMs?: number): Resource<T> {
  const [result, setResult] = useState<{ data: T | undefined; error: unknown }>({ data: undefined, error: null });
  const latest = useRef(fetch);
  latest.current = fetch;
  const turn = useRef(0);

  const reload = useCallback(async () => {
    const mine = ++turn.current;
    try {
      const data = await latest.current();
      if (mine === turn.current) setResult({ data, error: null });
    } catch (error) {
      if (mine === turn.current) setResult((before) => ({ data: before.data, error }));
    }
  }, []);

  useEffect(() => {
    const ending = new AbortController();
    void (async () => {
      await reload();
      while (everyMs && !ending.signal.aborted) {
        await pause(everyMs, ending.signal);
        await until(() => visible.value, ending.signal);
        if (!ending.signal.aborted) await reload();
      }
    })();
    return () => {
      ending.abort();
      turn.current++;
    };
  }, [epoch.value, ...inputs]);
  return { ...result, reload };
}
