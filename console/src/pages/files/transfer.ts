// Contents of files over plain HTTP: /holt.v1/file, and tickets for downloads by the browser.
import { Code, ConnectError } from "@connectrpc/connect";
import { errorFromJson } from "@connectrpc/connect/protocol-connect";
import type { JsonValue } from "@bufbuild/protobuf";
import { lost, verify } from "../../api/connection";
import { headers } from "../../api/session";
import { encodePath, requestPath, type FilePath } from "./path";

// Somebody else has changed, made or removed the file meanwhile.
export class Conflict extends Error {
  constructor() {
    super("the file was changed by somebody else meanwhile");
  }
}

function address(sandboxId: string, path: FilePath): string {
  return `/holt.v1/file?sandbox=${encodeURIComponent(sandboxId)}&path=${encodePath(path)}`;
}

function refusal(status: number, body: string): Error {
  if (status === 412) return new Conflict();
  if (status === 401) verify();
  const fallback = new ConnectError(`the daemon answered with status ${status}`, Code.Unknown);
  try {
    return errorFromJson(JSON.parse(body) as JsonValue, undefined, fallback);
  } catch (error) {
    return error instanceof ConnectError ? error : fallback;
  }
}

async function request(url: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers: { ...headers(), ...init.headers }, cache: "no-store" });
  } catch (error) {
    if (init.signal?.aborted) throw new ConnectError("canceled", Code.Canceled);
    lost();
    throw new ConnectError("the daemon does not answer", Code.Unavailable, undefined, undefined, error);
  }
  if (!response.ok) throw refusal(response.status, await response.text());
  return response;
}

export interface Content {
  bytes: Uint8Array;
  etag: string;
}

// What is there cannot be shown; a write can still name it.
export class TooLarge extends Error {
  constructor(readonly etag: string) {
    super("the file is too large to be shown");
  }
}

// Reads a whole file; refuses one with more bytes than `most`, which may have grown since it was listed.
export async function readFile(sandboxId: string, path: FilePath, most: number, signal?: AbortSignal): Promise<Content> {
  const response = await request(address(sandboxId, path), { signal: signal ?? null });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw new TooLarge(response.headers.get("ETag") ?? "");
    }
    parts.push(value);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const each of parts) {
    bytes.set(each, at);
    at += each.length;
  }
  return { bytes, etag: response.headers.get("ETag") ?? "" };
}

// What must hold for a write: the file is as it was read, or does not exist; null: anything.
export type Condition = { etag: string } | { isNew: true } | null;

export interface Upload {
  // The new ETag.
  done: Promise<string>;
  cancel: () => void;
}

// Creates or replaces a file. XMLHttpRequest, because fetch does not report how much it has sent.
export function writeFile(sandboxId: string, path: FilePath, body: Blob | Uint8Array<ArrayBuffer>, condition: Condition,
  progress?: (sent: number) => void): Upload {
  const xhr = new XMLHttpRequest();
  const done = new Promise<string>((resolve, reject) => {
    xhr.open("PUT", address(sandboxId, path));
    for (const [name, value] of Object.entries(headers())) xhr.setRequestHeader(name, value);
    xhr.setRequestHeader("Content-Type", "application/octet-stream");
    if (condition && "etag" in condition) xhr.setRequestHeader("If-Match", condition.etag);
    if (condition && "isNew" in condition) xhr.setRequestHeader("If-None-Match", "*");
    if (progress) xhr.upload.onprogress = (event) => progress(event.loaded);
    xhr.onload = () => {
      if (xhr.status >= 200 && xhr.status < 300) resolve(xhr.getResponseHeader("ETag") ?? "");
      else reject(refusal(xhr.status, xhr.responseText));
    };
    xhr.onabort = () => reject(new ConnectError("canceled", Code.Canceled));
    xhr.onerror = () => {
      lost();
      reject(new ConnectError("the connection broke while the file was sent", Code.Unavailable));
    };
    xhr.send(body);
  });
  return { done, cancel: () => xhr.abort() };
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

// Lets the browser save a file, or a directory as .tar, whatever its size.
export async function download(sandboxId: string, path: FilePath): Promise<void> {
  const wanted = requestPath(path);
  const response = await request("/console/ticket", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(wanted.rawPath.length > 0
      ? { sandbox: sandboxId, rawPath: base64(wanted.rawPath) }
      : { sandbox: sandboxId, path: wanted.path }),
  });
  const { url } = (await response.json()) as { url: string };
  if (!url.startsWith("/console/download/")) throw new Error("the daemon gave an unexpected address");
  const link = document.createElement("a");
  link.href = url;
  link.download = "";
  document.body.append(link);
  link.click();
  link.remove();
}
