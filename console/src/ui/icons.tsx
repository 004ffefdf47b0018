// Icons of 16 x 16, drawn with the colour of the text.
const shapes = {
  overview: "M2.5 2.5h4.5v4.5H2.5zM9 2.5h4.5v4.5H9zM2.5 9h4.5v4.5H2.5zM9 9h4.5v4.5H9z",
  box: "M8 1.8 13.5 5v6L8 14.2 2.5 11V5zM2.5 5 8 8.2 13.5 5M8 8.2v6",
  template: "M2.5 4h11M2.5 8h11M2.5 12h7",
  volume: "M2.5 4.5c0-2.7 11-2.7 11 0v7c0 2.7-11 2.7-11 0zM2.5 4.5c0 2.7 11 2.7 11 0M2.5 8c0 2.7 11 2.7 11 0",
  model: "M4.5 4.5h7v7h-7zM6.5 2v2.5M9.5 2v2.5M6.5 11.5V14M9.5 11.5V14M2 6.5h2.5M2 9.5h2.5M11.5 6.5H14M11.5 9.5H14",
  token: "M10.5 2a3.5 3.5 0 1 1-3.2 5L2 12.3V14h2.5v-1.7h1.7v-1.6h1.6L9 9.2M11 5v.1",
  audit: "M3.5 1.8h6l3 3v9.4h-9zM9.5 1.8v3h3M5.5 8h5M5.5 11h5",
  event: "M8.8 1.8 3.5 9h4l-.7 5.2L12.5 7h-4z",
  doctor: "M1.8 8.5h3L6.5 4l3 8 1.7-3.5h3",
  terminal: "M2.5 3h11v10h-11zM4.8 6l2 2-2 2M8.5 10.2h3",
  file: "M3.5 1.8h5.5l3.5 3.5v8.9h-9zM9 1.8v3.5h3.5",
  folder: "M1.8 3.5h4.5l1.5 2h6.4v7.5H1.8z",
  process: "M3 8a5 5 0 0 1 9-3M13 8a5 5 0 0 1-9 3M12.2 2v3h-3M3.8 14v-3h3",
  turns: "M4 3.5v9M4 8.5c5 0 8-1 8-4M4 2.2a1.3 1.3 0 1 0 .1 0M12 2.2a1.3 1.3 0 1 0 .1 0M4 11.8a1.3 1.3 0 1 0 .1 0",
  chart: "M2 13.5h12M4 11V7.5M7 11V4M10 11V6M13 11V3",
  settings: "M2.5 4.5h6M11.5 4.5h2M2.5 11.5h2M7.5 11.5h6M10 3v3M6 10v3",
  people: "M6 2.5a2.5 2.5 0 1 0 .1 0M1.5 13.5c0-5.5 9-5.5 9 0M10.5 3a2.3 2.3 0 0 1 0 4.5M12 9.3c1.6.7 2.5 2 2.5 4.2",
  network: "M8 2a6 6 0 1 0 .1 0M2 8h12M8 2c-4.5 4-4.5 8 0 12M8 2c4.5 4 4.5 8 0 12",
  play: "M4.5 2.8v10.4L12.8 8z",
  stop: "M3.8 3.8h8.4v8.4H3.8z",
  pause: "M5 3v10M11 3v10",
  trash: "M2.5 4.2h11M6 4V2.2h4V4M4 4.2l.7 9.6h6.6L12 4.2M6.7 6.8v4.4M9.3 6.8v4.4",
  plus: "M8 2.8v10.4M2.8 8h10.4",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  search: "M7 2.5a4.5 4.5 0 1 0 .1 0M10.3 10.3 13.8 13.8",
  sort: "M5 6.5 8 3l3 3.5M5 9.5 8 13l3-3.5",
  up: "M4 10l4-4 4 4",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  check: "M3 8.5l3.2 3.2L13 4.8",
  warning: "M8 2 14.5 13.5h-13zM8 6.5v3.2M8 11.5v.2",
  info: "M8 2a6 6 0 1 0 .1 0M8 7.3v3.7M8 5v.2",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  sun: "M8 5a3 3 0 1 0 .1 0M8 1.2v1.3M8 13.5v1.3M1.2 8h1.3M13.5 8h1.3M3.2 3.2l.9.9M11.9 11.9l.9.9M3.2 12.8l.9-.9M11.9 4.1l.9-.9",
  moon: "M13.2 9.6A5.8 5.8 0 0 1 6.4 2.8a5.8 5.8 0 1 0 6.8 6.8z",
  system: "M2 3h12v8H2zM5.5 14h5M8 11v3",
  logout: "M6.5 2.5h-4v11h4M6 8h8M11 5l3 3-3 3",
  more: "M3.5 8h.1M8 8h.1M12.5 8h.1",
  fork: "M4.5 5v6M4.5 8.5c4 0 7-.5 7-3.5M4.5 2.2a1.4 1.4 0 1 0 .1 0M11.5 2.2a1.4 1.4 0 1 0 .1 0M4.5 11a1.4 1.4 0 1 0 .1 0",
  refresh: "M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3",
  download: "M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11",
  upload: "M8 10.5V2.5M4.5 6 8 2.5 11.5 6M2.5 13.5h11",
  keyboard: "M1.5 4h13v8.5h-13zM4 6.8h.1M6.7 6.8h.1M9.3 6.8h.1M12 6.8h.1M5 10h6",
  menu: "M2.5 4h11M2.5 8h11M2.5 12h11",
  clock: "M8 2a6 6 0 1 0 .1 0M8 4.8V8l2.4 1.6",
  link: "M6.5 9.5l3-3M7 4.5l1.8-1.8a3 3 0 0 1 4.2 4.2L11.5 9M9 11.5l-1.8 1.8A3 3 0 0 1 3 9.1L4.5 7",
} as const;

export type IconName = keyof typeof shapes;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width={size} height={size} aria-hidden="true" focusable="false">
      <path d={shapes[name]} />
    </svg>
  );
}
