// The page Templates: what sandboxes are created from.
import { SandboxService } from "@gen/sandbox_pb";
import { TemplateService, type Template } from "@gen/template_pb";
import { useState } from "preact/hooks";
import { canWrite, isAdmin, session } from "../../api/session";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { useResource } from "../../lib/resource";
import { bytes, count, dateTime } from "../../lib/text";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { confirm } from "../../ui/confirm";
import { Dialog } from "../../ui/dialog";
import { List, type Column } from "../../ui/list";
import { Field, Foreign, Loading, Panel } from "../../ui/parts";
import { SharedWith, ShareDialog } from "../../ui/share";
import { toast, toastError } from "../../ui/toast";

// Names are unique for each owner; that of another owner needs both.
function handle(template: Template): string {
  return template.ownerName && template.ownerName !== session.value?.owner
    ? `${template.ownerName}/${template.name}` : template.name;
}

function mayChange(template: Template): boolean {
  return canWrite.value && template.kind !== "host" && !template.owner &&
    (isAdmin.value || template.ownerName === session.value?.owner);
}

async function remove(template: Template): Promise<boolean> {
  const isWanted = await confirm({
    title: `Remove the template ${template.name}?`,
    text: "New sandboxes can no longer be created from it. The daemon refuses this while a sandbox uses it.",
    lost: [`${count(Number(template.files), "file")}, ${bytes(template.sizeBytes)}`],
    action: "Remove",
  });
  if (!isWanted) return false;
  await client(TemplateService).remove({ name: handle(template) });
  toast(`The template ${template.name} was removed.`);
  return true;
}

function CommitDialog({ onClose }: { onClose: (isMade: boolean) => void }) {
  const { data } = useResource(async () => (await client(SandboxService).list({})).sandboxes);
  const [sandbox, setSandbox] = useState("");
  const [name, setName] = useState("");
  const chosen = sandbox || data?.[0]?.id || "";
  const submit = async () => {
    try {
      await client(TemplateService).commit({ sandboxId: chosen, name: name.trim() });
      toast(`The template ${name.trim()} was created.`);
      onClose(true);
    } catch (error) {
      toastError(error, "The template was not created");
    }
  };
  return (
    <Dialog title="New template from a sandbox" onClose={() => onClose(false)} onSubmit={() => submit()}
      actions={
        <>
          <CopyCli command={holt("template", "commit", chosen || "ID", name.trim() || "NAME")} />
          <Button onClick={() => onClose(false)}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={!chosen || !name.trim()}>Create</Button>
        </>
      }>
      {data ? (
        <Field label="Sandbox" hint="The template gets its current files.">
          {(id, describedBy) => (
            <select id={id} value={chosen} aria-describedby={describedBy} onChange={(event) => setSandbox(event.currentTarget.value)}>
              {data.map((each) => <option key={each.id} value={each.id}>{each.name ? `${each.name} (${each.id})` : each.id}</option>)}
            </select>
          )}
        </Field>
      ) : <Loading />}
      <Field label="Name" hint="Small letters, digits, '.', '_' and '-'.">
        {(id, describedBy) => (
          <input id={id} value={name} aria-describedby={describedBy} autocomplete="off" spellcheck={false}
            onInput={(event) => setName(event.currentTarget.value)} />
        )}
      </Field>
      <p class="hint">Directories, archives and images are imported on the host itself: <code>holt template import NAME PATH</code>.</p>
    </Dialog>
  );
}

function columns(reload: () => Promise<void>, share: (template: Template) => void): Column<Template>[] {
  return [
    { title: "Name", cell: (each) => <><Foreign text={each.name} />{each.owner && <div class="muted"><Foreign text={each.owner} /></div>}</> },
    { title: "Owner", cell: (each) => <Foreign text={each.ownerName} /> },
    { title: "Kind", cell: (each) => <span class="badge">{each.kind}</span> },
    { title: "Size", class: "number", cell: (each) => (each.sizeBytes ? bytes(each.sizeBytes) : "–") },
    { title: "Files", class: "number", cell: (each) => (each.files ? Number(each.files).toLocaleString("en") : "–") },
    { title: "Created", class: "time", cell: (each) => (each.createdAt ? dateTime(Number(each.createdAt) * 1000) : "–") },
    { title: "Shared with", cell: (each) => <SharedWith owners={each.sharedWith} isPublic={each.public} /> },
    { title: "Actions", class: "actions", cell: (each) => mayChange(each) && (
      <>
        <Button size="small" onClick={() => share(each)}>Share</Button>
        <Button size="small" kind="quiet" icon="trash" label={`Remove ${each.name}`}
          onClick={async () => {
            if (await remove(each)) await reload();
          }} />
      </>
    ) },
  ];
}

export default function TemplatesPage() {
  const [isAll, setAll] = useState(false);
  const [isMaking, setMaking] = useState(false);
  const [shared, setShared] = useState<Template | null>(null);
  const { data, error, reload } = useResource(async () => (await client(TemplateService).list({ all: isAll })).templates, [isAll]);
  return (
    <>
      <header class="page-head">
        <h1 class="grow">Templates</h1>
        <CopyCli command={holt("template", "ls", isAll && "--all")} />
        {canWrite.value && <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>New template</Button>}
      </header>
      <Panel title={data ? count(data.length, "template") : "Templates"} actions={
        <label class="check-row">
          <input type="checkbox" checked={isAll} onChange={(event) => setAll(event.currentTarget.checked)} /> Internal ones
        </label>
      }>
        <List label="Templates" columns={columns(reload, setShared)} rows={data} error={data ? null : error}
          rowKey={(each) => `${each.ownerName}/${each.name}`} empty={{ icon: "template", title: "No templates" }} />
      </Panel>
      {isMaking && <CommitDialog onClose={(isMade) => {
        setMaking(false);
        if (isMade) void reload();
      }} />}
      {shared && <ShareDialog kind="template" name={handle(shared)} owners={shared.sharedWith} isPublic={shared.public}
        right="create sandboxes from it" onClose={() => setShared(null)}
        save={async (owners, isPublic) => {
          await client(TemplateService).share({ name: handle(shared), owners, public: isPublic });
          await reload();
        }} />}
    </>
  );
}
