// One sandbox, kept current by its events.
import { EventService } from "@gen/event_pb";
import { SandboxService, type Sandbox } from "@gen/sandbox_pb";
import { Code, ConnectError } from "@connectrpc/connect";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { follow } from "../api/follow";
import { client } from "../api/transport";
import { merged } from "../lib/merge";

export interface Followed {
  sandbox: Sandbox | null;
  error: unknown;
  // It existed, and was destroyed while it was shown.
  isGone: boolean;
  refresh: () => void;
  put: (sandbox: Sandbox | undefined) => void;
}

const types = ["sandbox.*", "turn.*", "snapshot.*"];

export function useSandbox(id: string): Followed {
  const [sandbox, setSandbox] = useState<Sandbox | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isGone, setGone] = useState(false);

  // Counts the calls, so that a late reply does not replace a newer one.
  const round = useRef(0);
  const refresh = useMemo(() => merged(() => {
    const own = ++round.current;
    client(SandboxService).get({ sandboxId: id }).then((reply) => {
      if (own !== round.current) return;
      setSandbox(reply.sandbox ?? null);
      setError(null);
    }, (thrown: unknown) => {
      if (own !== round.current) return;
      const code = ConnectError.from(thrown).code;
      // The banner says that the daemon is away; what is known stays visible.
      if (code === Code.Unavailable) return;
      if (code === Code.NotFound && wasSeen.current) setGone(true);
      else setError(thrown);
    });
  }), [id]);
  const wasSeen = useRef(false);
  wasSeen.current = sandbox !== null;

  useEffect(() => {
    setSandbox(null);
    setError(null);
    setGone(false);
    refresh();
    return follow((signal) => client(EventService).watch({ sandboxId: id, types }, { signal }), {
      message: ({ message }) => {
        if (message.case === "event" && message.value.type === "sandbox.destroyed") setGone(true);
        else refresh();
      },
    });
  }, [id]);

  return { sandbox, error, isGone, refresh, put: (next) => next && setSandbox(next) };
}
