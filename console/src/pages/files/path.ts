// Paths of files. A name is bytes: if they are not UTF-8, `raw` has them and `text` is only for people.
import type { FileEntry } from "@gen/file_pb";

export interface FilePath {
  text: string;
  // Empty: the text is exact.
  raw: Uint8Array;
}

const none = new Uint8Array();
const encoder = new TextEncoder();

export const root: FilePath = { text: "/", raw: none };

export function pathOf(entry: FileEntry): FilePath {
  return { text: entry.path, raw: entry.rawPath };
}

export function textPath(text: string): FilePath {
  return { text, raw: none };
}

// The fields of a request.
export function requestPath(path: FilePath): { path: string; rawPath: Uint8Array } {
  return path.raw.length > 0 ? { path: "", rawPath: path.raw } : { path: path.text, rawPath: none };
}

function bytesOf(path: FilePath): Uint8Array {
  return path.raw.length > 0 ? path.raw : encoder.encode(path.text);
}

// Equal for equal paths, different for different ones.
export function keyOf(path: FilePath): string {
  return path.raw.length > 0 ? `\0${[...path.raw].join(",")}` : path.text;
}

// The value of a parameter in an address, byte by byte.
export function encodePath(path: FilePath): string {
  let text = "";
  for (const each of bytesOf(path)) text += `%${each.toString(16).padStart(2, "0")}`;
  return path.raw.length > 0 ? text : encodeURIComponent(path.text);
}

export function join(dir: FilePath, name: string): FilePath {
  const slash = dir.text === "/" ? "" : "/";
  const text = `${dir.text}${slash}${name}`;
  if (dir.raw.length === 0) return { text, raw: none };
  const tail = encoder.encode(`${slash}${name}`);
  const raw = new Uint8Array(dir.raw.length + tail.length);
  raw.set(dir.raw);
  raw.set(tail, dir.raw.length);
  return { text, raw };
}

export function parentOf(path: FilePath): FilePath {
  const cut = path.text.lastIndexOf("/");
  const text = cut <= 0 ? "/" : path.text.slice(0, cut);
  if (path.raw.length === 0) return { text, raw: none };
  const raw = path.raw.subarray(0, Math.max(1, path.raw.lastIndexOf(0x2f)));
  return raw.every((each) => each < 0x80) ? { text, raw: none } : { text, raw };
}

export function nameOf(path: FilePath): string {
  return path.text.slice(path.text.lastIndexOf("/") + 1);
}

// Why a name cannot be used; empty: it can.
export function nameProblem(name: string): string {
  if (name === "") return "A name is needed.";
  if (name === "." || name === "..") return "This name is reserved.";
  if (name.includes("/")) return "A name has no slash.";
  if (name.includes("\0")) return "A name has no NUL character.";
  if (encoder.encode(name).length > 255) return "A name has at most 255 bytes.";
  return "";
}
