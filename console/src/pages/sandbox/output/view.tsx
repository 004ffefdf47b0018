// A window on the lines: only the rows that are visible exist.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useFill } from "../fill";
import type { Lines } from "./lines";
import { Row } from "./row";

export const ROW_HEIGHT = 20; // as in the style sheet
const MARGIN_ROWS = 20;
const LEAST_HEIGHT = 220;

export interface ViewProps {
  lines: Lines;
  // Changes when the lines have.
  version: number;
  label: string;
  query: string;
  // The line of the current match; -1: none.
  current: number;
  isFollowing: boolean;
  onFollow(isFollowing: boolean): void;
}

export function View({ lines, version, label, query, current, isFollowing, onFollow }: ViewProps) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const pinned = useRef(false); // the next scroll event is our own
  // As of this version: scrolling to lines that came since would draw, and so scroll, in every frame.
  const { first, end } = useMemo(() => ({ first: lines.first, end: lines.end }), [lines, version]);
  useFill(box, LEAST_HEIGHT);

  useLayoutEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = box.current!;
    if (!isFollowing) return;
    const bottom = element.scrollHeight - element.clientHeight;
    if (Math.abs(element.scrollTop - bottom) < 1) return;
    pinned.current = true;
    element.scrollTop = bottom;
  }, [version, isFollowing, height]);

  useLayoutEffect(() => {
    if (current < 0) return;
    const element = box.current!;
    const y = (current - lines.first) * ROW_HEIGHT;
    if (y < element.scrollTop || y > element.scrollTop + element.clientHeight - ROW_HEIGHT)
      element.scrollTop = Math.max(0, y - element.clientHeight / 2);
  }, [current]);

  const scrolled = () => {
    const element = box.current;
    if (!element) return; // an event that was on its way when the view was closed
    setTop(element.scrollTop);
    const isOwn = pinned.current;
    pinned.current = false;
    const isAtEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - ROW_HEIGHT;
    if (!isOwn && isAtEnd !== isFollowing) onFollow(isAtEnd);
  };

  const from = Math.max(first, first + Math.floor(top / ROW_HEIGHT) - MARGIN_ROWS);
  const to = Math.min(end, from + Math.ceil(height / ROW_HEIGHT) + 2 * MARGIN_ROWS);
  const rows = [];
  for (let number = from; number < to; number++) {
    const line = lines.at(number);
    if (line) rows.push(<Row key={number} line={line} number={number} query={query} isCurrent={number === current} />);
  }
  return (
    <div class="output-view" ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-label={label} aria-live="off">
      <div class="output-space" style={{ height: `${(end - first) * ROW_HEIGHT}px` }}>
        <div class="output-rows" style={{ transform: `translateY(${(from - first) * ROW_HEIGHT}px)` }}>{rows}</div>
      </div>
    </div>
  );
}
