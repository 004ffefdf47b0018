// The page Owners: what each uses, and its ceilings. For admins.
import { OwnerService, type Owner } from "@gen/owner_pb";
import { useState } from "preact/hooks";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { useResource } from "../../lib/resource";
import { bytes, count, cpus } from "../../lib/text";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { confirm } from "../../ui/confirm";
import { Dialog } from "../../ui/dialog";
import { List, type Column } from "../../ui/list";
import { Field, Foreign, Panel } from "../../ui/parts";
import { toast, toastError } from "../../ui/toast";

const names = ["sandboxes", "memory", "cpus", "pids", "disk", "ttl", "runtimes", "runtime-min", "network"] as const;
const hints: Record<string, string> = {
  sandboxes: "their number", memory: "sum of the limits: 8G", cpus: "sum of the limits: 4", pids: "sum of the limits",
  disk: "sum of the quotas: 20G", ttl: "of each sandbox: 24h", runtimes: "native, bwrap", "runtime-min": "gvisor", network: "none, allow, open",
};

function ceiling(owner: Owner, name: string) {
  return owner.ceilings.find((each) => each.name === name);
}

function hasLimit(value: string): boolean {
  return value !== "" && value !== "none" && value !== "all";
}

function Use({ owner, name, used }: { owner: Owner; name: string; used: string }) {
  const value = ceiling(owner, name)?.value ?? "";
  return <>{used}{hasLimit(value) && <span class="muted"> of <Foreign text={value} /></span>}</>;
}

function CeilingDialog({ owner, onClose }: { owner: Owner | null; onClose: (isChanged: boolean) => void }) {
  const [name, setName] = useState(owner?.name ?? "");
  const own = (each: string) => {
    const found = owner && ceiling(owner, each);
    return found?.source === "command" ? found.value : "";
  };
  const [values, setValues] = useState<Record<string, string>>(() => Object.fromEntries(names.map((each) => [each, own(each)])));
  const settings = names.filter((each) => values[each] !== own(each)).map((each) => ({ name: each, value: (values[each] ?? "").trim() }));
  const command = holt("owner", "set", name || "OWNER",
    ...settings.flatMap(({ name: each, value }) => (value ? [`--${each}`, value] : ["--unset", each])));
  const submit = async () => {
    try {
      await client(OwnerService).set({ owner: name.trim(), settings });
      toast(`The ceilings of ${name.trim()} were set.`);
      onClose(true);
    } catch (error) {
      toastError(error, "The ceilings were not set");
    }
  };
  return (
    <Dialog wide title={owner ? `Ceilings of ${owner.name}` : "Ceilings of an owner"} onClose={() => onClose(false)} onSubmit={() => submit()}
      actions={
        <>
          <CopyCli command={command} />
          <Button onClick={() => onClose(false)}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={!name.trim() || settings.length === 0}>Set</Button>
        </>
      }>
      {!owner && (
        <Field label="Owner">
          {(id) => <input id={id} value={name} autocomplete="off" spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} />}
        </Field>
      )}
      <div class="fields">
        {names.map((each) => {
          const found = owner && ceiling(owner, each);
          const base = found && found.source !== "command" && hasLimit(found.value) ? `${found.value} (${found.source})` : "no ceiling";
          return (
            <Field key={each} label={each} hint={hints[each]}>
              {(id, describedBy) => (
                <input id={id} value={values[each] ?? ""} placeholder={base} aria-describedby={describedBy} autocomplete="off" spellcheck={false}
                  onInput={(event) => setValues({ ...values, [each]: event.currentTarget.value })} />
              )}
            </Field>
          );
        })}
      </div>
      <p class="hint">An empty field is the ceiling of holt.conf. A lower ceiling ends nothing: it applies to later requests.</p>
    </Dialog>
  );
}

async function remove(owner: Owner): Promise<boolean> {
  const isWanted = await confirm({
    title: `Remove the ceilings of ${owner.name}?`,
    text: "Those of holt.conf apply again. The daemon refuses this while the owner has sandboxes.",
    action: "Remove",
  });
  if (!isWanted) return false;
  await client(OwnerService).remove({ owner: owner.name });
  toast(`The ceilings of ${owner.name} were removed.`);
  return true;
}

export default function OwnersPage() {
  const { data, error, reload } = useResource(async () => (await client(OwnerService).list({})).owners, [], 10_000);
  const [edited, setEdited] = useState<Owner | "new" | null>(null);
  const columns: Column<Owner>[] = [
    { title: "Owner", cell: (each) => <strong><Foreign text={each.name} /></strong> },
    { title: "Sandboxes", class: "number", cell: (each) => <Use owner={each} name="sandboxes" used={String(each.usage?.sandboxes ?? 0)} /> },
    { title: "Memory", class: "number", cell: (each) => <Use owner={each} name="memory" used={bytes(each.usage?.memoryBytes ?? 0)} /> },
    { title: "CPUs", class: "number", cell: (each) => <Use owner={each} name="cpus" used={cpus(Number(each.usage?.cpuMillis ?? 0))} /> },
    { title: "Processes", class: "number", cell: (each) => <Use owner={each} name="pids" used={Number(each.usage?.pids ?? 0).toLocaleString("en")} /> },
    { title: "Storage", class: "number", cell: (each) => <Use owner={each} name="disk" used={bytes(each.usage?.diskBytes ?? 0)} /> },
    { title: "Time to live", cell: (each) => <Foreign text={ceiling(each, "ttl")?.value || "none"} /> },
    { title: "Actions", class: "actions", cell: (each) => (
      <>
        <Button size="small" label={`Ceilings of ${each.name}`} onClick={() => setEdited(each)}>Ceilings</Button>
        {each.ceilings.some(({ source }) => source === "command") && (
          <Button size="small" kind="quiet" icon="trash" label={`Remove the ceilings of ${each.name}`} onClick={async () => {
            if (await remove(each)) await reload();
          }} />
        )}
      </>
    ) },
  ];
  return (
    <>
      <header class="page-head">
        <h1 class="grow">Owners</h1>
        <CopyCli command={holt("owner", "ls")} />
        <Button kind="primary" icon="plus" onClick={() => setEdited("new")}>Set ceilings</Button>
      </header>
      <Panel title={data ? count(data.length, "owner") : "Owners"}>
        <List label="Owners" columns={columns} rows={data} error={data ? null : error} rowKey={(each) => each.name}
          empty={{ title: "No owners", text: "An owner exists while it has objects, tokens or ceilings." }} />
      </Panel>
      {edited && <CeilingDialog owner={edited === "new" ? null : edited} onClose={(isChanged) => {
        setEdited(null);
        if (isChanged) void reload();
      }} />}
    </>
  );
}
