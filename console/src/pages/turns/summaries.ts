// What each snapshot changed. Snapshots do not change, so each is compared with its parent once.
import { signal } from "@preact/signals";
import { mostChanges, readChanges, summaryOf, type Summary } from "./changes";

export class Summaries {
  // By the name of the snapshot; undefined: not known yet.
  readonly known = signal<ReadonlyMap<string, Summary | "failed">>(new Map());
  readonly #asked = new Set<string>();
  readonly #queue: { name: string; parent: string }[] = [];
  readonly #ending = new AbortController();
  #isBusy = false;

  constructor(private readonly sandboxId: string) {}

  // Asks for a snapshot that has come into view; one is compared at a time.
  want(name: string, parent: string): void {
    const key = `${name}\0${parent}`;
    if (this.#asked.has(key)) return;
    this.#asked.add(key);
    this.#queue.push({ name, parent });
    if (!this.#isBusy) void this.#work();
  }

  stop(): void {
    this.#ending.abort();
    this.#queue.length = 0;
  }

  async #work(): Promise<void> {
    this.#isBusy = true;
    for (let next = this.#queue.pop(); next; next = this.#queue.pop()) {
      let result: Summary | "failed" = "failed";
      try {
        const changes = await readChanges(
          { sandboxId: this.sandboxId, from: next.parent, to: next.name, toSandboxId: "" }, this.#ending.signal, mostChanges);
        result = summaryOf(changes);
      } catch {
        if (this.#ending.signal.aborted) return;
      }
      this.known.value = new Map(this.known.peek()).set(next.name, result);
    }
    this.#isBusy = false;
  }
}
