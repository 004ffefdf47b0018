// The files of the codebase, painted by level: what the sandbox sees, and what it does not.
import { PermissionService, type PermissionEntry } from "@gen/permission_pb";
import type { Permissions, Sandbox } from "@gen/sandbox_pb";
import { useMemo, useState } from "preact/hooks";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { useResource } from "../../lib/resource";
import { count, plain } from "../../lib/text";
import { CopyCli } from "../../ui/cli";
import { Icon } from "../../ui/icons";
import { Empty, Foreign, Loading, Panel, Problem } from "../../ui/parts";
import { Window } from "../../ui/window";
import { Level, levels, meanings, type LevelName } from "./level";

const rowHeight = 26;

// Entries come each directory before what it has. A directory that is closed hides its part of the list.
function shownOf(entries: PermissionEntry[], closed: Set<string>, only: LevelName | null): PermissionEntry[] {
  if (only) return entries.filter((each) => each.level === only);
  const shown: PermissionEntry[] = [];
  let inside = "";
  for (const entry of entries) {
    if (inside && entry.path.startsWith(inside)) continue;
    inside = entry.directory && closed.has(entry.path) ? `${entry.path}/` : "";
    shown.push(entry);
  }
  return shown;
}

interface RowProps {
  entry: PermissionEntry;
  rule: string;
  isFlat: boolean;
  isOpen: boolean;
  onToggle: () => void;
}

function Row({ entry, rule, isFlat, isOpen, onToggle }: RowProps) {
  const path = plain(entry.path);
  const depth = isFlat ? 0 : entry.path.split("/").length - 2;
  const name = isFlat ? path : path.slice(path.lastIndexOf("/") + 1);
  return (
    <div role="listitem" class={`perm-row paint-${entry.level}`} title={path} style={{ paddingLeft: `${10 + depth * 16}px` }}>
      {entry.directory && !isFlat ? (
        <button type="button" class="perm-toggle" aria-expanded={isOpen} tabIndex={-1} onClick={onToggle}>
          <Icon name="right" size={12} /><Icon name="folder" /><bdi class="cut">{name}</bdi>
        </button>
      ) : <span class="perm-name"><Icon name={entry.directory ? "folder" : "file"} /><bdi class="cut">{name}</bdi></span>}
      <Level level={entry.level} />
      <span class="perm-rule cut muted">{rule ? <Foreign mono text={rule} /> : "no rule"}</span>
    </div>
  );
}

function Legend({ entries, only, onOnly }: { entries: PermissionEntry[]; only: LevelName | null; onOnly: (level: LevelName | null) => void }) {
  return (
    <div class="perm-legend" role="group" aria-label="Show one level">
      {levels.map((level) => {
        const files = entries.filter((each) => each.level === level && !each.directory).length;
        return (
          <button key={level} type="button" class="perm-only" aria-pressed={only === level} onClick={() => onOnly(only === level ? null : level)}>
            <Level level={level} /> {meanings[level]} <span class="muted">{count(files, "file")}</span>
          </button>
        );
      })}
    </div>
  );
}

export function Levels({ sandbox, permissions }: { sandbox: Sandbox; permissions: Permissions }) {
  const { data, error } = useResource(() => client(PermissionService).tree({ sandboxId: sandbox.id }),
    [sandbox.id, permissions.generation, sandbox.codebase?.base]);
  const [closed, setClosed] = useState<Set<string>>(new Set());
  const [only, setOnly] = useState<LevelName | null>(null);
  const entries = data?.entries ?? [];
  const shown = useMemo(() => shownOf(entries, closed, only), [data, closed, only]);
  const toggle = (path: string) => setClosed((before) => {
    const after = new Set(before);
    if (!after.delete(path)) after.add(path);
    return after;
  });
  const row = (i: number) => {
    const entry = shown[i]!;
    return (
      <Row key={entry.path} entry={entry} rule={entry.number > 0 ? permissions.rules[entry.number - 1] ?? "" : ""} isFlat={only !== null}
        isOpen={!closed.has(entry.path)} onToggle={() => toggle(entry.path)} />
    );
  };
  return (
    <Panel title="Files by level" actions={<CopyCli command={holt("perm", "ls", sandbox.id, "--tree")} />}>
      <div class="panel-body">
        {error ? <Problem error={error} /> : null}
        {!data && !error && <Loading />}
        {data && (
          <>
            <Legend entries={entries} only={only} onOnly={setOnly} />
            {data.truncated && <p class="muted">Only the first {count(entries.length, "path")} are shown.</p>}
            {shown.length === 0 ? <Empty icon="file" title={only ? `Nothing has the level ${only}` : "The codebase is empty"} />
              : <Window class="perm-tree" role="list" label="Files by level" count={shown.length} rowHeight={rowHeight} row={row} />}
          </>
        )}
      </div>
    </Panel>
  );
}
