// The one-time code of a login link, #login=CODE. Any site can lead a browser to such a link, so the code
// is only offered here; a person decides.
import { signal } from "@preact/signals";

export const code = signal<string | null>(null);

// Takes a code out of the address and the history, and puts `before` there. False: there is none.
export function takeCode(before: string): boolean {
  const found = /^#login=([A-Za-z0-9._~-]+)$/.exec(location.hash);
  if (!found) return false;
  history.replaceState(null, "", before);
  code.value = found[1] ?? null;
  return true;
}

export interface Who {
  owner: string;
  role: string;
}

// On whose behalf the code logs in. It stays valid.
export async function look(offered: string): Promise<Who> {
  const response = await fetch("/console/login/look", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code: offered }),
  });
  const body = (await response.json()) as Who & { message?: string };
  if (!response.ok) throw new Error(body.message ?? `the daemon answered with status ${response.status}`);
  return body;
}
