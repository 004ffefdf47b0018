// The address at which the daemon serves an HTTP port of a sandbox. A preview has a host name of its own: its
// scripts cannot reach the console, nor the other way round. The link has a code that works once; the daemon
// exchanges it for a cookie of that host name, which opens this port and nothing else.
import { PortService } from "@gen/port_pb";
import { client } from "../../api/transport";

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127\./.test(host);
}

async function linkOf(sandboxId: string, port: number): Promise<string> {
  const { url, host, code } = await client(PortService).preview({ sandboxId, port });
  if (!host.endsWith(".localhost")) return url;
  if (!isLoopback(location.hostname))
    throw new Error("previews for browsers of other machines need preview.domain in holt.conf; 'holt port' forwards the port meanwhile");
  // This port may be that of a tunnel to the daemon's machine.
  return `${location.protocol}//${host}${location.port ? `:${location.port}` : ""}/?holt-preview=${code}`;
}

// Opens the port in a new tab.
export async function openPreview(sandboxId: string, port: number): Promise<void> {
  const link = document.createElement("a");
  link.href = await linkOf(sandboxId, port);
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  link.click();
}
