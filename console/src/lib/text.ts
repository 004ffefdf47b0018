// Text for people: numbers with units, times, and foreign text without invisible parts.
import type { Timestamp } from "@bufbuild/protobuf/wkt";

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value: bigint | number): string {
  let size = Number(value);
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  const digits = unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${size.toFixed(digits)} ${units[unit]}`;
}

// "45s", "12m", "3h 20m", "5d 2h".
export function duration(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 60) return m < 10 && s % 60 ? `${m}m ${s % 60}s` : `${m}m`;
  const h = Math.floor(m / 60);
  if (h < 48) return m % 60 ? `${h}h ${m % 60}m` : `${h}h`;
  const d = Math.floor(h / 24);
  return d < 10 && h % 24 ? `${d}d ${h % 24}h` : `${d}d`;
}

export function millis(time: Timestamp | undefined): number {
  return time ? Number(time.seconds) * 1000 + Math.floor(time.nanos / 1e6) : 0;
}

const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function dateTime(time: Timestamp | number | undefined): string {
  const ms = typeof time === "number" ? time : millis(time);
  return ms ? clock.format(ms) : "never";
}

export function cpus(thousandths: number): string {
  return (thousandths / 1000).toFixed(thousandths % 1000 === 0 ? 0 : thousandths % 100 === 0 ? 1 : 2);
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

// Control characters, direction marks and other invisible characters as \u{...}, so that foreign text
// can neither hide a part of itself nor change the order of what is around it.
const invisible =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu;

export function plain(text: string): string {
  return text.replace(invisible, (each) => {
    if (each === "\n") return "\\n";
    if (each === "\t") return "\\t";
    return `\\u{${each.codePointAt(0)?.toString(16)}}`;
  });
}

// The same, with lines and tabs kept, for text in <pre>.
export function plainLines(text: string): string {
  return text.split(/(\r?\n|\t)/).map((each, i) => (i % 2 ? each.replace("\r", "") : plain(each))).join("");
}
