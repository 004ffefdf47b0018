// The live table of sandboxes.
import type { Sandbox } from "@gen/sandbox_pb";
import { useComputed, useSignal } from "@preact/signals";
import { CreateButton } from "./create_button";
import { canWrite } from "../../api/session";
import { holt } from "../../lib/cli";
import { bytes, count, dateTime, duration, millis } from "../../lib/text";
import { href, query, setQuery } from "../../router";
import { actionNames, actions, isOffered, nameOf, runAction, type ActionName } from "../../store/actions";
import { isLoaded, listError, sandboxes, useSandboxes } from "../../store/sandboxes";
import { now } from "../../store/time";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { Icon } from "../../ui/icons";
import { Empty, Foreign, Labels, Loading, Problem, State } from "../../ui/parts";
import { Table, type Column, type Sort } from "../../ui/table";
import { groupOf, groups, listWords, matcher, sorted, type Group } from "./select";
import { stats, useStats } from "./stats";

function Name({ sandbox }: { sandbox: Sandbox }) {
  return (
    <a class="name" href={href("sandboxes", sandbox.id)}>
      {sandbox.name ? <Foreign text={sandbox.name} /> : <span class="mono">{sandbox.id}</span>}
      {sandbox.name && <span class="mono name-id">{sandbox.id}</span>}
    </a>
  );
}

function Cpu({ id }: { id: string }) {
  const found = stats.value.get(id);
  return found?.cpuMillis === undefined ? null : <>{(found.cpuMillis / 1000).toFixed(2)}</>;
}

function Memory({ id }: { id: string }) {
  const found = stats.value.get(id);
  return found && found.memoryBytes > 0n ? <>{bytes(found.memoryBytes)}</> : null;
}

function Age({ sandbox }: { sandbox: Sandbox }) {
  return <span title={dateTime(sandbox.createdAt)}>{duration(now.value - millis(sandbox.createdAt))}</span>;
}

function Expires({ sandbox }: { sandbox: Sandbox }) {
  if (!sandbox.expiresAt) return null;
  const title = `${dateTime(sandbox.expiresAt)}: ${sandbox.expireAction || "kill"}`;
  return <span title={title}>{duration(millis(sandbox.expiresAt) - now.value)}</span>;
}

const columns: Column<Sandbox>[] = [
  { id: "name", title: "Name", width: "minmax(150px, 2fr)", canSort: true, cell: (row) => <Name sandbox={row} /> },
  { id: "state", title: "State", width: "112px", canSort: true, cell: (row) => <State state={row.state} /> },
  { id: "template", title: "Template", width: "minmax(80px, 1fr)", canSort: true, cell: (row) => <Foreign text={row.template} /> },
  { id: "owner", title: "Owner", width: "minmax(70px, 0.7fr)", canSort: true, cell: (row) => <Foreign text={row.owner} /> },
  { id: "labels", title: "Labels", width: "minmax(90px, 1.5fr)", cell: (row) => <Labels labels={row.labels} /> },
  { id: "cpu", title: "CPUs", width: "64px", isNumber: true, cell: (row) => <Cpu id={row.id} /> },
  { id: "memory", title: "Memory", width: "88px", isNumber: true, cell: (row) => <Memory id={row.id} /> },
  { id: "turns", title: "Turns", width: "64px", isNumber: true, canSort: true, cell: (row) => row.turns || null },
  { id: "age", title: "Age", width: "76px", isNumber: true, canSort: true, cell: (row) => <Age sandbox={row} /> },
  { id: "expires", title: "Expires in", width: "88px", isNumber: true, canSort: true, cell: (row) => <Expires sandbox={row} /> },
];

const labelOf: Record<Group, string> = { all: "All", active: "Active", paused: "Paused", stopped: "Stopped", other: "Other" };

function readSort(): Sort {
  const [column = "age", direction] = (query.value.get("sort") ?? "age").split("-");
  return { column, isDown: direction === "down" };
}

function readGroup(): Group {
  return groups.find((each) => each === query.value.get("state")) ?? "all";
}

function Groups({ counts }: { counts: Record<Group, number> }) {
  return (
    <div class="groups" role="group" aria-label="State">
      {groups.filter((each) => each !== "other" || counts.other > 0).map((each) => (
        <button key={each} type="button" class="group" aria-pressed={readGroup() === each}
          onClick={() => setQuery({ state: each === "all" ? null : each })}>
          {labelOf[each]} <span class="group-count">{counts[each]}</span>
        </button>
      ))}
    </div>
  );
}

function Bulk({ chosen, onDone }: { chosen: Sandbox[]; onDone: () => void }) {
  const progress = useSignal<string | null>(null);
  const run = async (name: ActionName) => {
    const wasWanted = await runAction(name, chosen, (done, all) => {
      progress.value = `${actions[name].label}: ${done} of ${all}`;
    });
    progress.value = null;
    if (wasWanted && name === "destroy") onDone();
  };
  return (
    <div class="bulk" role="group" aria-label="Actions on the selection">
      <strong>{chosen.length} selected</strong>
      {actionNames.map((name) => {
        const fitting = chosen.filter((each) => isOffered(name, each)).length;
        return fitting > 0 && (
          <Button key={name} size="small" icon={actions[name].icon} kind={name === "destroy" ? "risky" : "plain"}
            disabled={progress.value !== null} onClick={() => run(name)}>
            {fitting === chosen.length ? actions[name].label : `${actions[name].label} ${fitting}`}
          </Button>
        );
      })}
      <Button size="small" kind="quiet" onClick={onDone}>Clear</Button>
      <span class="muted" role="status">{progress.value}</span>
    </div>
  );
}

export function Sandboxes() {
  useSandboxes();
  const onView = useStats();
  const selected = useSignal<ReadonlySet<string>>(new Set());
  const text = query.value.get("q") ?? "";
  const group = readGroup();
  const sort = readSort();
  const matching = useComputed(() => [...sandboxes.value.values()].filter(matcher(query.value.get("q") ?? "")));
  const counts = useComputed(() => {
    const result: Record<Group, number> = { all: 0, active: 0, paused: 0, stopped: 0, other: 0 };
    for (const each of matching.value) {
      result.all++;
      result[groupOf(each.state)]++;
    }
    return result;
  });
  const rows = useComputed(() => {
    const wanted = readGroup();
    const shown = wanted === "all" ? matching.value : matching.value.filter((each) => groupOf(each.state) === wanted);
    return sorted(shown, readSort());
  });
  const owners = useComputed(() => new Set([...sandboxes.value.values()].map((each) => each.owner)).size);
  const chosen = [...selected.value].map((id) => sandboxes.value.get(id)).filter((each) => each !== undefined);
  const shownColumns = owners.value > 1 ? columns : columns.filter((each) => each.id !== "owner");

  return (
    <section class="panel sandboxes" aria-label="List of sandboxes">
      <header class="panel-head toolbar">
        <h2>Sandboxes</h2>
        <div class="search">
          <Icon name="search" />
          <input type="search" aria-label="Filter by name, id, template or label" placeholder="Name, id, template, key=value"
            value={text} onInput={(event) => setQuery({ q: event.currentTarget.value })} />
        </div>
        <Groups counts={counts.value} />
        <span class="grow" />
        <CopyCli command={holt("ls", ...listWords(text, group))} small />
        {canWrite.value && <CreateButton />}
      </header>
      {canWrite.value && chosen.length > 0 && <Bulk chosen={chosen} onDone={() => (selected.value = new Set())} />}
      {listError.value != null && <Problem error={listError.value} />}
      {!isLoaded.value && listError.value == null ? <Loading /> : (
        <Table label={`Sandboxes, ${count(rows.value.length, "row")}`} columns={shownColumns} rows={rows.value}
          keyOf={(row) => row.id} nameOf={nameOf} sort={sort} onView={onView}
          onSort={({ column, isDown }) => setQuery({ sort: isDown ? `${column}-down` : column })}
          {...(canWrite.value && { selected: selected.value, onSelect: (next: Set<string>) => (selected.value = next) })}
          empty={
            <Empty icon="box" title={text || group !== "all" ? "No sandbox matches" : "No sandboxes yet"}>
              {text || group !== "all" ? null : <>Create one here, or with <code>holt create</code>.</>}
            </Empty>
          } />
      )}
    </section>
  );
}
