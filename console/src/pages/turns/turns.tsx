// The tab with the history of a sandbox's files: the tree of snapshots, comparisons, rollback, fork.
import { useEffect, useMemo, useState } from "preact/hooks";
import { SandboxService, type Sandbox } from "@gen/sandbox_pb";
import { SnapshotService, type Snapshot } from "@gen/snapshot_pb";
import type { TabProps } from "..";
import { epoch } from "../../api/connection";
import { canWrite } from "../../api/session";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { useResource } from "../../lib/resource";
import { bytes, count, millis, plain } from "../../lib/text";
import { query, setQuery } from "../../router";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { confirm } from "../../ui/confirm";
import { Loading, Problem } from "../../ui/parts";
import { toast } from "../../ui/toast";
import { ForkDialog, NoteDialog, RollbackDialog, SnapshotDialog } from "./actions";
import { readChanges, summaryOf, type Comparison, type Summary } from "./changes";
import { DiffView } from "./diffview";
import { now, stateName, template, type Node } from "./graph";
import { GraphView } from "./graphview";
import { Summaries } from "./summaries";

type Ask = { kind: "rollback"; snapshot: Snapshot } | { kind: "fork"; from: string } | { kind: "snapshot" } | { kind: "note"; snapshot: Snapshot };

// The current files as the older state, which only another sandbox can be compared with.
const nowWord = "@";

// What the address names: from and to, each a state; with: the sandbox of `to`.
function useChoice(snapshots: readonly Snapshot[], base: string) {
  const exists = (name: string) => name === template || snapshots.some((each) => each.name === name);
  const other = query.value.get("with") ?? "";
  const wantedTo = query.value.get("to") ?? now;
  const to = other || exists(wantedTo) ? wantedTo : now;
  const parent = to === now ? base : snapshots.find((each) => each.name === to)?.parent || template;
  const wantedFrom = query.value.get("from");
  if (other && wantedFrom === nowWord) return { from: now, to, other };
  const from = wantedFrom !== null && exists(wantedFrom) ? wantedFrom : exists(parent) ? parent : template;
  return { from, to, other };
}

export default function Turns({ sandbox }: TabProps) {
  const { data, error, reload } = useResource(
    () => client(SnapshotService).list({ sandboxId: sandbox.id }), [sandbox.id]);
  useEffect(() => void reload(), [sandbox]);
  if (error && !data) return <Problem error={error} />;
  if (!data) return <Loading />;
  return <History key={sandbox.id} sandbox={sandbox} snapshots={data.snapshots} base={data.base || template} onChange={reload} />;
}

interface HistoryProps {
  sandbox: Sandbox;
  snapshots: Snapshot[];
  base: string;
  onChange: () => Promise<void>;
}

function History({ sandbox, snapshots, base, onChange }: HistoryProps) {
  const summaries = useMemo(() => new Summaries(sandbox.id), [sandbox.id]);
  const [ask, setAsk] = useState<Ask | null>(null);
  const [current, setCurrent] = useState<Summary | "failed" | undefined>(undefined);
  const [version, setVersion] = useState(0);
  const { from, to, other } = useChoice(snapshots, base);
  useEffect(() => () => summaries.stop(), [summaries]);
  useEffect(() => {
    const ending = new AbortController();
    readChanges({ sandboxId: sandbox.id, from: base, to: now, toSandboxId: "" }, ending.signal)
      .then((found) => setCurrent(summaryOf(found)), () => ending.signal.aborted || setCurrent("failed"));
    return () => ending.abort();
  }, [sandbox.id, base, version, snapshots, epoch.value]);

  const select = (node: Node) => setQuery({ to: node.name, from: null, with: null });
  const refresh = async () => {
    await onChange();
    setVersion((before) => before + 1);
  };
  const endTurn = async () => {
    const { snapshot } = await client(SnapshotService).turnComplete({ sandboxId: sandbox.id });
    toast(`Ended the turn: ${snapshot?.name ?? ""}`);
    await refresh();
  };
  const remove = async (snapshot: Snapshot) => {
    const isWanted = await confirm({
      title: `Remove ${plain(snapshot.name)}?`,
      text: "The current files and all other snapshots stay as they are.",
      lost: [`The state of the files of ${new Date(millis(snapshot.createdAt)).toLocaleString()}: no rollback, fork or comparison can use it any more`],
      action: "Remove",
    });
    if (!isWanted) return;
    await client(SnapshotService).remove({ sandboxId: sandbox.id, snapshot: snapshot.name });
    toast(`Removed ${snapshot.name}`);
    setQuery({ to: null, from: null });
    await refresh();
  };

  const shown = snapshots.find((each) => each.name === to && !other) ?? null;
  const total = snapshots.length;
  const of: Comparison = { sandboxId: sandbox.id, from, to, toSandboxId: other };
  return (
    <div class="turns">
      <section class="panel turns-side" aria-label="Snapshots">
        <header class="panel-head">
          <h2>{count(total, "snapshot")}</h2>
          <div class="row">
            {canWrite.value && <Button size="small" icon="plus" label="New named snapshot" onClick={() => setAsk({ kind: "snapshot" })} />}
            {canWrite.value && <Button size="small" kind="primary" icon="check" onClick={endTurn}>End turn</Button>}
          </div>
        </header>
        <GraphView snapshots={snapshots} base={base} summaries={summaries} current={current} from={from} to={other ? "\0" : to} onSelect={select}
          onCompare={(name) => name !== now && setQuery({ from: name })} />
        <footer class="hint turns-foot">{sandbox.maxSnapshots > 0
          ? `The latest ${count(sandbox.maxSnapshots, "turn")} are kept; named snapshots stay.`
          : "All snapshots are kept."}</footer>
      </section>
      <section class="panel turns-main" aria-label="Comparison">
        <Head sandbox={sandbox} snapshots={snapshots} from={from} to={to} other={other} onRefresh={refresh} />
        {!other && canWrite.value && (
          <div class="turns-actions" role="group" aria-label="Actions">
            <span class="muted grow cut">{shown ? `${plain(shown.name)} · ${bytes(shown.spaceUsed)}` : plain(stateName(to))}</span>
            {shown && <Button size="small" icon="process" onClick={() => setAsk({ kind: "rollback", snapshot: shown })}>Roll back to it</Button>}
            {to !== template && <Button size="small" icon="fork" onClick={() => setAsk({ kind: "fork", from: to })}>Fork</Button>}
            {shown && <Button size="small" onClick={() => setAsk({ kind: "note", snapshot: shown })}>Name</Button>}
            {shown && <Button size="small" kind="quiet" icon="trash" label={`Remove ${plain(shown.name)}`} onClick={() => remove(shown)} />}
          </div>
        )}
        <DiffView of={of} version={to === now || other ? version : 0} />
      </section>
      {ask?.kind === "rollback" && <RollbackDialog sandbox={sandbox} snapshot={ask.snapshot} snapshots={snapshots} onClose={() => {
        setAsk(null);
        void refresh();
      }} />}
      {ask?.kind === "fork" && <ForkDialog sandbox={sandbox} from={ask.from} onClose={() => setAsk(null)} />}
      {ask?.kind === "note" && <NoteDialog sandbox={sandbox} snapshot={ask.snapshot} onClose={() => {
        setAsk(null);
        void refresh();
      }} />}
      {ask?.kind === "snapshot" && <SnapshotDialog sandbox={sandbox} onClose={() => {
        setAsk(null);
        void refresh();
      }} />}
    </div>
  );
}

interface HeadProps {
  sandbox: Sandbox;
  snapshots: readonly Snapshot[];
  from: string;
  to: string;
  other: string;
  onRefresh: () => Promise<void>;
}

function States({ label, value, snapshots, hasNow, onChange }: {
  label: string; value: string; snapshots: readonly Snapshot[]; hasNow: boolean; onChange: (name: string) => void;
}) {
  return (
    <div class="compare-state">
      <span aria-hidden="true">{label}</span>
      <select aria-label={label} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {hasNow && <option value={now}>{stateName(now)}</option>}
        {[...snapshots].reverse().map((each) => (
          <option key={each.name} value={each.name}>{plain(each.note ? `${each.name}: ${each.note}` : each.name)}</option>
        ))}
        <option value={template}>{stateName(template)}</option>
      </select>
    </div>
  );
}

// The empty word stands for the current files.
function diffCommand(id: string, from: string, to: string, other: string): string {
  return holt("diff", ...(other ? ["--with", other] : []), id, ...(from === now && to === now ? [] : [from]), ...(to === now ? [] : [to]));
}

const mostPeers = 100;

// The sandboxes to choose from, the chosen one always among them.
function shownPeers(peers: Sandbox[], word: string, other: string): Sandbox[] {
  const wanted = word.trim().toLowerCase();
  const fits = (each: Sandbox) => `${each.name} ${each.id} ${Object.entries(each.labels).map((pair) => pair.join("=")).join(" ")}`.toLowerCase().includes(wanted);
  const found = peers.filter((each) => each.id !== other && fits(each)).slice(0, mostPeers);
  return [...peers.filter((each) => each.id === other), ...found];
}

// Which two states are compared. The newer one may be that of another sandbox of the same template.
function Head({ sandbox, snapshots, from, to, other, onRefresh }: HeadProps) {
  const others = useResource(() => client(SandboxService).list({}), [sandbox.id]);
  const theirs = useResource(
    () => (other ? client(SnapshotService).list({ sandboxId: other }) : Promise.resolve(null)), [other]);
  const peers = (others.data?.sandboxes ?? []).filter((each) => each.id !== sandbox.id && each.template === sandbox.template);
  const [word, setWord] = useState("");
  const shown = shownPeers(peers, word, other);
  const targets = other ? theirs.data?.snapshots ?? [] : snapshots;
  return (
    <header class="compare">
      <States label="From" value={from} snapshots={snapshots} hasNow={other !== ""} onChange={(name) => setQuery({ from: name || nowWord, to })} />
      <span class="compare-arrow" aria-hidden="true">→</span>
      <States label="To" value={to} snapshots={targets} hasNow onChange={(name) => setQuery({ to: name, from: from || nowWord })} />
      {peers.length > 0 && (
        <div class="compare-state">
          <span aria-hidden="true">of</span>
          <select aria-label="Sandbox to compare with" value={other} onChange={(event) => setQuery({ with: event.currentTarget.value, to: null, from: event.currentTarget.value ? nowWord : null })}>
            <option value="">this sandbox</option>
            {shown.map((each) => <option key={each.id} value={each.id}>{plain(each.name || each.id)}</option>)}
          </select>
          {peers.length > mostPeers && <input type="search" class="compare-search" aria-label="Find a sandbox to compare with"
            placeholder={`Find one of ${peers.length.toLocaleString("en")}`} value={word} onInput={(event) => setWord(event.currentTarget.value)} />}
        </div>
      )}
      <span class="grow" />
      <CopyCli command={diffCommand(sandbox.id, from, to, other)} small />
      <Button size="small" kind="quiet" icon="refresh" label="Compare again" onClick={onRefresh} />
    </header>
  );
}
