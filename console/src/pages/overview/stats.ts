// CPU and memory of the rows in view: one stream, renewed when other rows come into view.
import { signal } from "@preact/signals";
import { SandboxService, type Sandbox, type SandboxStats } from "@gen/sandbox_pb";
import { useEffect, useState } from "preact/hooks";
import { follow } from "../../api/follow";
import { client } from "../../api/transport";

export const stats = signal<ReadonlyMap<string, SandboxStats>>(new Map());
const settleMs = 300; // while somebody scrolls, no stream is opened

export function useStats(): (rows: readonly Sandbox[]) => void {
  const [ids, setIds] = useState("");
  useEffect(() => {
    if (ids === "") return undefined;
    let stop: (() => void) | undefined;
    const timer = setTimeout(() => {
      const call = { sandboxIds: ids.split(","), intervalMs: 2000n };
      stop = follow((abort) => client(SandboxService).watchStats(call, { signal: abort }), {
        message: (reply) => {
          stats.value = new Map(reply.stats.map((each) => [each.sandboxId, each]));
        },
      });
    }, settleMs);
    return () => {
      clearTimeout(timer);
      stop?.();
    };
  }, [ids]);
  return (rows) => setIds(rows.filter((each) => each.state === "active").map((each) => each.id).join(","));
}
