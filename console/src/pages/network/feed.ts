// The connections of a sandbox as they come: a bounded list, newest first. The log is one call that waits
// for new lines; it is repeated over the stream of the page, so it costs no connection of its own.
import { create, fromJson, toJson, type JsonValue } from "@bufbuild/protobuf";
import { NetworkLogRequestSchema, NetworkLogResponseSchema, type NetworkConnection } from "@gen/network_pb";
import { useEffect, useRef, useState } from "preact/hooks";
import { pause } from "../../api/connection";
import { follow } from "../../api/follow";
import { stream } from "../../api/mux";
import { merged } from "../../lib/merge";

const mostKept = 2000;
const waitMs = 20_000n;
const restMs = 250; // a busy sandbox costs four calls a second at most

export interface Feed {
  lines: NetworkConnection[];
  lost: number;
  isOpen: boolean;
  error: unknown;
}

const nothing: Feed = { lines: [], lost: 0, isOpen: false, error: null };

async function* once(value: JsonValue): AsyncGenerator<JsonValue> {
  yield value;
}

// The first batch has all that the daemon keeps, the next ones have what is new.
async function* batches(sandboxId: string, signal: AbortSignal): AsyncGenerator<NetworkConnection[]> {
  let after = 0n;
  for (let wait = 0n; !signal.aborted; wait = waitMs) {
    const request = create(NetworkLogRequestSchema, { sandboxId, after, waitMs: wait });
    const call = {
      name: "holt.v1.NetworkService/Log", input: once(toJson(NetworkLogRequestSchema, request)), isStreamOfInputs: false, signal,
    };
    for await (const reply of stream(call)) {
      const { connections } = fromJson(NetworkLogResponseSchema, reply, { ignoreUnknownFields: true });
      after = connections.at(-1)?.number ?? after;
      yield connections;
    }
    await pause(restMs, signal);
  }
}

// Lines of both, oldest first. Numbers that are not new after a break mean that the daemon was restarted,
// and has begun a new log.
export function joined(kept: NetworkConnection[], batch: NetworkConnection[], isFirst: boolean): { lines: NetworkConnection[]; lost: number } {
  const last = kept.at(-1)?.number ?? 0n;
  const newest = batch.at(-1)?.number ?? 0n;
  if (isFirst && newest < last) return { lines: batch, lost: 0 };
  const fresh = batch.filter((each) => each.number > last);
  const gap = fresh[0] && last > 0n ? Number(fresh[0].number - last) - 1 : 0;
  return { lines: [...kept, ...fresh].slice(-mostKept), lost: gap };
}

export function useLog(sandboxId: string, isPaused: boolean): Feed {
  const [feed, setFeed] = useState<Feed>(nothing);
  const wait = useRef(isPaused);
  wait.current = isPaused;
  const show = useRef<() => void>(() => undefined);

  useEffect(() => {
    let lines: NetworkConnection[] = [];
    let lost = 0;
    let isFirst = true;
    let isOpen = false;
    let error: unknown = null;
    let isChanged = true;
    const update = merged(() => {
      if (wait.current || !isChanged) return;
      isChanged = false;
      setFeed({ lines: [...lines].reverse(), lost, isOpen, error });
    });
    show.current = update;
    setFeed(nothing);
    return follow((signal) => batches(sandboxId, signal), {
      opening: () => (isFirst = true),
      message: (batch) => {
        const next = joined(lines, batch, isFirst);
        isChanged ||= !isOpen || batch.length > 0;
        lines = next.lines;
        lost += next.lost;
        isFirst = false;
        isOpen = true;
        update();
      },
      ended: (failure) => {
        error = failure;
        isChanged = true;
        update();
      },
    });
  }, [sandboxId]);

  useEffect(() => {
    if (!isPaused) show.current();
  }, [isPaused]);
  return feed;
}
