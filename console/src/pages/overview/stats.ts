// CPU and memory of the rows in view: one stream, renewed when other rows come into view.
import { signal } from "@preact/signals";
import { SandboxService, type Sandbox, type SandboxStats } from "@gen/sandbox_pb";
import { useEffect, useMemo } from "preact/hooks";
import { follow } from "../../api/follow";
import { client } from "../../api/transport";

export const stats = signal<ReadonlyMap<string, SandboxStats>>(new Map());
const settleMs = 300; // while somebody scrolls, no stream is opened

class Watcher {
  #ids = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stop: (() => void) | undefined;

  watch = (rows: readonly Sandbox[]): void => {
    const ids = rows.filter((each) => each.state === "active").map((each) => each.id).join(",");
    if (ids === this.#ids) return;
    this.close();
    this.#ids = ids;
    if (ids !== "") this.#timer = setTimeout(() => this.#open(ids.split(",")), settleMs);
  };

  #open(sandboxIds: string[]): void {
    const call = { sandboxIds, intervalMs: 2000n };
    this.#stop = follow((abort) => client(SandboxService).watchStats(call, { signal: abort }), {
      message: (reply) => {
        stats.value = new Map(reply.stats.map((each) => [each.sandboxId, each]));
      },
    });
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#stop?.();
    this.#stop = undefined;
    this.#ids = "";
  }
}

// Returns a function to be called with the rows in view. It renders nothing again.
export function useStats(): (rows: readonly Sandbox[]) => void {
  const watcher = useMemo(() => new Watcher(), []);
  useEffect(() => () => watcher.close(), []);
  return watcher.watch;
}
