// Builds the console: message types from proto/, then hashed assets and their .gz files.
// usage: node build.mjs [--generate] [OUT]    (--generate stops after the message types)
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const out = resolve(process.argv.slice(2).find((each) => !each.startsWith("-")) ?? join(root, "build/console"));

// Limits of the compressed files, in bytes: what the first view loads, and everything.
const firstMost = 100 * 1024;
const allMost = 500 * 1024;

// What the first page loads besides what main.tsx imports.
const firstPage = ["src/pages/overview/overview.tsx", "src/pages/overview/plots.tsx", "node_modules/uplot/dist/uPlot.esm.js"];

function fail(text) {
  console.error(`console/build.mjs: ${text}`);
  process.exit(1);
}

// Generated code carries its descriptors. The rules of Holt in them are for the daemon; without them
// the first view is 2 KiB smaller.
async function stripRules(path) {
  const { fromBinary, toBinary } = await import("@bufbuild/protobuf");
  const { FileDescriptorSetSchema } = await import("@bufbuild/protobuf/wkt");
  const set = fromBinary(FileDescriptorSetSchema, readFileSync(path));
  const strip = (each) => {
    if (each.options) delete each.options.$unknown;
    for (const name of ["messageType", "nestedType", "field", "enumType", "value", "service", "method"])
      (Array.isArray(each[name]) ? each[name] : []).forEach(strip);
  };
  set.file = set.file.filter((each) => each.name !== "holt/v1/options.proto");
  for (const file of set.file) {
    file.dependency = file.dependency.filter((each) => each !== "holt/v1/options.proto");
    strip(file);
  }
  writeFileSync(path, toBinary(FileDescriptorSetSchema, set));
  return set.file.map((each) => each.name).filter((each) => each.startsWith("holt/"));
}

async function generate() {
  const all = readdirSync(join(root, "proto/holt/v1")).map((each) => `holt/v1/${each}`);
  const gen = join(here, "gen");
  const set = join(gen, "protos");
  const protoc = (...args) => execFileSync("protoc", args, { stdio: "inherit" });
  rmSync(gen, { recursive: true, force: true });
  mkdirSync(gen);
  protoc("-I", join(root, "proto"), "--include_imports", `--descriptor_set_out=${set}`, ...all);
  const names = await stripRules(set);
  protoc(`--descriptor_set_in=${set}`, `--plugin=protoc-gen-es=${join(here, "node_modules/.bin/protoc-gen-es")}`,
    "--es_opt=target=ts", `--es_out=${gen}`, ...names);
}

// Outputs, and all that they import without import().
function closure(outputs, starts) {
  const found = new Set();
  const visit = (name) => {
    if (found.has(name)) return;
    found.add(name);
    for (const each of outputs[name].imports) {
      if (each.kind === "import-statement" && outputs[each.path]) visit(each.path);
    }
  };
  starts.forEach(visit);
  return [...found];
}

function page(script, style, preloads) {
  return readFileSync(join(here, "src/index.html"), "utf8")
    .replace("<!-- assets -->", [
      `<link rel="stylesheet" href="/assets/${style}">`,
      ...preloads.map((each) => `<link rel="modulepreload" href="/assets/${each}">`),
      `<script type="module" src="/assets/${script}"></script>`,
    ].join("\n"));
}

function write(folder, name, bytes) {
  const packed = gzipSync(bytes, { level: 9 });
  writeFileSync(join(folder, name), bytes);
  writeFileSync(join(folder, `${name}.gz`), packed);
  return packed.length;
}

async function bundle() {
  const esbuild = await import("esbuild");
  const result = await esbuild.build({
    absWorkingDir: here,
    entryPoints: ["src/main.tsx"],
    outdir: join(out, "assets"),
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    publicPath: "/assets/",
    bundle: true,
    splitting: true,
    format: "esm",
    minify: true,
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".svg": "file" },
    legalComments: "none",
    metafile: true,
    write: false,
    logLevel: "warning",
  });

  const outputs = result.metafile.outputs;
  const names = Object.keys(outputs);
  const script = names.find((each) => outputs[each].entryPoint === "src/main.tsx");
  const styles = names.filter((each) => each.endsWith(".css"));
  if (styles.length !== 1)
    fail(`${styles.length} style sheets (${styles.join(", ")}): import CSS in src/style/index.css only`);

  // A complete new folder replaces the old one, so that holtd never serves a mixture.
  const fresh = `${out}.new`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(join(fresh, "assets"), { recursive: true });
  const sizes = {};
  for (const file of result.outputFiles) {
    sizes[relative(here, file.path)] = write(join(fresh, "assets"), basename(file.path), file.contents);
  }
  const outputOf = (input) => names.find((each) => outputs[each].entryPoint === input) ?? fail(`no output of ${input}`);
  const first = [...closure(outputs, [script, ...firstPage.map(outputOf)]), styles[0]];
  const preloads = closure(outputs, [script, outputOf(firstPage[0])]).filter((each) => each !== script)
    .map((each) => basename(each));
  const html = write(fresh, "index.html", Buffer.from(page(basename(script), basename(styles[0]), preloads)));
  rmSync(out, { recursive: true, force: true });
  renameSync(fresh, out);

  const sum = (list) => list.reduce((total, each) => total + sizes[each], html);
  const view = sum(first);
  const all = sum(Object.keys(sizes));
  console.log(`console: first view ${(view / 1024).toFixed(1)} KiB, all ${(all / 1024).toFixed(1)} KiB compressed`);
  if (view > firstMost) fail(`the first view has ${view} bytes, more than ${firstMost}`);
  if (all > allMost) fail(`all files have ${all} bytes, more than ${allMost}`);
}

if (spawnSync(join(root, "tools/check-node"), [process.execPath], { stdio: "inherit" }).status !== 0) process.exit(1);
await generate();
if (!process.argv.includes("--generate")) await bundle();
