// The page Volumes: files that belong to no sandbox.
import { SandboxService, type Sandbox } from "@gen/sandbox_pb";
import { VolumeService, type UnrecordedVolume, type Volume } from "@gen/volume_pb";
import { useState } from "preact/hooks";
import { canWrite, isAdmin, session } from "../../api/session";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { useResource } from "../../lib/resource";
import { count } from "../../lib/text";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { confirm } from "../../ui/confirm";
import { Dialog } from "../../ui/dialog";
import { List, type Column } from "../../ui/list";
import { Field, Foreign, Panel } from "../../ui/parts";
import { SharedWith, ShareDialog } from "../../ui/share";
import { toast, toastError } from "../../ui/toast";

function NameDialog({ title, command, action, hint, run, onClose }: {
  title: string; command: (name: string) => string; action: string; hint: string;
  run: (name: string) => Promise<unknown>; onClose: () => void;
}) {
  const [name, setName] = useState("");
  const submit = async () => {
    try {
      await run(name.trim());
      onClose();
    } catch (error) {
      toastError(error, title);
    }
  };
  return (
    <Dialog title={title} onClose={onClose} onSubmit={() => submit()}
      actions={
        <>
          <CopyCli command={command(name.trim() || "NAME")} />
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary">{action}</Button>
        </>
      }>
      <Field label="Name" hint={hint}>
        {(id, describedBy) => (
          <input id={id} value={name} aria-describedby={describedBy} autocomplete="off" spellcheck={false}
            onInput={(event) => setName(event.currentTarget.value)} />
        )}
      </Field>
    </Dialog>
  );
}

function MountedIn({ volume, sandboxes }: { volume: Volume; sandboxes: Sandbox[] }) {
  const users = sandboxes.filter((each) => each.volumes.some((mount) => mount.volume === volume.id));
  if (users.length === 0) return <span class="muted">no sandbox</span>;
  return (
    <>{users.slice(0, 5).map((each, i) => (
      <span key={each.id}>{i > 0 && ", "}<a href={href("sandboxes", each.id)}><Foreign text={each.name || each.id} /></a></span>
    ))}{users.length > 5 && ` and ${users.length - 5} more`}</>
  );
}

async function remove(volume: Volume): Promise<boolean> {
  const isWanted = await confirm({
    title: `Remove the volume ${volume.name}?`,
    text: "The daemon refuses this while a sandbox in any state mounts it.",
    lost: ["All files of the volume"],
    action: "Remove",
  });
  if (!isWanted) return false;
  await client(VolumeService).remove({ volume: volume.id });
  toast(`The volume ${volume.name} was removed.`);
  return true;
}

function Unrecorded({ volumes, adopt }: { volumes: UnrecordedVolume[]; adopt: (volume: UnrecordedVolume) => void }) {
  return (
    <Panel title="Without a record">
      <p class="panel-body muted">The registry was lost or replaced by an older one. The daemon keeps these files.</p>
      <List label="Volumes without a record" rows={volumes} rowKey={(each) => each.id} empty={{ title: "None" }}
        columns={[
          { title: "Id", class: "id", cell: (each) => <Foreign mono text={each.id} /> },
          { title: "Of", cell: (each) => (each.isShared ? "a shared volume" : "a sandbox") },
          { title: "Processes", cell: (each) => (each.isRunning ? "still run" : "none") },
          { title: "Actions", class: "actions", cell: (each) => <Button size="small" onClick={() => adopt(each)}>Adopt</Button> },
        ]} />
    </Panel>
  );
}

export default function VolumesPage() {
  const [isMaking, setMaking] = useState(false);
  const [shared, setShared] = useState<Volume | null>(null);
  const [adopted, setAdopted] = useState<UnrecordedVolume | null>(null);
  const { data, error, reload } = useResource(async () => {
    const [found, { sandboxes }] = await Promise.all([client(VolumeService).list({}), client(SandboxService).list({})]);
    return { ...found, sandboxes };
  });
  const mayChange = (each: Volume) => canWrite.value && (isAdmin.value || each.owner === session.value?.owner);
  const columns: Column<Volume>[] = [
    { title: "Name", cell: (each) => <Foreign text={each.name} /> },
    { title: "Id", class: "id", cell: (each) => <Foreign mono text={each.id} /> },
    { title: "Owner", cell: (each) => <Foreign text={each.owner} /> },
    { title: "Mounted in", cell: (each) => <MountedIn volume={each} sandboxes={data?.sandboxes ?? []} /> },
    { title: "Shared with", cell: (each) => <SharedWith owners={each.sharedWith} isPublic={each.public} /> },
    { title: "Actions", class: "actions", cell: (each) => mayChange(each) && (
      <>
        <Button size="small" onClick={() => setShared(each)}>Share</Button>
        <Button size="small" kind="quiet" icon="trash" label={`Remove ${each.name}`} onClick={async () => {
          if (await remove(each)) await reload();
        }} />
      </>
    ) },
  ];
  return (
    <>
      <header class="page-head">
        <h1 class="grow">Volumes</h1>
        <CopyCli command={holt("volume", "ls")} />
        {canWrite.value && <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>New volume</Button>}
      </header>
      <Panel title={data ? count(data.volumes.length, "volume") : "Volumes"}>
        <List label="Volumes" columns={columns} rows={data?.volumes} error={data ? null : error} rowKey={(each) => each.id}
          empty={{ icon: "volume", title: "No volumes", text: "A volume keeps files that several sandboxes can mount, and outlives them." }} />
      </Panel>
      {data && data.unrecorded.length > 0 && <Unrecorded volumes={data.unrecorded} adopt={setAdopted} />}
      {isMaking && <NameDialog title="New volume" action="Create" hint="Letters, digits, '.', '_' and '-'."
        command={(name) => holt("volume", "create", name)} onClose={() => setMaking(false)}
        run={async (name) => {
          await client(VolumeService).create({ name });
          await reload();
        }} />}
      {adopted && <NameDialog title={`Adopt ${adopted.id}`} action="Adopt"
        hint={adopted.isShared ? "A shared volume needs a name." : "Empty: the name that it had."}
        command={(name) => holt("volume", "adopt", adopted.id, "--name", name)} onClose={() => setAdopted(null)}
        run={async (name) => {
          await client(VolumeService).adopt({ volume: adopted.id, name });
          await reload();
        }} />}
      {shared && <ShareDialog kind="volume" name={shared.name} owners={shared.sharedWith} isPublic={shared.public}
        right="mount it read-only" onClose={() => setShared(null)}
        save={async (owners, isPublic) => {
          await client(VolumeService).share({ volume: shared.id, owners, public: isPublic });
          await reload();
        }} />}
    </>
  );
}
