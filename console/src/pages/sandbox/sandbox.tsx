// The page of one sandbox: header, tabs, and the tab that the address names.
import { SandboxService, type Sandbox } from "@gen/sandbox_pb";
import { useEffect, useState } from "preact/hooks";
import { tabs, type PageProps } from "..";
import { epoch } from "../../api/connection";
import { client } from "../../api/transport";
import { href, segments } from "../../router";
import { Lazy } from "../../ui/lazy";
import { Foreign, Loading, Problem, State } from "../../ui/parts";
import { Tabs } from "../../ui/tabs";

export default function SandboxPage({ params }: PageProps) {
  const id = params["id"] ?? "";
  const [sandbox, setSandbox] = useState<Sandbox | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    client(SandboxService).get({ sandboxId: id }).then((found) => setSandbox(found.sandbox ?? null), setError);
  }, [id, epoch.value]);
  if (error) return <Problem error={error} />;
  if (!sandbox) return <Loading />;
  const tab = tabs.find((each) => each.id === segments.value[2]) ?? tabs[0]!;
  return (
    <>
      <header class="page-head">
        <h1><Foreign text={sandbox.name || sandbox.id} /></h1>
        <State state={sandbox.state} />
      </header>
      <Tabs label="Parts of the sandbox" current={tab.id}
        tabs={tabs.map((each) => ({ id: each.id, label: each.label, href: href("sandboxes", id, each.id) }))} />
      <div class="tab-body">
        <Lazy key={tab.id} load={tab.load} props={{ sandbox }} />
      </div>
    </>
  );
}
