// The page Audit: search in the log, and verify its chain of hashes.
import { HostService, type AuditVerdict } from "@gen/host_pb";
import { useEffect, useState } from "preact/hooks";
import { epoch } from "../../api/connection";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { count, dateTime } from "../../lib/text";
import { href, query, setQuery } from "../../router";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { Icon } from "../../ui/icons";
import { List, type Column } from "../../ui/list";
import { Field, Foreign, Panel, Problem } from "../../ui/parts";
import { Fields } from "../events/fields";
import { nothing, search, type Line, type Search } from "./search";

const typingMs = 300;

const columns: Column<Line>[] = [
  { title: "Number", class: "number muted", cell: (each) => each.seq },
  { title: "Time", class: "time", cell: (each) => <time dateTime={each.time}>{dateTime(Date.parse(each.time) || 0)}</time> },
  { title: "Event", class: "time", cell: (each) => <strong><Foreign text={each.event} /></strong> },
  { title: "Sandbox", class: "id", cell: (each) => each.sandbox ? <a href={href("sandboxes", each.sandbox)}><Foreign mono text={each.sandbox} /></a> : "" },
  { title: "Owner", cell: (each) => each.owner ? <Foreign text={each.owner} /> : "" },
  { title: "Details", class: "wide", cell: (each) => <Fields fields={each.details} /> },
  { title: "Hash", class: "id", cell: (each) => <code class="muted" title={each.hash}>{each.hash.slice(0, 8)}</code> },
];

function useSearch(sandboxId: string, text: string): [Search, () => void] {
  const [state, setState] = useState<Search>(nothing);
  const [ending, setEnding] = useState<AbortController | null>(null);
  useEffect(() => {
    const mine = new AbortController();
    setEnding(mine);
    const timer = setTimeout(() => void search(sandboxId, text, mine.signal, setState), typingMs);
    return () => {
      clearTimeout(timer);
      mine.abort();
    };
  }, [sandboxId, text, epoch.value]);
  return [state, () => {
    ending?.abort();
    setState((now) => ({ ...now, isRunning: false }));
  }];
}

function Verdict({ verdict }: { verdict: AuditVerdict }) {
  return (
    <div class={`note ${verdict.inOrder ? "good" : "bad"}`} role="status">
      <Icon name={verdict.inOrder ? "check" : "warning"} />
      <div>
        {verdict.inOrder ? `The chain of hashes is intact: ${count(Number(verdict.lines), "line")}.`
          : <>The chain of hashes is broken after {count(Number(verdict.lines), "line")}: <Foreign text={verdict.problem} /></>}
      </div>
    </div>
  );
}

function Verify() {
  const [verdict, setVerdict] = useState<AuditVerdict | null>(null);
  const verify = async () => {
    setVerdict(null);
    for await (const { event } of client(HostService).audit({ verify: true }))
      if (event.case === "verdict") setVerdict(event.value);
  };
  return (
    <Panel title="Chain of hashes" actions={
      <>
        <CopyCli command={holt("audit", "--verify")} />
        <Button size="small" icon="check" onClick={() => verify()}>Verify</Button>
      </>
    }>
      <div class="panel-body">
        {verdict ? <Verdict verdict={verdict} /> : <p class="muted">
          Each line has a hash of itself and of the line before. The daemon reads the whole log and compares them.
        </p>}
      </div>
    </Panel>
  );
}

export default function AuditPage() {
  const words = query.value.get("q") ?? "";
  const sandbox = query.value.get("sandbox") ?? "";
  const [state, stop] = useSearch(sandbox.trim(), words);
  return (
    <>
      <header class="page-head"><h1>Audit</h1></header>
      <Verify />
      <Panel title={state.read > 0 || !state.isRunning ? `${state.found.toLocaleString("en")} of ${count(state.read, "line")}` : "Lines"} actions={
        <>
          {state.isRunning && <Button size="small" icon="stop" onClick={stop}>Stop</Button>}
          <CopyCli command={holt("audit", sandbox.trim() || null)} />
        </>
      }>
        <div class="panel-body filters">
          <Field label="Search">
            {(id) => <input id={id} type="search" value={words} placeholder="Words of a line"
              onInput={(event) => setQuery({ q: event.currentTarget.value })} />}
          </Field>
          <Field label="Sandbox">
            {(id) => <input id={id} value={sandbox} placeholder="Id or name" autocomplete="off" spellcheck={false}
              onInput={(event) => setQuery({ sandbox: event.currentTarget.value })} />}
          </Field>
        </div>
        {state.error ? <Problem error={state.error} /> : (
          <List label="Lines of the audit log, newest first" columns={columns} rowKey={(each) => String(each.seq)}
            rows={state.isRunning && state.lines.length === 0 ? undefined : state.lines}
            empty={{ icon: "audit", title: "No line matches" }} />
        )}
        {state.found > state.lines.length && <div class="panel-foot muted">The {state.lines.length} newest are shown.</div>}
      </Panel>
    </>
  );
}
