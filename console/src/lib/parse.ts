// Sizes, times and numbers as people and the holt command write them. An empty text is absent, a text
// without a meaning throws an error that says what is expected.

const sizeUnits: Record<string, number> = { "": 0, K: 10, M: 20, G: 30, T: 40 };

// "512M", "1.5G", "4096" in bytes.
export function parseSize(text: string): bigint | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const found = /^([0-9]+(?:\.[0-9]+)?) ?([kKmMgGtT]?)(?:i?[bB])?$/.exec(trimmed);
  if (!found) throw new Error("a size looks like 512M or 2G");
  const value = Number(found[1]) * 2 ** (sizeUnits[(found[2] ?? "").toUpperCase()] ?? 0);
  return BigInt(Math.round(value));
}

// The shortest form that is exact: 536870912 is "512M".
export function sizeText(value: bigint): string {
  for (const [unit, bits] of [["T", 40n], ["G", 30n], ["M", 20n], ["K", 10n]] as const) {
    if (value >> bits > 0n && value % (1n << bits) === 0n) return `${value >> bits}${unit}`;
  }
  return value.toString();
}

const timeUnits: [string, number][] = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1000], ["ms", 1]];

// "8h", "1h30m", "45s" in milliseconds; a plain 0 is 0.
export function parseTime(text: string): bigint | undefined {
  const trimmed = text.trim().replaceAll(" ", "");
  if (trimmed === "") return undefined;
  if (trimmed === "0") return 0n;
  if (!/^(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d))+$/.test(trimmed)) throw new Error("a time looks like 45s, 30m, 8h or 2d");
  let sum = 0;
  for (const [, number, unit] of trimmed.matchAll(/([0-9.]+)(ms|s|m|h|d)/g))
    sum += Number(number) * (timeUnits.find(([name]) => name === unit)?.[1] ?? 0);
  return BigInt(Math.round(sum));
}

// As the holt command takes it, with one unit: 5400000 is "90m".
export function timeText(ms: bigint): string {
  if (ms === 0n) return "0";
  for (const [unit, factor] of timeUnits) {
    if (ms % BigInt(factor) === 0n) return `${ms / BigInt(factor)}${unit}`;
  }
  return `${ms}ms`;
}

export function parseCount(text: string): number | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  if (!/^[0-9]{1,9}$/.test(trimmed)) throw new Error("a whole number is expected");
  return Number(trimmed);
}

// "1.5" CPUs in thousandths.
export function parseCpus(text: string): number | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  if (!/^[0-9]{1,4}(?:\.[0-9]{1,3})?$/.test(trimmed)) throw new Error("a number of CPUs looks like 2 or 0.5");
  return Math.round(Number(trimmed) * 1000);
}

// "team=red, job=build" and one a line as well.
export function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const each of text.split(/[\n,]/).map((part) => part.trim()).filter(Boolean)) {
    const at = each.indexOf("=");
    if (at < 1) throw new Error("a label looks like team=red");
    labels[each.slice(0, at)] = each.slice(at + 1);
  }
  return labels;
}

// The value, or the text of the error: for the hints of a form.
export function attempt<T>(parse: () => T): { value: T; error?: undefined } | { value?: undefined; error: string } {
  try {
    return { value: parse() };
  } catch (error) {
    return { error: (error as Error).message };
  }
}
