// A list of rows of equal height of which only the visible ones exist, however many there are.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface Props {
  count: number;
  rowHeight: number;
  row: (index: number) => ComponentChildren;
  // For screen readers; makes the list a focusable region that scrolls by keys.
  label: string;
  class?: string;
  role?: "list" | "tree" | "listbox" | "region";
  // Scrolls to this row when it changes; -1: stays.
  reveal?: number;
  onKeyDown?: (event: KeyboardEvent) => void;
  // The least width of the rows, for lines that are longer than the list is wide.
  width?: string;
}

const overscan = 12;
// Chromium cannot place anything beyond 33,554,400 pixels.
const mostPixels = 30_000_000;

export function Window({ count, rowHeight, row, label, reveal = -1, ...rest }: Props) {
  const ref = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const rows = Math.min(count, Math.floor(mostPixels / rowHeight));
  useLayoutEffect(() => {
    const list = ref.current;
    if (!list) return;
    const read = () => setView({ top: list.scrollTop, height: list.clientHeight });
    const observer = new ResizeObserver(read);
    observer.observe(list);
    list.addEventListener("scroll", read, { passive: true });
    return () => {
      observer.disconnect();
      list.removeEventListener("scroll", read);
    };
  }, []);
  useEffect(() => {
    const list = ref.current;
    if (!list || reveal < 0) return;
    const top = reveal * rowHeight;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + rowHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + rowHeight - list.clientHeight;
  }, [reveal, rowHeight]);

  const first = Math.max(0, Math.floor(view.top / rowHeight) - overscan);
  const last = Math.min(rows, Math.ceil((view.top + view.height) / rowHeight) + overscan);
  const shown = [];
  for (let i = first; i < last; i++) shown.push(row(i));
  return (
    <div ref={ref} class={`window ${rest.class ?? ""}`} role={rest.role ?? "region"} aria-label={label} tabIndex={0}
      onKeyDown={rest.onKeyDown}>
      <div class="window-rows" style={{ height: `${rows * rowHeight}px`, minWidth: rest.width ? `max(100%, ${rest.width})` : "" }} role="presentation">
        <div class="window-shown" style={{ transform: `translateY(${first * rowHeight}px)` }} role="presentation">
          {shown}
        </div>
      </div>
    </div>
  );
}
