// The tree of files. Arrow keys move, Enter opens, the row that has the focus is the selected one.
import { useEffect, useState } from "preact/hooks";
import { bytes, dateTime, plain } from "../../lib/text";
import { Icon, type IconName } from "../../ui/icons";
import { Window } from "../../ui/window";
import { keyOf, parentOf, type FilePath } from "./path";
import type { Row, Tree } from "./tree";

const rowHeight = 26;

interface Props {
  tree: Tree;
  selected: string;
  onSelect: (path: FilePath, type: string) => void;
  // The directory under the pointer while files are dragged over the tree.
  target: string;
  onTarget: (dir: FilePath | null) => void;
}

function iconOf(type: string, isOpen: boolean): IconName {
  if (type === "directory") return isOpen ? "folder" : "folder";
  if (type === "link") return "link";
  return "file";
}

type EntryRow = Extract<Row, { kind: "entry" }>;

function Entry({ row, props, isFocused }: { row: EntryRow; props: Props; isFocused: boolean }) {
  const { entry } = row;
  const isDir = entry.type === "directory";
  const isTarget = props.target === row.key;
  const toggle = () => (row.isOpen ? props.tree.collapse(row.path) : void props.tree.expand(row.path));
  const title = `${plain(entry.path)}\n${isDir ? "directory" : `${entry.type}, ${bytes(entry.size)}`}\n${dateTime(entry.modifiedTime)}` +
    (entry.target ? `\n→ ${plain(entry.target)}` : "");
  return (
    <div role="treeitem" aria-level={row.depth + 1} aria-expanded={isDir ? row.isOpen : undefined}
      aria-selected={props.selected === row.key} title={title} id={isFocused ? "tree-focus" : undefined}
      class={`tree-row ${isTarget ? "target" : ""} ${isFocused ? "focused" : ""}`} style={{ paddingLeft: `${8 + row.depth * 16}px` }}
      onClick={() => {
        if (isDir) toggle();
        props.onSelect(row.path, entry.type);
      }}
      onDragOver={() => props.onTarget(isDir ? row.path : parentOf(row.path))}>
      <span class={`tree-arrow ${row.isOpen ? "open" : ""}`}>{isDir && <Icon name="right" size={12} />}</span>
      <Icon name={iconOf(entry.type, row.isOpen)} />
      <bdi class="cut tree-name">{plain(entry.name)}</bdi>
      {entry.type === "link" && <span class="muted cut tree-target">→ {plain(entry.target)}</span>}
      {entry.type === "file" && <span class="tree-size">{bytes(entry.size)}</span>}
    </div>
  );
}

export function TreeView(props: Props) {
  const { tree, selected, onSelect } = props;
  const rows = tree.rows.value;
  const [focus, setFocus] = useState(-1);
  useEffect(() => {
    const at = tree.rows.peek().findIndex((each) => each.key === selected);
    if (at >= 0) setFocus(at);
  }, [selected, rows.length]);

  const keys: Record<string, () => void> = {
    ArrowDown: () => setFocus(Math.min(focus + 1, rows.length - 1)),
    ArrowUp: () => setFocus(Math.max(focus - 1, 0)),
    Home: () => setFocus(0),
    End: () => setFocus(rows.length - 1),
    ArrowRight: () => {
      const row = rows[focus];
      if (row?.kind === "entry" && row.entry.type === "directory" && !row.isOpen) void tree.expand(row.path);
      else setFocus(Math.min(focus + 1, rows.length - 1));
    },
    ArrowLeft: () => {
      const row = rows[focus];
      if (row?.kind !== "entry") return;
      if (row.isOpen) return tree.collapse(row.path);
      const parent = keyOf(parentOf(row.path));
      const at = rows.findIndex((each) => each.key === parent);
      if (at >= 0) setFocus(at);
    },
    Enter: () => {
      const row = rows[focus];
      if (row?.kind === "more") void tree.more(row.dir);
      if (row?.kind !== "entry") return;
      if (row.entry.type === "directory") row.isOpen ? tree.collapse(row.path) : void tree.expand(row.path);
      onSelect(row.path, row.entry.type);
    },
  };
  const key = (event: KeyboardEvent) => {
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  };
  return (
    <Window class="tree" role="tree" label="Files" count={rows.length} rowHeight={rowHeight} reveal={focus} onKeyDown={key}
      row={(i) => {
        const row = rows[i] as Row;
        if (row.kind === "entry") return <Entry key={row.key} row={row} props={props} isFocused={i === focus} />;
        const indent = { paddingLeft: `${30 + row.depth * 16}px` };
        if (row.kind === "note")
          return <div key={row.key} role="treeitem" class={`tree-row note ${row.isError ? "error" : ""}`} style={indent}>{plain(row.text)}</div>;
        return (
          <div key={row.key} role="treeitem" class="tree-row more" style={indent} onClick={() => void tree.more(row.dir)}>
            {row.isLoading ? "Loading…" : "Load more"}
          </div>
        );
      }} />
  );
}
