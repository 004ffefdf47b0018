// A plot over time, drawn by uPlot. The library is loaded with the first plot.
import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { color, isDark } from "../lib/theme";

export interface Series {
  label: string;
  // A colour of style/tokens.css: "plot-1".
  color: string;
  fill?: boolean;
  dash?: boolean;
}

interface Props {
  // For screen readers: "CPU of the host in the last hour".
  label: string;
  series: Series[];
  // Seconds since 1970, ascending; then one list for each series, with null for gaps.
  data: [number[], ...(number | null)[][]];
  format: (value: number) => string;
  height?: number;
  // The least upper end of the scale; the data may extend it.
  max?: number;
  // Seconds that the plot shows at least, up to its last point.
  span?: number;
  // The scale has steps of 1024.
  isBytes?: boolean;
}

const labelHalf = 28; // pixels
const powersOfTwo = Array.from({ length: 50 }, (_, i) => 2 ** i);

function options(props: Props, width: number): uPlot.Options {
  const grid = { stroke: color("border"), width: 1 };
  const axis = { stroke: color("muted"), font: "11px system-ui, sans-serif", ticks: { show: false } };
  return {
    width,
    height: props.height ?? 130,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time: true, range: (_u, min, max) => [props.span ? Math.min(min, max - props.span) : min, max] },
      y: { range: (_u, _min, max) => [0, Math.max(max * 1.08, props.max ?? 0) || 1] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 22, gap: 2, values: (plot, at, _axis, _space, step) =>
        at.map((each) => (fits(plot, each) ? clockOf(each, step < 60) : null)) },
      { ...axis, grid, size: 62, gap: 6, space: 28, ...(props.isBytes ? { incrs: powersOfTwo } : {}), values: (_u, at) => at.map(props.format) },
    ],
    series: [
      {},
      ...props.series.map((each) => ({
        label: each.label,
        stroke: color(each.color),
        width: 1.5,
        points: { show: false },
        ...(each.dash ? { dash: [4, 4], width: 1 } : {}),
        ...(each.fill ? { fill: color(each.color).replace("rgb(", "rgba(").replace(")", ", 0.12)") } : {}),
      })),
    ],
    hooks: { setCursor: [(plot) => showValues(plot, props)] },
  };
}

// A label at the left end would cover that of the other axis; one at the right end would be cut.
function fits(plot: uPlot, x: number): boolean {
  const at = plot.valToPos(x, "x");
  return at >= labelHalf && at <= plot.bbox.width / devicePixelRatio - labelHalf + 8;
}

function clockOf(seconds: number, hasSeconds: boolean): string {
  return new Date(seconds * 1000).toLocaleTimeString([], {
    hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(hasSeconds ? { second: "2-digit" } : {}),
  });
}

// The values under the pointer, or the last ones.
function showValues(plot: uPlot, props: Props): void {
  const at = plot.cursor.idx ?? plot.data[0].length - 1;
  const figure = plot.root.closest("figure");
  figure?.querySelectorAll<HTMLElement>(".plot-value").forEach((each, i) => {
    const value = plot.data[i + 1]?.[at];
    each.textContent = value == null ? "–" : props.format(value);
  });
  const time = figure?.querySelector<HTMLElement>(".plot-time");
  const x = plot.cursor.idx == null ? undefined : plot.data[0][plot.cursor.idx];
  if (time) time.textContent = x === undefined ? "" : new Date(x * 1000).toLocaleTimeString();
}

export function Plot(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    let isWanted = true;
    const resize = new ResizeObserver(() => {
      const width = box.current?.clientWidth ?? 0;
      if (plot.current && width > 0) plot.current.setSize({ width, height: props.height ?? 130 });
    });
    void import("uplot").then(({ default: Library }) => {
      if (!isWanted || !box.current) return;
      const current = latest.current;
      const opts = options(current, box.current.clientWidth || 300);
      plot.current = new Library(opts, current.data as uPlot.AlignedData, box.current);
      showValues(plot.current, current);
      resize.observe(box.current);
    });
    return () => {
      isWanted = false;
      resize.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [isDark(), props.series.map((each) => each.label + each.color).join()]);

  useEffect(() => {
    if (!plot.current) return;
    plot.current.setData(props.data as uPlot.AlignedData);
    showValues(plot.current, props);
  }, [props.data]);

  return (
    <figure class="plot" aria-label={props.label}>
      <figcaption class="plot-legend">
        {props.series.map((each) => (
          <span class="plot-key" key={each.label}>
            <span class={`plot-mark ${each.color}`} aria-hidden="true" />
            {each.label} <span class="plot-value" />
          </span>
        ))}
        <span class="plot-time muted" />
      </figcaption>
      <div class="plot-area" ref={box} />
    </figure>
  );
}
