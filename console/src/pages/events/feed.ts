// The events of the daemon as they come: a bounded list, newest first, that continues after a break.
import { EventService, type Event } from "@gen/event_pb";
import { useEffect, useRef, useState } from "preact/hooks";
import { follow } from "../../api/follow";
import { client } from "../../api/transport";
import { merged } from "../../lib/merge";

const mostKept = 2000;

export interface Feed {
  events: Event[];
  lost: number;
  isOpen: boolean;
  error: unknown;
}

const nothing: Feed = { events: [], lost: 0, isOpen: false, error: null };

export function useFeed(sandboxId: string, types: string[], isPaused: boolean): Feed {
  const [feed, setFeed] = useState<Feed>(nothing);
  const wait = useRef(isPaused);
  wait.current = isPaused;
  const show = useRef<() => void>(() => undefined);

  useEffect(() => {
    let events: Event[] = [];
    let lost = 0;
    let last = 0n;
    let isOpen = false;
    let error: unknown = null;
    const update = merged(() => {
      if (!wait.current) setFeed({ events: [...events], lost, isOpen, error });
    });
    show.current = update;
    setFeed(nothing);
    const stop = follow((signal) => client(EventService).watch({ since: last, sandboxId, types }, { signal }), {
      message: ({ message }) => {
        isOpen = true;
        if (message.case === "event") {
          events.unshift(message.value);
          if (events.length > mostKept) events = events.slice(0, mostKept);
          last = message.value.seq;
        } else if (message.case === "lost" && last > 0n) {
          lost += Number(message.value);
        }
        update();
      },
      ended: (failure) => {
        error = failure;
        update();
      },
    });
    return stop;
  }, [sandboxId, types.join("\n")]);

  useEffect(() => {
    if (!isPaused) show.current();
  }, [isPaused]);
  return feed;
}
