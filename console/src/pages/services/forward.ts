// Forwards that this page has opened. Each lasts as long as its stream, whichever view is shown.
import { PortService } from "@gen/port_pb";
import { signal } from "@preact/signals";
import { client } from "../../api/transport";
import { toastError } from "../../ui/toast";

export interface OwnForward {
  sandboxId: string;
  port: number;
  address: string;
  stop: () => void;
}

export const forwards = signal<OwnForward[]>([]);

async function keep(messages: AsyncIterator<unknown>, own: OwnForward, wasStopped: () => boolean): Promise<void> {
  try {
    while (!(await messages.next()).done);
  } catch (error) {
    if (!wasStopped()) toastError(error, `The forward of port ${own.port} ended`);
  } finally {
    forwards.value = forwards.peek().filter((each) => each !== own);
  }
}

// Resolves when the daemon listens; rejects if it refuses.
export async function startForward(sandboxId: string, port: number): Promise<void> {
  const ending = new AbortController();
  const messages = client(PortService).forward({ sandboxId, port }, { signal: ending.signal })[Symbol.asyncIterator]();
  const first = await messages.next();
  if (first.done) throw new Error("the daemon has opened no port");
  const own = { sandboxId, port, address: first.value.address, stop: () => ending.abort() };
  forwards.value = [...forwards.peek(), own];
  void keep(messages, own, () => ending.signal.aborted);
}
