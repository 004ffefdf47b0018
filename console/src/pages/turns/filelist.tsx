// The paths that differ, with a filter.
import { useMemo, useState } from "preact/hooks";
import { bytes, count, plain } from "../../lib/text";
import { Window } from "../../ui/window";
import { Kind } from "../diff/kind";
import type { Change, Changes } from "./changes";

const rowHeight = 28;

interface Props {
  changes: Changes;
  selected: Change | null;
  onSelect: (change: Change) => void;
}

function sizeText(change: Change): string {
  if (change.type !== "file") return change.type;
  if (change.kind === "deleted") return bytes(change.oldSize);
  const delta = change.size - change.oldSize;
  if (change.kind === "modified" && delta !== 0n) return `${delta > 0n ? "+" : "−"}${bytes(delta > 0n ? delta : -delta)}`;
  return bytes(change.size);
}

export function FileList({ changes, selected, onSelect }: Props) {
  const [filter, setFilter] = useState("");
  const shown = useMemo(() => {
    const wanted = filter.toLowerCase();
    return wanted ? changes.list.filter((each) => each.path.toLowerCase().includes(wanted) || each.oldPath.toLowerCase().includes(wanted)) : changes.list;
  }, [changes, filter]);
  const at = selected ? shown.indexOf(selected) : -1;
  const move = (by: number) => {
    const next = shown[Math.max(0, Math.min(shown.length - 1, at + by))];
    if (next) onSelect(next);
  };
  return (
    <div class="changes">
      <div class="changes-head">
        <input type="search" aria-label="Filter the paths" placeholder={`Filter ${count(changes.list.length, "path")}`} value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)} />
      </div>
      <Window role="listbox" label="Paths that differ" count={shown.length} rowHeight={rowHeight} reveal={at}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
          event.preventDefault();
          move(event.key === "ArrowDown" ? 1 : -1);
        }}
        row={(i) => {
          const change = shown[i] as Change;
          const cut = change.path.lastIndexOf("/") + 1;
          const title = plain(change.oldPath ? `${change.oldPath} → ${change.path}` : change.path);
          return (
            <div key={`${change.path}\0${change.rawPath.join()}`} role="option" aria-selected={change === selected} class="change" title={title}
              onClick={() => onSelect(change)}>
              <Kind kind={change.kind} />
              <bdi class="change-path">
                <span class="change-name">{plain(change.path.slice(cut))}</span>
                <span class="muted change-dir">{plain(change.path.slice(0, cut - 1)) || "/"}</span>
              </bdi>
              <span class="muted change-size">{sizeText(change)}</span>
            </div>
          );
        }} />
      {changes.isCut && <div class="hint changes-foot">More than {count(changes.list.length, "path")} differ; the others are not listed.</div>}
    </div>
  );
}
