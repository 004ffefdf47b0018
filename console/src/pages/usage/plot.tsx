// A plot of lines over time. Colours come from the style sheet, so that both themes fit.
import uPlot from "uplot";
import { useEffect, useRef } from "preact/hooks";
import { color, isDark } from "../../lib/theme";

export interface Line {
  label: string;
  color: string; // a name of style/tokens.css: plot-1
  isFilled?: boolean;
  isDashed?: boolean;
}

export interface PlotProps {
  label: string; // for screen readers
  data: (number | null)[][]; // times, then one column a line
  lines: Line[];
  format: (value: number) => string;
  least?: number; // the scale reaches at least this value
  revision: number; // grows when data has changed
  group: string; // plots of a group share the cursor
  isBytes?: boolean; // the scale has steps of 1024
}

const height = 150;
const leastSeconds = 60;
const powersOfTwo = Array.from({ length: 50 }, (_, i) => 2 ** i);

// A colour of the style sheet with this much opacity, as the canvas needs it.
function translucent(name: string): string {
  const [red, green, blue] = color(name).match(/[0-9.]+/g) ?? [];
  return `rgba(${red}, ${green}, ${blue}, 0.14)`;
}

function options({ lines, format, least, group, isBytes }: PlotProps, width: number): uPlot.Options {
  const axis = {
    stroke: color("muted"),
    grid: { stroke: color("border"), width: 1 },
    ticks: { stroke: color("border"), width: 1, size: 4 },
    font: `11px system-ui, "DejaVu Sans", sans-serif`,
  };
  return {
    width,
    height,
    legend: { show: false },
    cursor: { sync: { key: group }, y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: {
      x: { range: (_plot, min, max) => [Math.min(min, max - leastSeconds), max] },
      y: { range: (_plot, _min, max) => [0, Math.max((max ?? 0) * 1.1, least ?? 0)] },
    },
    axes: [
      { ...axis, size: 28, space: 70, values: [[60, "{HH}:{mm}", null, null, null, null, null, null, 1],
        [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] },
      { ...axis, size: 66, space: 30, ...(isBytes ? { incrs: powersOfTwo } : {}), values: (_plot, values) => values.map(format) },
    ],
    series: [{}, ...lines.map((line): uPlot.Series => ({
      label: line.label,
      stroke: color(line.color),
      width: 1.5,
      points: { show: false },
      ...(line.isFilled ? { fill: translucent(line.color) } : {}),
      ...(line.isDashed ? { dash: [4, 4], width: 1 } : {}),
    }))],
  };
}

export function Plot(props: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(latest.current, element.clientWidth || 300),
        latest.current.data as uPlot.AlignedData, element);
    };
    draw();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [isDark()]);

  useEffect(() => {
    plot.current?.setData(props.data as uPlot.AlignedData);
  }, [props.revision]);

  return <div class="plot" ref={place} role="img" aria-label={props.label} />;
}
