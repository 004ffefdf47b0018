// The page of one sandbox: header, tabs, and the tab that the address names.
import type { Sandbox } from "@gen/sandbox_pb";
import { tabs, type PageProps } from "..";
import { canWrite } from "../../api/session";
import { holt } from "../../lib/cli";
import { dateTime, duration, millis, plain } from "../../lib/text";
import { href, navigate, segments } from "../../router";
import { actionNames, actions, isOffered, runAction } from "../../store/actions";
import { useSandbox } from "../../store/sandbox";
import { now } from "../../store/time";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { Copy } from "../../ui/copy";
import { Icon } from "../../ui/icons";
import { Lazy } from "../../ui/lazy";
import { Empty, Foreign, Labels, Loading, Problem, State } from "../../ui/parts";
import { Tabs } from "../../ui/tabs";

function Facts({ sandbox }: { sandbox: Sandbox }) {
  const ends = sandbox.expireAction === "pause" ? "pauses" : sandbox.expireAction === "stop" ? "stops" : "is destroyed";
  return (
    <div class="sandbox-facts">
      {sandbox.name && <span class="mono">{sandbox.id}</span>}
      <span><span class="muted">template</span> <Foreign text={sandbox.template} /></span>
      <span title={dateTime(sandbox.createdAt)}>
        <span class="muted">created</span> {duration(now.value - millis(sandbox.createdAt))} ago
      </span>
      {sandbox.expiresAt && (
        <a class="expiry" title={dateTime(sandbox.expiresAt)} href={href("sandboxes", sandbox.id, "settings")}>
          <Icon name="clock" size={13} /> {ends} in {duration(millis(sandbox.expiresAt) - now.value)}
        </a>
      )}
      <Labels labels={sandbox.labels} />
    </div>
  );
}

function Header({ sandbox, onChange }: { sandbox: Sandbox; onChange: () => void }) {
  return (
    <header class="sandbox-head">
      <nav class="crumbs" aria-label="Path"><a href="#/">Sandboxes</a> <span aria-hidden="true">/</span></nav>
      <div class="page-head">
        <h1><Foreign text={sandbox.name || sandbox.id} /></h1>
        <Copy text={sandbox.id} label="Copy the id" />
        <CopyCli command={holt("inspect", sandbox.id)} small />
        <State state={sandbox.state} />
        <span class="grow" />
        {canWrite.value && (
          <div class="row" role="group" aria-label="Actions">
            {actionNames.filter((each) => isOffered(each, sandbox)).map((each) => (
              <Button key={each} icon={actions[each].icon} kind={each === "destroy" ? "risky" : "plain"}
                onClick={async () => {
                  const wasWanted = await runAction(each, [sandbox]);
                  if (wasWanted) onChange();
                }}>{actions[each].label}</Button>
            ))}
          </div>
        )}
      </div>
      <Facts sandbox={sandbox} />
      {sandbox.reason && <div class="problem warn"><Icon name="warning" /> {plain(sandbox.reason)}</div>}
    </header>
  );
}

export default function SandboxPage({ params }: PageProps) {
  const id = params["id"] ?? "";
  const { sandbox, error, isGone, refresh } = useSandbox(id);
  if (isGone) {
    return (
      <Empty icon="box" title="This sandbox was destroyed">
        <Button onClick={() => navigate("#/")}>Go to all sandboxes</Button>
      </Empty>
    );
  }
  if (!sandbox && error) return <><Problem error={error} /><a href="#/">Go to all sandboxes</a></>;
  if (!sandbox) return <Loading />;
  const tab = tabs.find((each) => each.id === segments.value[2]) ?? tabs[0]!;
  return (
    <div class="sandbox-page">
      <Header sandbox={sandbox} onChange={refresh} />
      {error ? <Problem error={error} /> : null}
      <Tabs label="Parts of the sandbox" current={tab.id}
        tabs={tabs.filter((each) => each.isFor?.(sandbox) ?? true).map((each) => ({ id: each.id, label: each.label, href: href("sandboxes", id, each.id) }))} />
      <div class="tab-body">
        <Lazy key={tab.id} load={tab.load} props={{ sandbox }} />
      </div>
    </div>
  );
}
