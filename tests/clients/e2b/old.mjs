// Old versions of the SDK, by domain: 1.5.0, the first that sends the token of a sandbox and the last
// generation that appends the id of the client to the id of a sandbox; and the first of 2.x.
import assert from "node:assert/strict";
import dns from "node:dns";
import { claim, eventually, finish } from "./lib.mjs";

const name = process.env.E2B_DOMAIN.split(":")[0];

// There is no name server for it here.
const { lookup } = dns;
dns.lookup = (host, options, done) => lookup(host.endsWith(name) ? process.env.E2B_DOMAIN_ADDRESS : host, options, done);
process.env.E2B_API_KEY = process.env.E2B_API_KEY.replace(/^holt_/, "e2b_"); // the form that they require
delete process.env.E2B_API_URL; // 1.x builds it from the domain

for (const alias of ["e2b-1.5", "e2b-2.0"]) {
  const { Sandbox } = await import(alias);
  const made = [];
  const create = async (opts = {}) => {
    const box = await Sandbox.create({ timeoutMs: 3600e3, requestTimeoutMs: 0, ...opts });
    made.push(box);
    return box;
  };

  for (const secure of [true, false])
    await claim(`${alias}_works_with_a_sandbox_${secure ? "of_secure" : "without_secure"}`, async () => {
      const box = await create({ secure });
      const ran = await box.commands.run("id -un; echo more >&2; exit 0");
      assert.equal(ran.stdout, "user\n");
      assert.equal(ran.stderr, "more\n");
      await box.files.write("note", "hello");
      assert.equal(await box.files.read("note"), "hello");
      assert.ok((await box.files.list("/home/user")).some((each) => each.name === "note"));
      await assert.rejects(box.commands.run("exit 3"), { exitCode: 3 });
    });

  await claim(`${alias}_reaches_a_port`, async () => {
    const box = await create({ secure: true });
    await box.files.write("web/index.html", "a page");
    await box.commands.run("python3 -m http.server --directory web 8000", { background: true, timeoutMs: 0 });
    await eventually(async () => (await fetch(`https://${box.getHost(8000)}/`)).status === 200);
    assert.equal(await (await fetch(`https://${box.getHost(8000)}/index.html`)).text(), "a page");
  });

  await claim(`${alias}_finds_and_ends_its_sandbox`, async () => {
    const box = await create({ secure: true, metadata: { test: alias } });
    await box.files.write("note", "kept");
    await box.setTimeout(1800e3);
    const info = await Sandbox.getInfo(box.sandboxId);
    assert.equal(info.sandboxId, box.sandboxId);
    assert.equal(info.metadata.test, alias);
    const again = await Sandbox.connect(box.sandboxId);
    assert.equal(await again.files.read("note"), "kept");
    assert.equal(await again.isRunning(), true);
    assert.equal(await Sandbox.kill(box.sandboxId), true);
    assert.equal(await Sandbox.kill(box.sandboxId), false);
    assert.equal(await again.isRunning(), false);
  });

  for (const box of made) await box.kill().catch(() => {});
}

finish();
