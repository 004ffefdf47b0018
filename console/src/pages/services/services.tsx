// The tab Services: servers in the sandbox, a preview of any HTTP port, and the forwards to the host.
import { PortService, type ForwardedPort } from "@gen/port_pb";
import { ProcessService, type ProcessInfo } from "@gen/process_pb";
import { useState } from "preact/hooks";
import type { TabProps } from "..";
import { canWrite } from "../../api/session";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { attempt, parseCount } from "../../lib/parse";
import { useResource } from "../../lib/resource";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { List, type Column } from "../../ui/list";
import { Field, Foreign, Panel, State } from "../../ui/parts";
import { forwards, startForward, type OwnForward } from "./forward";
import { openPreview } from "./preview";

const refreshMs = 3000;

function Preview({ sandboxId, port }: { sandboxId: string; port: number }) {
  if (!canWrite.value) return null;
  return (
    <Button size="small" icon="link" label={`Preview of port ${port} in a new tab`}
      onClick={() => openPreview(sandboxId, port)}>Preview</Button>
  );
}

function portOf(text: string): { port: number; error?: string } {
  const { value, error } = attempt(() => parseCount(text));
  if (error !== undefined) return { port: 0, error: "a port is a number from 1 to 65535" };
  if (value === undefined) return { port: 0 };
  return value >= 1 && value <= 65535 ? { port: value } : { port: 0, error: "a port is a number from 1 to 65535" };
}

function AnyPort({ sandbox }: TabProps) {
  const [text, setText] = useState("8000");
  const { port, error } = portOf(text);
  const isActive = sandbox.state === "active";
  return (
    <Panel title="Open a port" actions={<CopyCli command={holt("port", sandbox.id, String(port || 8000))} />}>
      <form class="panel-body" onSubmit={(event) => {
        event.preventDefault();
      }}>
        <div class="filters">
          <Field label="Port in the sandbox" error={error}>
            {(id, describedBy) => (
              <input id={id} inputMode="numeric" value={text} aria-describedby={describedBy} aria-invalid={error !== undefined}
                onInput={(event) => setText(event.currentTarget.value)} />
            )}
          </Field>
          <Button type="submit" kind="primary" icon="link" disabled={!port || !isActive}
            onClick={() => openPreview(sandbox.id, port)}>Preview in a new tab</Button>
          <Button icon="network" disabled={!port || !isActive}
            onClick={() => startForward(sandbox.id, port)}>Forward to the host</Button>
        </div>
        <p class="hint">
          A preview shows HTTP in a tab with a host name of its own, for this browser only.
          A forward listens on the host for any program and lasts until this page of the console is closed.
          {!isActive && " The sandbox is not active."}
        </p>
      </form>
    </Panel>
  );
}

function commandLine(process: ProcessInfo): string {
  return process.args.join(" ") + (process.argsTruncated ? " …" : "");
}

const restarts = ["never", "on failure", "always"];

function serviceColumns(sandboxId: string): Column<ProcessInfo>[] {
  return [
    { title: "Service", class: "wide", cell: (each) => (
      <a class="clamp" href={href("sandboxes", sandboxId, "processes")}><Foreign mono text={commandLine(each)} /></a>
    ) },
    { title: "Port", class: "number", cell: (each) => each.port },
    { title: "Address on the host", cell: (each) => each.address ? <Foreign mono text={each.address} /> : <span class="muted">none</span> },
    { title: "Restarts", cell: (each) => `${each.restarts} (${restarts[each.restart] ?? "never"})` },
    { title: "State", cell: (each) => <State state={each.ended ? "ended" : "running"} /> },
    { title: "Actions", class: "actions", cell: (each) => !each.ended && <Preview sandboxId={sandboxId} port={each.port} /> },
  ];
}

function Services({ sandbox }: TabProps) {
  const { data, error } = useResource(async () => {
    const { processes } = await client(ProcessService).list({ sandboxId: sandbox.id });
    return processes.filter((each) => each.port > 0);
  }, [sandbox.id, sandbox.state], refreshMs);
  return (
    <Panel title="Services" actions={<CopyCli command={holt("ps", sandbox.id)} />}>
      <List label="Services" columns={serviceColumns(sandbox.id)} rows={data} error={data ? null : error}
        rowKey={(each) => each.id}
        empty={{ icon: "network", title: "No services", text: <>Start one with <code>holt launch --port 8000 {sandbox.id} -- COMMAND</code>.</> }} />
    </Panel>
  );
}

function Forwards({ sandbox }: TabProps) {
  const own = forwards.value.filter((each) => each.sandboxId === sandbox.id);
  const { data, error } = useResource(async () => (await client(PortService).list({ sandboxId: sandbox.id })).ports,
    [sandbox.id, sandbox.state, own.length], refreshMs);
  const isOwn = (each: ForwardedPort): OwnForward | undefined => own.find(({ address }) => address === each.address);
  const columns: Column<ForwardedPort>[] = [
    { title: "Address on the host", cell: (each) => <Foreign mono text={each.address} /> },
    { title: "Port in the sandbox", class: "number", cell: (each) => each.port },
    { title: "Connections", class: "number", cell: (each) => each.connections },
    { title: "Opened by", cell: (each) => (isOwn(each) ? "this page" : "another client") },
    { title: "Actions", class: "actions", cell: (each) => (
      <>
        <Preview sandboxId={sandbox.id} port={each.port} />
        {isOwn(each) && <Button size="small" icon="close" label={`Close the forward of port ${each.port}`} onClick={() => isOwn(each)?.stop()} />}
      </>
    ) },
  ];
  return (
    <Panel title="Forwards" actions={<CopyCli command={holt("port", "ls", sandbox.id)} />}>
      <List label="Forwards" columns={columns} rows={data} error={data ? null : error}
        rowKey={(each) => each.address} empty={{ icon: "network", title: "No port is forwarded to the host" }} />
    </Panel>
  );
}

export default function ServicesTab({ sandbox }: TabProps) {
  return (
    <>
      {canWrite.value && <AnyPort sandbox={sandbox} />}
      <Services sandbox={sandbox} />
      <Forwards sandbox={sandbox} />
    </>
  );
}
