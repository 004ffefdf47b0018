// What changed between two states: a bounded list of paths, and the patch of one of them.
import { SnapshotService, type DiffResponse } from "@gen/snapshot_pb";
import { client } from "../../api/transport";

export interface Comparison {
  sandboxId: string;
  from: string;
  to: string;
  // The sandbox of `to`; empty: the same.
  toSandboxId: string;
}

export interface Change {
  kind: string;
  path: string;
  rawPath: Uint8Array;
  oldPath: string;
  type: string;
  size: bigint;
  oldSize: bigint;
}

export interface Changes {
  list: Change[];
  // There are more than are kept.
  isCut: boolean;
}

export const mostChanges = 20_000;

function request(of: Comparison) {
  // Empty names the current files as the newer state, and their base as the older one.
  return { sandboxId: of.sandboxId, from: of.from, to: of.to, toSandboxId: of.toSandboxId };
}

export async function readChanges(of: Comparison, signal: AbortSignal, most = mostChanges): Promise<Changes> {
  const list: Change[] = [];
  for await (const each of client(SnapshotService).diff(request(of), { signal })) {
    if (each.kind === "") continue;
    if (list.length >= most) return { list, isCut: true };
    list.push({
      kind: each.kind, path: each.path, rawPath: each.rawPath, oldPath: each.oldPath, type: each.type, size: each.size,
      oldSize: each.oldSize,
    });
  }
  return { list, isCut: false };
}

export interface Patch {
  text: string;
  isBinary: boolean;
  isCut: boolean;
  added: number;
  deleted: number;
}

const mostPatch = 4 * 1024 * 1024;

export async function readPatch(of: Comparison, change: Change, signal: AbortSignal): Promise<Patch> {
  const decoder = new TextDecoder();
  const where = change.rawPath.length > 0 ? { rawPath: change.rawPath } : { path: change.path };
  const patch: Patch = { text: "", isBinary: false, isCut: false, added: 0, deleted: 0 };
  let isMine = false;
  for await (const each of client(SnapshotService).diff({ ...request(of), ...where, lines: true, patch: true }, { signal })) {
    // A path below a directory that was replaced by a file may come as well.
    if (each.kind !== "") isMine = isSame(each, change);
    if (!isMine) continue;
    if (each.kind !== "") {
      patch.isBinary = each.binary;
      patch.added = Number(each.addedLines);
      patch.deleted = Number(each.deletedLines);
    }
    patch.text += decoder.decode(each.patch, { stream: true });
    if (patch.text.length > mostPatch) return { ...patch, isCut: true };
  }
  return patch;
}

function isSame(found: DiffResponse, wanted: Change): boolean {
  return found.path === wanted.path && found.rawPath.length === wanted.rawPath.length &&
    found.rawPath.every((each, i) => each === wanted.rawPath[i]);
}

export interface Summary {
  added: number;
  modified: number;
  deleted: number;
  renamed: number;
  isCut: boolean;
}

export function summaryOf(changes: Changes): Summary {
  const sum: Summary = { added: 0, modified: 0, deleted: 0, renamed: 0, isCut: changes.isCut };
  for (const { kind } of changes.list)
    if (kind === "added" || kind === "modified" || kind === "deleted" || kind === "renamed") sum[kind]++;
  return sum;
}
