// The directories that were opened, each with the entries that have been loaded so far.
import { signal } from "@preact/signals";
import { FileService, type FileEntry } from "@gen/file_pb";
import { client } from "../../api/transport";
import { errorText } from "../../api/errors";
import { keyOf, pathOf, requestPath, root, textPath, type FilePath } from "./path";

const pageSize = 500;

interface Dir {
  path: FilePath;
  isOpen: boolean;
  entries: FileEntry[];
  // Where the next page starts; empty: all is there.
  after: Uint8Array;
  isLoading: boolean;
  error: string;
  // Of the last load; an older one that ends later is ignored.
  version: number;
}

export type Row =
  | { kind: "entry"; depth: number; entry: FileEntry; path: FilePath; key: string; isOpen: boolean }
  | { kind: "more"; depth: number; dir: FilePath; key: string; isLoading: boolean }
  | { kind: "note"; depth: number; key: string; text: string; isError: boolean };

export class Tree {
  readonly rows = signal<Row[]>([]);
  // Directories that are open, for the watches.
  readonly open = signal<FilePath[]>([]);
  readonly #dirs = new Map<string, Dir>();

  constructor(private readonly sandboxId: string) {}

  start(): void {
    void this.expand(root);
    void this.expand(textPath("/workspace"));
  }

  isOpen(path: FilePath): boolean {
    return this.#dirs.get(keyOf(path))?.isOpen ?? false;
  }

  async expand(path: FilePath): Promise<void> {
    const dir = this.#dir(path);
    dir.isOpen = true;
    this.#publish();
    await this.#load(dir, Math.max(dir.entries.length, pageSize));
  }

  collapse(path: FilePath): void {
    const dir = this.#dirs.get(keyOf(path));
    if (dir) dir.isOpen = false;
    this.#publish();
  }

  // Opens all directories on the way to a path.
  async reveal(path: FilePath): Promise<void> {
    const parts = path.text.split("/").filter(Boolean).slice(0, -1);
    let text = "";
    for (const part of parts) {
      text += `/${part}`;
      if (!this.isOpen(textPath(text))) await this.expand(textPath(text));
    }
  }

  async more(path: FilePath): Promise<void> {
    const dir = this.#dir(path);
    if (dir.isLoading || dir.after.length === 0) return;
    dir.isLoading = true;
    this.#publish();
    const version = ++dir.version;
    try {
      const reply = await client(FileService).list(
        { sandboxId: this.sandboxId, ...requestPath(path), limit: pageSize, after: dir.after });
      if (version !== dir.version) return;
      dir.entries = [...dir.entries, ...reply.entries];
      dir.after = reply.nextAfter;
      dir.error = "";
    } catch (error) {
      dir.error = errorText(error);
    }
    dir.isLoading = false;
    this.#publish();
  }

  // Reads again what is shown of an open directory.
  async refresh(path: FilePath): Promise<void> {
    const dir = this.#dirs.get(keyOf(path));
    if (dir?.isOpen) await this.#load(dir, Math.max(dir.entries.length, pageSize));
  }

  async refreshAll(): Promise<void> {
    await Promise.all([...this.#dirs.values()].filter((each) => each.isOpen).map((each) => this.refresh(each.path)));
  }

  find(path: FilePath): FileEntry | undefined {
    const key = keyOf(path);
    for (const dir of this.#dirs.values()) {
      const found = dir.entries.find((each) => keyOf(pathOf(each)) === key);
      if (found) return found;
    }
    return undefined;
  }

  #dir(path: FilePath): Dir {
    const key = keyOf(path);
    let dir = this.#dirs.get(key);
    if (!dir) {
      dir = { path, isOpen: false, entries: [], after: new Uint8Array(), isLoading: false, error: "", version: 0 };
      this.#dirs.set(key, dir);
    }
    return dir;
  }

  async #load(dir: Dir, limit: number): Promise<void> {
    const version = ++dir.version;
    dir.isLoading = true;
    try {
      const reply = await client(FileService).list(
        { sandboxId: this.sandboxId, ...requestPath(dir.path), limit: Math.min(limit, 10_000) });
      if (version !== dir.version) return;
      dir.entries = reply.entries;
      dir.after = reply.nextAfter;
      dir.error = "";
    } catch (error) {
      if (version !== dir.version) return;
      dir.error = errorText(error);
      dir.entries = [];
      dir.after = new Uint8Array();
    }
    dir.isLoading = false;
    this.#publish();
  }

  #publish(): void {
    const rows: Row[] = [];
    const open: FilePath[] = [];
    this.#add(rows, open, this.#dir(root), 0);
    this.rows.value = rows;
    const before = this.open.peek();
    if (before.length !== open.length || open.some((each, i) => keyOf(each) !== keyOf(before[i] as FilePath)))
      this.open.value = open;
  }

  #add(rows: Row[], open: FilePath[], dir: Dir, depth: number): void {
    open.push(dir.path);
    const isFolder = (each: FileEntry) => (each.type === "directory" ? 0 : 1);
    const sorted = dir.after.length > 0 ? dir.entries : [...dir.entries].sort((a, b) => isFolder(a) - isFolder(b));
    for (const entry of sorted) {
      const path = pathOf(entry);
      const key = keyOf(path);
      const child = entry.type === "directory" ? this.#dirs.get(key) : undefined;
      rows.push({ kind: "entry", depth, entry, path, key, isOpen: child?.isOpen ?? false });
      if (child?.isOpen) this.#add(rows, open, child, depth + 1);
    }
    const key = keyOf(dir.path);
    if (dir.error) rows.push({ kind: "note", depth, key: `${key}\0error`, text: dir.error, isError: true });
    else if (dir.after.length > 0) rows.push({ kind: "more", depth, dir: dir.path, key: `${key}\0more`, isLoading: dir.isLoading });
    else if (dir.entries.length === 0)
      rows.push({ kind: "note", depth, key: `${key}\0empty`, text: dir.isLoading ? "Loading…" : "Empty", isError: false });
  }
}
