// The tree of snapshots: a drawing in lanes beside one row for each state.
import { useEffect, useMemo } from "preact/hooks";
import { bytes, dateTime, duration, millis, plain } from "../../lib/text";
import { now as time } from "../../store/time";
import { Window } from "../../ui/window";
import { layout, nodesOf, now, stateName, template, type Graph, type GraphRow, type Node } from "./graph";
import type { Summaries } from "./summaries";
import type { Summary } from "./changes";
import type { Snapshot } from "@gen/snapshot_pb";

const rowHeight = 46;
const laneWidth = 16;
const mostLanes = 12;
const colours = ["plot-1", "plot-2", "plot-3", "plot-4"];

interface Props {
  snapshots: readonly Snapshot[];
  base: string;
  summaries: Summaries;
  // Changes since the last snapshot.
  current: Summary | "failed" | undefined;
  from: string;
  to: string;
  onSelect: (node: Node) => void;
  // Compares with this state, keeping the newer one.
  onCompare: (name: string) => void;
}

function x(lane: number): number {
  return Math.min(lane, mostLanes) * laneWidth + 14;
}

// A line from the border of a row to its middle, or straight through.
function line(fromX: number, fromY: number, toX: number, toY: number): string {
  if (fromX === toX) return `M${fromX} ${fromY}V${toY}`;
  const middle = (fromY + toY) / 2;
  return `M${fromX} ${fromY}C${fromX} ${middle} ${toX} ${middle} ${toX} ${toY}`;
}

function Lanes({ row, width, isBase }: { row: GraphRow; width: number; isBase: boolean }) {
  const half = rowHeight / 2;
  const { node, lane } = row;
  const colour = (at: number) => `lane ${colours[at % colours.length]}`;
  return (
    <svg class="lanes" width={width} height={rowHeight} viewBox={`0 0 ${width} ${rowHeight}`} aria-hidden="true">
      {row.above.map((each) => <path key={`a${each.from}`} class={colour(each.from)} d={line(x(each.from), 0, x(each.to), half)} />)}
      {row.below.map((each) => (
        <path key={`b${each.from}`} class={`${colour(each.from)} ${node.name === now && each.from === lane ? "dashed" : ""}`}
          d={line(x(each.from), half, x(each.to), rowHeight)} />
      ))}
      {node.name === template
        ? <rect class={`node ${colours[lane % colours.length]}`} x={x(lane) - 4.5} y={half - 4.5} width={9} height={9} rx={2} />
        : <circle class={`node ${colours[lane % colours.length]} ${node.name === now ? "open" : ""}`} cx={x(lane)} cy={half} r={isBase ? 6 : 5} />}
    </svg>
  );
}

export function SummaryText({ summary }: { summary: Summary | "failed" | undefined }) {
  if (summary === undefined) return <span class="muted">…</span>;
  if (summary === "failed") return <span class="muted">not known</span>;
  const parts = [
    ["added", summary.added], ["modified", summary.modified], ["deleted", summary.deleted], ["renamed", summary.renamed],
  ].filter(([, count]) => (count as number) > 0) as [string, number][];
  if (parts.length === 0) return <span class="muted">no changes</span>;
  return (
    <span class="change-summary">
      {parts.map(([kind, count]) => (
        <span key={kind} class={`sum ${kind}`} title={`${count.toLocaleString("en")} ${kind}`}>
          <span aria-hidden="true">{kind === "added" ? "+" : kind === "deleted" ? "−" : kind === "renamed" ? "→" : "~"}{count.toLocaleString("en")}</span>
          <span class="hidden-text">{count} {kind}</span>
        </span>
      ))}
      {summary.isCut && <span class="muted">and more</span>}
    </span>
  );
}

function when(snapshot: Snapshot): string {
  return `${duration(time.value - millis(snapshot.createdAt))} ago`;
}

function Label({ node, isBase, growth }: { node: Node; isBase: boolean; growth: string }) {
  const { snapshot } = node;
  return (
    <div class="state-label">
      <div class="row">
        <bdi class={`cut state-name ${snapshot ? "" : "special"}`}>{plain(stateName(node.name))}</bdi>
        {snapshot?.note && <bdi class="cut state-note" title={plain(snapshot.note)}>{plain(snapshot.note)}</bdi>}
        {snapshot && snapshot.kind !== "turn" && <span class="chip">{plain(snapshot.kind)}</span>}
        {isBase && <span class="chip base" title="The current files are based on this state">base</span>}
      </div>
      <div class="muted cut state-facts">
        {snapshot ? <><span title={dateTime(snapshot.createdAt)}>{when(snapshot)}</span> · <span title="Storage that the sandbox used then">{bytes(snapshot.spaceUsed)}{growth}</span></>
          : node.name === now ? "not in any snapshot" : "what the sandbox started from"}
      </div>
    </div>
  );
}

export function GraphView(props: Props) {
  const { snapshots, base, summaries, from, to } = props;
  const graph: Graph = useMemo(() => layout(nodesOf(snapshots, base)), [snapshots, base]);
  const sizes = useMemo(() => new Map(snapshots.map((each) => [each.name, each.spaceUsed])), [snapshots]);
  const width = x(Math.min(graph.lanes, mostLanes + 1) - 1) + 14;
  const known = summaries.known.value;
  const selected = graph.rows.findIndex((each) => each.node.name === to);
  const move = (by: number) => {
    const next = graph.rows[Math.max(0, Math.min(graph.rows.length - 1, selected + by))];
    if (next) props.onSelect(next.node);
  };
  return (
    <Window class="graph" role="listbox" label="States of the files, newest first" count={graph.rows.length} rowHeight={rowHeight}
      reveal={selected}
      onKeyDown={(event) => {
        if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
        event.preventDefault();
        move(event.key === "ArrowDown" ? 1 : -1);
      }}
      row={(i) => {
        const row = graph.rows[i] as GraphRow;
        const { node } = row;
        const before = sizes.get(node.parent ?? "");
        const delta = node.snapshot && before !== undefined ? node.snapshot.spaceUsed - before : 0n;
        return (
          <div key={node.name} role="option" aria-selected={node.name === to} class={`graph-row ${node.name === from ? "older" : ""}`}
            onClick={(event) => (event.shiftKey ? props.onCompare(node.name) : props.onSelect(node))}>
            <Lanes row={row} width={width} isBase={node.name === base} />
            <Label node={node} isBase={node.name === base && node.name !== now} growth={delta > 0n ? ` (+${bytes(delta)})` : ""} />
            {node.name === now ? <SummaryText summary={props.current} />
              : node.snapshot && <Wanted node={node} summaries={summaries} summary={known.get(node.name)} />}
          </div>
        );
      }} />
  );
}

// Asks for the changes of a snapshot when its row comes into view.
function Wanted({ node, summaries, summary }: { node: Node; summaries: Summaries; summary: Summary | "failed" | undefined }) {
  useEffect(() => summaries.want(node.name, node.parent ?? template), [node.name, node.parent]);
  return <SummaryText summary={summary} />;
}
