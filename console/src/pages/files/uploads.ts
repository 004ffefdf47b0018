// Uploads: two at a time, with progress; asks once before existing files are replaced.
import { computed, signal } from "@preact/signals";
import { FileService } from "@gen/file_pb";
import { client } from "../../api/transport";
import { errorText } from "../../api/errors";
import { bytes, count, plain } from "../../lib/text";
import { confirm } from "../../ui/confirm";
import { join, nameOf, parentOf, requestPath, type FilePath } from "./path";
import { Conflict, writeFile } from "./transfer";

export interface Transfer {
  id: number;
  sandboxId: string;
  path: FilePath;
  file: File;
  sent: number;
  state: "waiting" | "sending" | "done" | "failed" | "canceled";
  error: string;
  cancel: (() => void) | null;
}

const atOnce = 2;
const most = 5000;
let lastId = 0;

export const transfers = signal<Transfer[]>([]);
export const isSending = computed(() => transfers.value.some((each) => each.state === "waiting" || each.state === "sending"));

function change(id: number, changes: Partial<Transfer>): void {
  transfers.value = transfers.peek().map((each) => (each.id === id ? { ...each, ...changes } : each));
}

export function clearTransfers(): void {
  transfers.value = transfers.peek().filter((each) => each.state === "waiting" || each.state === "sending");
}

export function cancelTransfer(transfer: Transfer): void {
  if (transfer.cancel) transfer.cancel();
  else change(transfer.id, { state: "canceled" });
}

interface Wanted {
  file: File;
  // Relative to the directory that it was dropped on.
  path: string;
}

async function send(transfer: Transfer, isNew: boolean): Promise<"done" | "exists" | "failed"> {
  let last = 0;
  const upload = writeFile(transfer.sandboxId, transfer.path, transfer.file, isNew ? { isNew: true } : null, (sent) => {
    const now = performance.now();
    if (now - last < 100 && sent < transfer.file.size) return;
    last = now;
    change(transfer.id, { sent });
  });
  change(transfer.id, { state: "sending", cancel: upload.cancel });
  try {
    await upload.done;
    change(transfer.id, { state: "done", sent: transfer.file.size, cancel: null });
    return "done";
  } catch (error) {
    if (error instanceof Conflict && isNew) {
      change(transfer.id, { state: "waiting", sent: 0, cancel: null });
      return "exists";
    }
    const isCanceled = errorText(error) === "canceled";
    change(transfer.id, { state: isCanceled ? "canceled" : "failed", error: errorText(error), cancel: null });
    return "failed";
  }
}

async function sendAll(list: Transfer[], isNew: boolean, finished: (dir: FilePath) => void): Promise<Transfer[]> {
  const existing: Transfer[] = [];
  const queue = [...list];
  const work = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const id = next.id;
      if (transfers.peek().find((each) => each.id === id)?.state !== "waiting") continue;
      const result = await send(next, isNew);
      if (result === "exists") existing.push(next);
      if (result === "done") finished(parentOf(next.path));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return existing;
}

async function makeDirs(sandboxId: string, dir: FilePath, wanted: readonly Wanted[]): Promise<void> {
  const dirs = new Set(wanted.map((each) => each.path.split("/").slice(0, -1).join("/")).filter(Boolean));
  for (const each of dirs)
    await client(FileService).makeDir({ sandboxId, ...requestPath(join(dir, each)), parents: true });
}

// Sends files into a directory. finished is called with each directory that got one.
export async function upload(sandboxId: string, dir: FilePath, wanted: Wanted[], finished: (dir: FilePath) => void): Promise<void> {
  if (wanted.length > most) throw new Error(`at most ${most.toLocaleString("en")} files can be uploaded at once; use holt cp for larger trees`);
  await makeDirs(sandboxId, dir, wanted);
  const list = wanted.map((each): Transfer => ({
    id: ++lastId, sandboxId, path: join(dir, each.path), file: each.file, sent: 0, state: "waiting", error: "", cancel: null,
  }));
  transfers.value = [...transfers.peek(), ...list];
  const existing = await sendAll(list, true, finished);
  if (existing.length === 0) return;
  const total = existing.reduce((sum, each) => sum + each.file.size, 0);
  const isWanted = await confirm({
    title: `Replace ${count(existing.length, "existing file")}?`,
    text: `${count(existing.length, "file")} of this upload (${bytes(total)}) already exist in the sandbox.`,
    lost: [
      ...existing.slice(0, 5).map((each) => `The contents of ${plain(nameOf(each.path))}`),
      ...(existing.length > 5 ? [`and of ${count(existing.length - 5, "more file")}`] : []),
    ],
    action: "Replace",
  });
  if (isWanted) await sendAll(existing, false, finished);
  else for (const each of existing) change(each.id, { state: "canceled" });
}

// The files of a drop, also those in dropped directories.
export async function filesOf(data: DataTransfer): Promise<Wanted[]> {
  // All are taken before the first await: the browser clears the list after the event.
  const items = [...data.items].map((each) => ({ entry: each.webkitGetAsEntry(), file: each.getAsFile() }));
  const result: Wanted[] = [];
  const visit = async (entry: FileSystemEntry, prefix: string): Promise<void> => {
    if (result.length > most) return;
    if (entry.isFile) {
      const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
      result.push({ file, path: prefix + entry.name });
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const part = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
      if (part.length === 0) return;
      for (const each of part) await visit(each, `${prefix}${entry.name}/`);
    }
  };
  for (const { entry, file } of items) {
    if (entry) await visit(entry, "");
    else if (file) result.push({ file, path: file.name });
  }
  return result;
}
