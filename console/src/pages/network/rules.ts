// Rules of network policies as texts: what a form has, and what a line of the log asks for.
import type { NetworkConnection } from "@gen/network_pb";

export const modes: [string, string][] = [
  ["none", "none: nothing"], ["open", "open: public addresses, and what rules allow"], ["allow", "allow: only what rules allow"],
];

// One rule in each line; the daemon checks them.
export function parseRules(text: string): string[] {
  return text.split("\n").map((each) => each.trim()).filter(Boolean);
}

const name = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/i;
const address = /^[0-9a-f.:]+$/i;

// The narrowest rule that allows what a line denies; undefined if no rule can, as for a malformed name.
export function ruleFor(line: NetworkConnection): string | undefined {
  if (line.allowed) return undefined;
  if (!line.name) {
    if (!address.test(line.address) || line.port === 0) return undefined;
    return line.address.includes(":") ? `[${line.address}]:${line.port}` : `${line.address}:${line.port}`;
  }
  if (!name.test(line.name)) return undefined;
  if (line.protocol === "dns" || line.port === 0) return line.name;
  const scheme = line.protocol === "tls" ? "https://" : line.protocol === "http" ? "http://" : "tcp://";
  const usual = line.protocol === "tls" ? 443 : line.protocol === "http" ? 80 : 0;
  return line.port === usual ? `${scheme}${line.name}` : `${scheme}${line.name}:${line.port}`;
}

// What to ask NetworkService.Test for, so that it decides about this line again.
export function targetOf(line: NetworkConnection): string {
  const host = line.name || (line.address.includes(":") ? `[${line.address}]` : line.address);
  if (line.protocol === "dns" || line.port === 0) return `https://${host}`;
  const scheme = line.protocol === "tls" ? "https" : line.protocol === "http" ? "http" : "tcp";
  return `${scheme}://${host}:${line.port}`;
}
