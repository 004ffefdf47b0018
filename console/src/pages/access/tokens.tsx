// The part Tokens of the page Access.
import { TokenService, type Token } from "@gen/token_pb";
import { useState } from "preact/hooks";
import { session } from "../../api/session";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { useResource } from "../../lib/resource";
import { count, dateTime } from "../../lib/text";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { confirm } from "../../ui/confirm";
import { List, type Column } from "../../ui/list";
import { Foreign, Labels, Panel } from "../../ui/parts";
import { toast } from "../../ui/toast";
import { CreateToken, ShowSecret } from "./create";

async function remove(token: Token): Promise<boolean> {
  const isWanted = await confirm({
    title: `Revoke the token ${token.label || token.id}?`,
    text: "Clients with this token are refused from now on. Its running calls and streams end within a second, and so do the sessions of the console that were made with it.",
    action: "Revoke",
  });
  if (!isWanted) return false;
  await client(TokenService).remove({ id: token.id });
  toast(`The token ${token.label || token.id} was revoked.`);
  return true;
}

function columns(reload: () => Promise<void>): Column<Token>[] {
  return [
    { title: "Note", cell: (each) => (each.label ? <Foreign text={each.label} /> : <span class="muted">none</span>) },
    { title: "Id", class: "id", cell: (each) => <Foreign mono text={each.id} /> },
    { title: "Owner", cell: (each) => <Foreign text={each.owner} /> },
    { title: "Role", cell: (each) => <span class="badge">{each.role}</span> },
    { title: "Label scope", cell: (each) => (Object.keys(each.scope).length > 0 ? <Labels labels={each.scope} /> : <span class="muted">none</span>) },
    { title: "Created", class: "time", cell: (each) => dateTime(each.createdAt) },
    { title: "Expires", class: "time", cell: (each) => dateTime(each.expiresAt) },
    { title: "Last used", class: "time", cell: (each) => (each.lastUsedAt ? dateTime(each.lastUsedAt) : <span class="muted">not since the start</span>) },
    { title: "Actions", class: "actions", cell: (each) => (
      <Button size="small" kind="quiet" icon="trash" label={`Revoke ${each.label || each.id}`} onClick={async () => {
        if (await remove(each)) await reload();
      }} />
    ) },
  ];
}

export function Tokens() {
  const { data, error, reload } = useResource(async () => (await client(TokenService).list({})).tokens);
  const [isMaking, setMaking] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <>
      <Panel title={data ? count(data.length, "token") : "Tokens"} actions={
        <>
          <CopyCli command={holt("token", "ls")} />
          <Button kind="primary" size="small" icon="plus" onClick={() => setMaking(true)}>New token</Button>
        </>
      }>
        <List label="Tokens" columns={columns(reload)} rows={data} error={data ? null : error} rowKey={(each) => each.id}
          empty={{ icon: "token", title: "No tokens", text: "The token in the daemon's state directory is not listed: it always exists." }} />
      </Panel>
      {isMaking && <CreateToken owner={session.value?.owner ?? ""} onClose={() => setMaking(false)} onMade={(made) => {
        setMaking(false);
        setSecret(made);
        void reload();
      }} />}
      {secret && <ShowSecret secret={secret} onClose={() => setSecret(null)} />}
    </>
  );
}
