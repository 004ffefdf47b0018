// The address at which the daemon serves an HTTP port of a sandbox, and a token that opens it.
// A preview has a host name of its own: its scripts cannot reach the console, nor the other way round.
import { TokenService } from "@gen/token_pb";
import { client } from "../../api/transport";

const lifeMs = 8n * 3_600_000n;
const renewMs = 7 * 3_600_000;
// Kept in memory only. One token opens all ports of its sandbox and nothing else.
const tokens = new Map<string, Promise<{ secret: string; at: number }>>();

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127\./.test(host);
}

export function previewOrigin(sandboxId: string, port: number): string {
  const host = isLoopback(location.hostname) ? "localhost" : location.hostname;
  const suffix = location.port ? `:${location.port}` : "";
  return `${location.protocol}//${port}-${sandboxId.replaceAll("-", "")}.${host}${suffix}`;
}

async function create(sandboxId: string): Promise<{ secret: string; at: number }> {
  const { secret } = await client(TokenService).create({
    label: `console: ports of ${sandboxId}`.slice(0, 64), portsOf: sandboxId, ttlMs: lifeMs,
  });
  return { secret, at: Date.now() };
}

async function secretFor(sandboxId: string): Promise<string> {
  const kept = await tokens.get(sandboxId)?.catch(() => null);
  if (kept && Date.now() - kept.at < renewMs) return kept.secret;
  const made = create(sandboxId);
  tokens.set(sandboxId, made);
  made.catch(() => tokens.delete(sandboxId));
  return (await made).secret;
}

// Opens the port in a new tab. The daemon redirects at once to the address without the token, which
// becomes a cookie of that host name.
export async function openPreview(sandboxId: string, port: number): Promise<void> {
  const link = document.createElement("a");
  link.href = `${previewOrigin(sandboxId, port)}/?holt-token=${await secretFor(sandboxId)}`;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  link.click();
}
