// Measures the SDK of E2B in one process; prints one JSON object per line.
// usage: node e2b.mjs    (E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY as for any user of the SDK)
import { Sandbox } from "e2b";

const count = Number(process.env.BENCH_N ?? 200);
const only = process.env.BENCH_ONLY ?? "";
const atOnce = 100, forks = 20;
const timeoutMs = 3600e3;
const boxes = new Set();

async function create() {
  const box = await Sandbox.create({ timeoutMs });
  boxes.add(box);
  return box;
}

async function kill(box) {
  boxes.delete(box);
  await box.kill();
}

const killAll = (those) => Promise.all(those.map(kill));

function report(name, samples, more = {}) {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (part) => Math.round(1000 * sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]);
  const result = { bench: "e2b", name, n: sorted.length, p50_us: at(0.5), p99_us: at(0.99), min_us: at(0), max_us: at(1), ...more };
  console.log(JSON.stringify(result));
}

// Returns the milliseconds of each `run`. `run` and `after` receive the result of `before`; `before` and `after` are
// not measured.
async function measure(name, times, run, before = () => {}, after = () => {}) {
  if (!name.includes(only)) return;
  const samples = [];
  for (let i = -3; i < times; i++) { // the first three warm up
    const given = await before();
    const started = performance.now();
    const result = await run(given);
    if (i >= 0) samples.push(performance.now() - started);
    await after(given, result);
  }
  report(name, samples);
}

const box = await create();
const kibibyte = "x".repeat(1024);
try {
  await measure("isRunning (the client's own floor)", count, () => box.isRunning());
  await measure("Sandbox.create", count, create, undefined, (_, made) => kill(made));
  await measure("create and first command", count, async () => {
    const made = await create();
    await made.commands.run("true");
    return made;
  }, undefined, (_, made) => kill(made));
  await measure("commands.run('true')", count, () => box.commands.run("true"));
  await measure("files.write 1 KiB", count, () => box.files.write("bench", kibibyte));
  await box.files.write("bench", kibibyte);
  await measure("files.read 1 KiB", count, () => box.files.read("bench"));
  await measure("pause and connect", count, async () => {
    await box.pause();
    await box.connect({ timeoutMs });
  });
  const few = Math.max(3, Math.ceil(count / 20));
  await measure(`fork x ${forks}`, few, () => box.fork({ count: forks, timeoutMs }), undefined, async (_, made) => {
    const failed = made.find((each) => each instanceof Error);
    if (failed) throw failed;
    await Promise.all(made.map((each) => each.kill()));
  });
  await measure(`${atOnce} creates at once`, few, () => Promise.all(Array.from({ length: atOnce }, create)), undefined,
    (_, made) => killAll(made));
} finally {
  await killAll([...boxes]);
}
process.exit(0);
