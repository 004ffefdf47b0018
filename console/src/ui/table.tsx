// A table of any length: only the rows in view exist. Rows have one height (--row); columns are shared
// by head and rows through one grid template.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons";

export interface Column<T> {
  id: string;
  title: string;
  // As in grid-template-columns: "minmax(120px, 2fr)".
  width: string;
  cell: (row: T) => ComponentChildren;
  isNumber?: boolean;
  canSort?: boolean;
}

export interface Sort {
  column: string;
  isDown: boolean;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  sort?: Sort;
  onSort?: (sort: Sort) => void;
  // Both given: rows have checkboxes.
  selected?: ReadonlySet<string>;
  onSelect?: (selected: Set<string>) => void;
  nameOf?: (row: T) => string;
  // Called when other rows come into view.
  onView?: (rows: readonly T[]) => void;
  empty?: ComponentChildren;
}

const rowHeight = 34;
const beyond = 8; // rows drawn above and below the view

function useWindow(count: number) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const update = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(update);
    observer.observe(element);
    element.addEventListener("scroll", update, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", update);
    };
  }, []);
  const first = Math.max(0, Math.min(Math.floor(view.top / rowHeight) - beyond, count));
  const last = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + beyond);
  return { box, first, last };
}

function Head<T>({ columns, sort, onSort }: Pick<Props<T>, "columns" | "sort" | "onSort">) {
  return columns.map((each) => {
    const isSorted = sort?.column === each.id;
    const order = isSorted ? (sort.isDown ? "descending" : "ascending") : undefined;
    return (
      <div key={each.id} role="columnheader" class={each.isNumber ? "cell number" : "cell"} aria-sort={order}>
        {each.canSort && onSort ? (
          <button type="button" class="sort"
            onClick={() => onSort({ column: each.id, isDown: isSorted ? !sort.isDown : false })}>
            {each.title}
            {isSorted && <Icon name={sort.isDown ? "down" : "up"} size={12} />}
          </button>
        ) : each.title}
      </div>
    );
  });
}

// The arrows move between rows, within the column of links or of checkboxes.
function moveBetweenRows(event: KeyboardEvent): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const from = event.target as HTMLElement;
  const row = from.closest(".table-row");
  const index = Number(row?.getAttribute("aria-rowindex")) + (event.key === "ArrowDown" ? 1 : -1);
  const next = row?.parentElement?.querySelector<HTMLElement>(`[aria-rowindex="${index}"] ${from.tagName.toLowerCase()}`);
  if (!next) return;
  event.preventDefault();
  next.focus();
}

export function Table<T>(props: Props<T>) {
  const { columns, rows, keyOf, selected, onSelect } = props;
  const { box, first, last } = useWindow(rows.length);
  const shown = rows.slice(first, last);
  const anchor = useRef<number | null>(null);
  const template = (onSelect ? "34px " : "") + columns.map((each) => each.width).join(" ");
  const keys = shown.map(keyOf).join();
  useEffect(() => props.onView?.(shown), [keys]);

  const toggle = (index: number, isOn: boolean, isRange: boolean) => {
    const next = new Set(selected);
    const from = isRange && anchor.current !== null ? anchor.current : index;
    for (const row of rows.slice(Math.min(from, index), Math.max(from, index) + 1)) {
      if (isOn) next.add(keyOf(row));
      else next.delete(keyOf(row));
    }
    anchor.current = index;
    onSelect?.(next);
  };
  const chosen = selected ? rows.reduce((sum, each) => sum + (selected.has(keyOf(each)) ? 1 : 0), 0) : 0;

  return (
    <div class="table" role="table" aria-label={props.label} aria-rowcount={rows.length + 1} ref={box} tabIndex={0}>
      <div class="table-head table-row" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
        {onSelect && (
          <div role="columnheader" class="cell check">
            <input type="checkbox" aria-label="Select all" checked={rows.length > 0 && chosen === rows.length}
              indeterminate={chosen > 0 && chosen < rows.length}
              onChange={(event) => onSelect(new Set(event.currentTarget.checked ? rows.map(keyOf) : []))} />
          </div>
        )}
        <Head columns={columns} {...(props.sort && { sort: props.sort })} {...(props.onSort && { onSort: props.onSort })} />
      </div>
      {rows.length === 0 && props.empty}
      <div class="table-body" role="rowgroup" onKeyDown={moveBetweenRows} style={{ height: `${rows.length * rowHeight}px` }}>
        {shown.map((row, i) => {
          const key = keyOf(row);
          const isOn = selected?.has(key) ?? false;
          return (
            <div key={key} role="row" class="table-row" aria-rowindex={first + i + 2}
              aria-selected={onSelect ? isOn : undefined}
              style={{ gridTemplateColumns: template, transform: `translateY(${(first + i) * rowHeight}px)` }}>
              {onSelect && (
                <div role="cell" class="cell check">
                  <input type="checkbox" aria-label={`Select ${props.nameOf?.(row) ?? key}`} checked={isOn}
                    onClick={(event) => toggle(first + i, event.currentTarget.checked, event.shiftKey)} />
                </div>
              )}
              {columns.map((each) => (
                <div key={each.id} role="cell" class={each.isNumber ? "cell number" : "cell"}>{each.cell(row)}</div>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}
