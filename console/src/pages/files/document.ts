// The file that is open: what it is, whether it can be edited here, and what was typed.
import { FileService, type FileEntry } from "@gen/file_pb";
import { client } from "../../api/transport";
import { pathOf, requestPath, type FilePath } from "./path";
import { readFile } from "./transfer";

// Bytes of a file that is edited; of an image; of the start of any other.
const mostText = 2 * 1024 * 1024;
const mostImage = 32 * 1024 * 1024;
const previewBytes = 256 * 1024;
const mostLine = 50_000;

export type Body =
  | { kind: "text"; text: string; etag: string; ends: "\n" | "\r\n" }
  // Shown and not edited; why says the reason, and isPart that there is more.
  | { kind: "preview"; text: string; why: string; isPart: boolean }
  | { kind: "hex"; bytes: Uint8Array; why: string; isPart: boolean }
  | { kind: "image"; url: string; etag: string }
  | { kind: "other"; why: string };

export interface Document {
  path: FilePath;
  entry: FileEntry;
  body: Body;
}

const images: Record<string, string> = {
  png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp", avif: "image/avif",
  bmp: "image/bmp", ico: "image/x-icon",
};

function imageType(name: string): string | undefined {
  return images[name.slice(name.lastIndexOf(".") + 1).toLowerCase()];
}

// The text of UTF-8 without NUL; null: it is something else.
export function decode(bytes: Uint8Array, isPart = false): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isPart });
  } catch {
    return null;
  }
}

// A textarea knows one kind of line end, so a file with several cannot be edited in it.
function endsOf(text: string): "\n" | "\r\n" | null {
  const all = text.match(/\r\n|\r|\n/g) ?? [];
  if (all.every((each) => each === "\n")) return "\n";
  return all.every((each) => each === "\r\n") ? "\r\n" : null;
}

function longestLine(text: string): number {
  let most = 0;
  for (let at = 0; at <= text.length;) {
    const end = text.indexOf("\n", at);
    const next = end < 0 ? text.length : end;
    most = Math.max(most, next - at);
    at = next + 1;
  }
  return most;
}

export function toBytes(text: string, ends: "\n" | "\r\n"): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(ends === "\n" ? text : text.replace(/\n/g, "\r\n"));
}

function textBody(text: string, etag: string): Body {
  const ends = endsOf(text);
  const longest = longestLine(text);
  if (!ends) return { kind: "preview", text, isPart: false, why: "It has several kinds of line ends, which an edit here would change." };
  if (longest > mostLine)
    return { kind: "preview", text, isPart: false, why: `It has a line of ${longest.toLocaleString("en")} characters, too long to be edited here.` };
  return { kind: "text", text: ends === "\n" ? text : text.replace(/\r\n/g, "\n"), etag, ends };
}

async function start(sandboxId: string, path: FilePath, signal: AbortSignal): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const message of client(FileService).read({ sandboxId, ...requestPath(path), length: BigInt(previewBytes) }, { signal }))
    parts.push(message.data);
  const bytes = new Uint8Array(parts.reduce((sum, each) => sum + each.length, 0));
  let at = 0;
  for (const each of parts) {
    bytes.set(each, at);
    at += each.length;
  }
  return bytes;
}

async function bodyOf(sandboxId: string, entry: FileEntry, signal: AbortSignal): Promise<Body> {
  const path = pathOf(entry);
  if (entry.type !== "file") return { kind: "other", why: `This is a ${entry.type}, which has no contents to show.` };
  const type = imageType(entry.name);
  if (type && entry.size > 0n && entry.size <= BigInt(mostImage)) {
    const { bytes, etag } = await readFile(sandboxId, path, mostImage, signal);
    return { kind: "image", etag, url: URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type })) };
  }
  if (entry.size > BigInt(mostText)) {
    const bytes = await start(sandboxId, path, signal);
    const text = decode(bytes, true);
    const why = "It is too large to be edited here; this is its start.";
    return text === null ? { kind: "hex", bytes, why, isPart: true } : { kind: "preview", text, why, isPart: true };
  }
  const { bytes, etag } = await readFile(sandboxId, path, mostText, signal);
  const text = decode(bytes);
  if (text === null) return { kind: "hex", bytes, why: "It is not text.", isPart: false };
  return textBody(text, etag);
}

// Reads a file, or that which a link leads to.
export async function openDocument(sandboxId: string, path: FilePath, signal: AbortSignal): Promise<Document> {
  const reply = await client(FileService).stat({ sandboxId, ...requestPath(path), follow: true }, { signal });
  const found = reply.entry as FileEntry;
  // The link stays the path that is shown and written; entry has the path of the file behind it.
  return { path, entry: found, body: await bodyOf(sandboxId, found, signal) };
}

export function closeDocument(document: Document): void {
  if (document.body.kind === "image") URL.revokeObjectURL(document.body.url);
}
