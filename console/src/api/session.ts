// The session of this tab. The cookie is HttpOnly; the key beside it is in sessionStorage, which no
// other port of the same host can read. A new tab asks the open ones for the key.
import { computed, signal } from "@preact/signals";

export interface Session {
  id: string;
  owner: string;
  role: "admin" | "user" | "reader";
  expires: string;
}

type State = { kind: "checking" } | { kind: "out"; reason?: string } | { kind: "in"; session: Session };

export const state = signal<State>({ kind: "checking" });
export const session = computed(() => (state.value.kind === "in" ? state.value.session : null));
export const role = computed(() => session.value?.role ?? "reader");
// Whether actions are offered at all; the server refuses them in any case.
export const canWrite = computed(() => role.value !== "reader");
export const isAdmin = computed(() => role.value === "admin");

const storageKey = "holt.key";
const channel = new BroadcastChannel("holt.session");

export function key(): string | null {
  return sessionStorage.getItem(storageKey);
}

export function headers(): Record<string, string> {
  const value = key();
  return value ? { "X-Holt-Session": value } : {};
}

channel.onmessage = ({ data }: MessageEvent<{ ask?: true; key?: string; out?: true }>) => {
  const own = key();
  if (data.ask && own && session.peek()) channel.postMessage({ key: own });
  if (data.key && !own) {
    sessionStorage.setItem(storageKey, data.key);
    void restore();
  }
  if (data.out) ended();
};

async function readError(response: Response): Promise<string> {
  try {
    const body = (await response.json()) as { message?: string };
    if (body.message) return body.message;
  } catch {
    // Not JSON: the status has to do.
  }
  return `the daemon answered with status ${response.status}`;
}

function role_of(text: string): Session["role"] {
  return text === "admin" || text === "user" ? text : "reader";
}

function enter(body: { id?: string; owner: string; role: string; expires: string }): void {
  state.value = { kind: "in", session: { id: body.id ?? "", owner: body.owner, role: role_of(body.role), expires: body.expires } };
}

export async function login(secret: { code: string } | { token: string }): Promise<void> {
  const response = await fetch("/console/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(secret),
  });
  if (!response.ok) throw new Error(await readError(response));
  const body = (await response.json()) as { key: string; id?: string; owner: string; role: string; expires: string };
  sessionStorage.setItem(storageKey, body.key);
  enter(body);
}

// Whether the daemon answers, and whether it still knows the session.
export async function probe(): Promise<"in" | "out" | "away"> {
  let response: Response;
  try {
    response = await fetch("/console/session", { headers: headers(), cache: "no-store" });
  } catch {
    return "away";
  }
  if (response.status === 401) return "out";
  if (!response.ok) return "away";
  enter((await response.json()) as { id?: string; owner: string; role: string; expires: string });
  return "in";
}

// Finds the session of this tab after a load: by its own key, or by that of another tab.
export async function restore(): Promise<void> {
  if (!key()) {
    channel.postMessage({ ask: true });
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  if (!key()) {
    if (!session.peek()) state.value = { kind: "out" };
    return;
  }
  for (let delay = 250; ; delay = Math.min(delay * 2, 4000)) {
    const result = await probe();
    if (result === "out") ended("The session has ended. Log in again.");
    if (result !== "away") return;
    await new Promise((resolve) => setTimeout(resolve, delay));
  }
}

export function ended(reason?: string): void {
  sessionStorage.removeItem(storageKey);
  state.value = reason === undefined ? { kind: "out" } : { kind: "out", reason };
}

export async function logout(): Promise<void> {
  try {
    await fetch("/console/logout", {
      method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body: "{}",
    });
  } finally {
    channel.postMessage({ out: true });
    ended();
  }
}
