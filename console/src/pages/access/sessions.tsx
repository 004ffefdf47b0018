// The part Sessions of the page Access: browsers that are logged in to the console, and previews of ports.
import { ConsoleService, type ConsoleSession } from "@gen/console_pb";
import { session as own } from "../../api/session";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { useResource } from "../../lib/resource";
import { count, dateTime } from "../../lib/text";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { confirm } from "../../ui/confirm";
import { List, type Column } from "../../ui/list";
import { Foreign, Panel } from "../../ui/parts";
import { toast } from "../../ui/toast";

const refreshMs = 10_000;

// "Chrome 120 on Linux" for people; the whole text is the tooltip.
function browserName(agent: string): string {
  const browser = /(Firefox|Edg|OPR|Chrome|Version)\/(\d+)/.exec(agent);
  const system = /(Windows|Mac OS X|Android|iPhone|iPad|Linux)/.exec(agent);
  const names: Record<string, string> = { Edg: "Edge", OPR: "Opera", Version: "Safari" };
  if (!browser) return agent.slice(0, 60) || "unknown";
  const name = browser[1] ?? "";
  return `${names[name] ?? name} ${browser[2]}${system ? ` on ${system[1]}` : ""}`;
}

async function revoke(session: ConsoleSession): Promise<boolean> {
  const isWanted = await confirm({
    title: `Revoke the session ${session.id}?`,
    text: "This browser is logged out: its calls and streams end within a second. If the session is yours, you log in again.",
    action: "Revoke",
  });
  if (!isWanted) return false;
  await client(ConsoleService).revokeSession({ id: session.id });
  toast(`The session ${session.id} was revoked.`);
  return true;
}

function columns(reload: () => Promise<void>): Column<ConsoleSession>[] {
  return [
    { title: "Id", class: "id", cell: (each) => <><Foreign mono text={each.id} />{each.id === own.value?.id && <> <span class="badge">this browser</span></>}</> },
    { title: "Browser", cell: (each) => <span title={each.userAgent}><Foreign text={browserName(each.userAgent)} />{each.sandboxId && <> <span class="badge">preview of {each.sandboxId}:{each.port}</span></>}</span> },
    { title: "Address", class: "id", cell: (each) => <Foreign text={each.address} /> },
    { title: "Owner", cell: (each) => <Foreign text={each.owner} /> },
    { title: "Role", cell: (each) => <span class="badge">{each.role}</span> },
    { title: "Made by", cell: (each) => (each.tokenId ? <>token <Foreign mono text={each.tokenId} /></> : <span class="muted">socket or main token</span>) },
    { title: "Last used", class: "time", cell: (each) => (each.lastUsedAt ? dateTime(each.lastUsedAt) : <span class="muted">not since the start</span>) },
    { title: "Expires", class: "time", cell: (each) => dateTime(each.expiresAt) },
    { title: "Actions", class: "actions", cell: (each) => (
      <Button size="small" kind="quiet" icon="trash" label={`Revoke ${each.id}`} onClick={async () => {
        if (await revoke(each)) await reload();
      }} />
    ) },
  ];
}

export function Sessions() {
  const { data, error, reload } = useResource(async () => (await client(ConsoleService).listSessions({})).sessions, [], refreshMs);
  return (
    <Panel title={data ? count(data.length, "session") : "Sessions"} actions={<CopyCli command={holt("console", "ls")} />}>
      <List label="Sessions" columns={columns(reload)} rows={data} error={data ? null : error} rowKey={(each) => each.id}
        empty={{ icon: "token", title: "No sessions" }} />
    </Panel>
  );
}
