// The address of a view is in the fragment: #/sandboxes/ID/TAB. The server sees one page.
import { computed, signal } from "@preact/signals";
import { takeCode } from "./api/code";

function read(): string {
  const hash = location.hash;
  return hash.startsWith("#/") ? hash.slice(1) : "/";
}

const address = signal(read());

// The path without its query: "/sandboxes/sb-0123/files".
export const path = computed(() => address.value.split("?", 1)[0] ?? "/");
export const segments = computed(() => path.value.split("/").filter(Boolean).map(decode));
export const query = computed(() => new URLSearchParams(address.value.split("?")[1] ?? ""));

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

addEventListener("hashchange", () => {
  if (takeCode(`#${address.peek()}`)) return;
  address.value = read();
});

// Parts are encoded, so that any id or path may be one: href("sandboxes", id, "files").
export function href(...parts: string[]): string {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function navigate(to: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", to);
    address.value = read();
  } else {
    location.hash = to;
  }
}

// Changes the query of the current view without an entry in the history.
export function setQuery(changes: Record<string, string | null>): void {
  const next = new URLSearchParams(query.peek());
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") next.delete(key);
    else next.set(key, value);
  }
  const text = next.toString();
  navigate(`#${path.peek()}${text ? `?${text}` : ""}`, true);
}

export interface Match {
  params: Record<string, string>;
}

// "/sandboxes/:id/*" matches "/sandboxes/x/files"; null if the pattern does not fit.
export function match(pattern: string, parts: readonly string[]): Match | null {
  const wanted = pattern.split("/").filter(Boolean);
  const params: Record<string, string> = {};
  for (const [i, each] of wanted.entries()) {
    if (each === "*") return { params };
    const part = parts[i];
    if (part === undefined) return null;
    if (each.startsWith(":")) params[each.slice(1)] = part;
    else if (each !== part) return null;
  }
  return wanted.length === parts.length ? { params } : null;
}
