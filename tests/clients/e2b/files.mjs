// Files: write and read in every form (text, bytes, blob, stream, many at once, gzip, octet-stream, 100
// MiB), list, info, make, rename, remove, exists, metadata, users, signed addresses and their expiry,
// watching (recursive too), a full disk.
// usage: node files.mjs    (the daemon's --quota is small enough to be filled)
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { AuthenticationError, FileNotFoundError, FileType, FilesystemEventType, getSignature, InvalidArgumentError, NotEnoughSpaceError,
  Sandbox, SandboxError, TimeoutError } from "e2b";
import { apiUrl, call, callSandbox, claim, eventually, finish, pattern, pause, refused, run, sandbox, stdout } from "./lib.mjs";

const streamOf = (bytes, size = 65536) => new ReadableStream({
  start(controller) {
    for (let i = 0; i < bytes.length; i += size) controller.enqueue(bytes.subarray(i, i + size));
    controller.close();
  },
});
const same = (got, wanted) => assert.ok(Buffer.from(got).equals(Buffer.from(wanted)), `${got.length} bytes are not the ${wanted.length}`);

await claim("a_file_is_written_and_read_in_every_form", async () => {
  const { files, ...box } = await sandbox();
  assert.ok(box.sandboxId);
  const text = "zwölf\n€\0end";
  const bytes = pattern(300000);
  assert.deepEqual(await files.write("a.txt", text), { name: "a.txt", path: "/home/user/a.txt", type: FileType.FILE, metadata: undefined });
  assert.equal(await files.read("a.txt"), text);
  assert.equal(await files.read("/home/user/a.txt", { format: "text" }), text);
  for (const data of [bytes.buffer, new Blob([bytes]), streamOf(bytes)]) {
    await files.write("b", data);
    same(await files.read("b", { format: "bytes" }), bytes);
  }
  same(await (await files.read("b", { format: "blob" })).arrayBuffer(), bytes);
  const chunks = [];
  for await (const chunk of await files.read("b", { format: "stream" })) chunks.push(chunk);
  same(Buffer.concat(chunks), bytes);
  await files.write("b", "short"); // which truncates
  assert.equal(await files.read("b"), "short");
  await files.write("empty", "");
  assert.equal(await files.read("empty"), "");
  assert.equal((await files.read("empty", { format: "bytes" })).length, 0);
});

await claim("octets_and_gzip_arrive_as_what_they_were", async () => {
  const box = await sandbox();
  const bytes = pattern(1 << 20);
  const wanted = createHash("sha256").update(bytes).digest("hex");
  let n = 0;
  for (const opts of [{ useOctetStream: true }, { useOctetStream: false }, { gzip: true }, { gzip: true, useOctetStream: true }]) {
    for (const data of [bytes.buffer, streamOf(bytes)]) {
      const path = `f${n++}`;
      await box.files.write(path, data, opts);
      assert.equal((await stdout(box, `sha256sum < ${path}`)).split(" ")[0], wanted, JSON.stringify(opts));
      same(await box.files.read(path, { format: "bytes", gzip: true }), bytes);
    }
  }
});

await claim("a_hundred_mebibytes_go_in_and_out", async () => {
  const box = await sandbox();
  const bytes = pattern(100 << 20);
  const wanted = createHash("sha256").update(bytes).digest("hex");
  for (const opts of [{}, { useOctetStream: true }]) {
    await box.files.write("big", new Blob([bytes]), opts);
    assert.equal((await stdout(box, "sha256sum < big")).split(" ")[0], wanted);
  }
  const hash = createHash("sha256");
  for await (const chunk of await box.files.read("big", { format: "stream", streamIdleTimeoutMs: 0 })) hash.update(chunk);
  assert.equal(hash.digest("hex"), wanted);
});

await claim("several_files_are_written_at_once", async () => {
  const { files } = await sandbox();
  const entries = [{ path: "d/one", data: "1" }, { path: "/tmp/two", data: new Blob(["2"]) }, { path: "d/e/three", data: pattern(9).buffer }];
  const written = await files.write(entries);
  assert.deepEqual(written.map((each) => each.path), ["/home/user/d/one", "/tmp/two", "/home/user/d/e/three"]);
  assert.equal(await files.read("/tmp/two"), "2");
  const again = await files.writeFiles([{ path: "d/one", data: "11" }]);
  assert.equal(again.length, 1);
  assert.equal(await files.read("d/one"), "11");
  assert.deepEqual(await files.writeFiles([]), []);
});

await claim("what_is_written_is_the_users", async () => {
  const box = await sandbox();
  await box.files.write("new/dir/f", "x");
  assert.equal(await stdout(box, "stat -c '%U %G %a' new/dir/f; stat -c %U new new/dir"), "user user 644\nuser\nuser\n");
  await box.files.write("f", "x", { user: "root" });
  assert.equal(await stdout(box, "cat f; stat -c %U f", { user: "root" }), "xroot\n"); // relative to /root
  await refused(AuthenticationError, box.files.read("a", { user: "nobodyhere" }));
  await refused(AuthenticationError, box.files.write("a", "x", { user: "nobodyhere" }));
  await refused(AuthenticationError, box.files.list(".", { user: "nobodyhere" }));
});

await claim("names_of_any_kind_work", async () => {
  const { files } = await sandbox();
  for (const name of ["with space", "ü€😀", "a&b=c?d#e%20f+g", "quote\"'", ".hidden", "line\nbreak", "a".repeat(255)]) {
    await files.write(`n/${name}`, name);
    assert.equal(await files.read(`n/${name}`), name);
    assert.ok((await files.list("n")).some((each) => each.name === name), name);
    assert.equal(await files.exists(`n/${name}`), true);
  }
});

await claim("info_says_what_a_file_is", async () => {
  const box = await sandbox();
  await box.files.write("f", "12345");
  await run(box, "chmod 640 f; mkdir d; ln -s f link; ln -s nowhere broken; touch -d 2001-02-03T04:05:06.5Z f");
  const file = await box.files.getInfo("f");
  const { name, path, type, size, mode, permissions, owner, group } = file;
  assert.deepEqual({ name, path, type, size, mode, permissions, owner, group }, {
    name: "f", path: "/home/user/f", type: FileType.FILE, size: 5, mode: 0o640, permissions: "-rw-r-----", owner: "user", group: "user",
  });
  assert.equal(file.modifiedTime.toISOString(), "2001-02-03T04:05:06.500Z");
  assert.equal(file.symlinkTarget, undefined);
  const dir = await box.files.getInfo("d");
  assert.deepEqual([dir.type, dir.permissions.slice(0, 4)], [FileType.DIR, "drwx"]);
  const link = await box.files.getInfo("link");
  assert.deepEqual([link.type, link.mode, link.symlinkTarget, link.path], [FileType.FILE, 0o640, "/home/user/f", "/home/user/link"]);
  assert.equal((await box.files.getInfo("/etc/passwd")).owner, "root");
  await refused(FileNotFoundError, box.files.getInfo("nope"));
});

await claim("a_directory_is_listed_to_a_depth", async () => {
  const box = await sandbox();
  const { files } = box;
  await run(box, "mkdir -p t/b/c/d t/a; touch t/z t/b/f t/b/c/g; ln -s b t/link");
  const paths = async (depth) => (await files.list("t", depth === undefined ? {} : { depth })).map((each) => each.path.replace("/home/user/t/", ""));
  assert.deepEqual(await paths(), ["a", "b", "link", "z"]);
  assert.deepEqual(await paths(1), ["a", "b", "link", "z"]);
  assert.deepEqual(await paths(2), ["a", "b", "b/c", "b/f", "link", "z"]);
  assert.deepEqual(await paths(9), ["a", "b", "b/c", "b/c/d", "b/c/g", "b/f", "link", "z"]);
  assert.deepEqual((await files.list("t/link")).map((each) => each.name), ["c", "f"]);
  assert.deepEqual(await files.list("t/a"), []);
  await refused(InvalidArgumentError, files.list("t", { depth: 0 }));
  await refused(InvalidArgumentError, files.list("t/z"));
  await refused(FileNotFoundError, files.list("nope"));
});

await claim("directories_and_files_are_made_renamed_and_removed", async () => {
  const box = await sandbox();
  const { files } = box;
  assert.equal(await files.makeDir("a/b/c"), true);
  assert.equal(await files.makeDir("a/b/c"), false);
  assert.equal(await stdout(box, "stat -c %U a a/b"), "user\nuser\n");
  await files.write("f", "1");
  await refused(InvalidArgumentError, files.makeDir("f"));
  const moved = await files.rename("f", "new/parent/g");
  assert.deepEqual([moved.name, moved.path], ["g", "/home/user/new/parent/g"]);
  assert.equal(await files.exists("f"), false);
  assert.equal(await files.read("new/parent/g"), "1");
  await refused(FileNotFoundError, files.rename("nope", "other"));
  await files.rename("a", "moved");
  assert.equal(await files.exists("moved/b/c"), true);
  await files.remove("moved");
  assert.equal(await files.exists("moved"), false);
  await files.remove("moved"); // a second time is no error
});

await claim("a_path_that_is_none_is_refused_with_its_class", async () => {
  const box = await sandbox();
  const { files } = box;
  await refused(FileNotFoundError, files.read("no/such"), /does not exist/);
  await refused(InvalidArgumentError, files.read("/tmp"));
  await refused(InvalidArgumentError, files.write("/tmp", "x"));
  await files.write("f", "x");
  await assert.rejects(files.write("f/below", "x"), SandboxError);
  const missing = await callSandbox(box, "GET", "/files?path=nope");
  assert.deepEqual([missing.status, (await missing.json()).code], [404, 404]);
  assert.equal((await callSandbox(box, "GET", "/files?path=/tmp")).status, 400);
});

await claim("metadata_is_kept_as_attributes", async () => {
  const box = await sandbox();
  const { files } = box;
  const metadata = { owner: "red", "content-kind": "a b" };
  assert.deepEqual((await files.write("f", "x", { metadata })).metadata, metadata);
  assert.deepEqual((await files.getInfo("f")).metadata, metadata);
  assert.deepEqual((await files.list(".")).find((each) => each.name === "f").metadata, metadata);
  assert.deepEqual(JSON.parse(await stdout(box, `python3 -c 'import json, os; print(json.dumps({k: os.getxattr("f", k).decode() for k in os.listxattr("f")}))'`)),
    { "user.e2b.owner": "red", "user.e2b.content-kind": "a b" });
  await run(box, `python3 -c 'import os; os.setxattr("f", "user.e2b.own", b"guest")'`);
  assert.deepEqual((await files.getInfo("f")).metadata, { ...metadata, own: "guest" });
  await files.write("f", "y", { metadata: { only: "1" }, useOctetStream: true });
  assert.deepEqual((await files.getInfo("f")).metadata, { only: "1" });
  await files.write("f", "z");
  assert.deepEqual((await files.getInfo("f")).metadata ?? {}, {});
  for (const bad of [{ ["k".repeat(247)]: "v" }, { k: "v".repeat(4097) }])
    await assert.rejects(files.write("g", "x", { metadata: bad }));
});

// --- signed addresses ----------------------------------------------------------------------------

const signed = (box, path, operation, expirationInSeconds) =>
  getSignature({ path, operation, user: undefined, expirationInSeconds, envdAccessToken: box.envdAccessToken });
const form = (name, data) => {
  const body = new FormData();
  body.append("file", new Blob([data]), name);
  return body;
};

await claim("signed_addresses_work_without_anything_else", async () => {
  const box = await sandbox();
  const other = await sandbox();
  for (const opts of [{}, { useSignatureExpiration: 100000 }, { user: "root" }, { user: "user", useSignatureExpiration: 100000 }]) {
    const path = `/tmp/signed-${opts.user ?? "none"}`;
    const up = await fetch(await box.uploadUrl(path, opts), { method: "POST", body: form("ignored", "sent") });
    assert.deepEqual([up.status, await up.json()], [200, [{ name: path.slice(5), path, type: "file" }]]);
    const down = await fetch(await box.downloadUrl(path, opts));
    assert.deepEqual([down.status, await down.text()], [200, "sent"]);
  }
  assert.equal(await other.files.exists("/tmp/signed-none"), false);
  const anywhere = await fetch(await box.uploadUrl(), { method: "POST", body: form("/tmp/named-by-its-part", "x") });
  assert.equal(anywhere.status, 200);
  assert.equal(await box.files.read("/tmp/named-by-its-part"), "x");
});

await claim("signatures_that_are_wrong_or_late_are_refused", async () => {
  const box = await sandbox();
  await box.files.write("/tmp/f", "x");
  const get = async (address) => {
    const response = await fetch(address);
    return [response.status, (await response.json()).message];
  };
  assert.deepEqual(await get(await box.downloadUrl("/tmp/f", { useSignatureExpiration: -100 })), [401, "signature is already expired"]);
  const late = await fetch(await box.uploadUrl("/tmp/f", { useSignatureExpiration: -100 }), { method: "POST", body: form("f", "y") });
  assert.equal(late.status, 401);
  assert.match((await late.json()).message, /signature is already expired/);
  const direct = (query) => callSandbox(box, "GET", `/files?path=/tmp/f${query}`, { token: null });
  const message = async (query) => {
    const response = await direct(query);
    return [response.status, (await response.json()).message];
  };
  assert.deepEqual(await message(""), [401, "missing signature query parameter"]);
  assert.deepEqual(await message("&signature=v1_wrong"), [401, "invalid signature"]);
  const { signature } = await signed(box, "/tmp/f", "read");
  assert.equal((await direct(`&signature=${encodeURIComponent(signature)}`)).status, 200);
  const { signature: forWrite } = await signed(box, "/tmp/f", "write");
  assert.deepEqual(await message(`&signature=${encodeURIComponent(forWrite)}`), [401, "invalid signature"]);
  const address = new URL(await box.downloadUrl("/tmp/f", { useSignatureExpiration: 1000 }));
  address.searchParams.set("signature_expiration", "9999999999"); // not what was signed
  assert.notEqual((await fetch(address)).status, 200);
  assert.equal(await box.files.read("/tmp/f"), "x");
  await box.kill();
  assert.notEqual((await fetch(`${apiUrl}/files?path=/tmp/f&signature=${encodeURIComponent(signature)}`)).status, 200);
});

await claim("a_sandbox_made_without_secure_needs_its_token_and_the_sdk_sends_it", async () => {
  const made = await call("POST", "/sandboxes", { templateID: "base", timeout: 600 });
  assert.equal(made.status, 201);
  assert.equal(typeof made.json.envdAccessToken, "string");
  const id = { sandboxId: made.json.sandboxID };
  try {
    assert.equal((await callSandbox(id, "POST", "/files?path=/tmp/f", { body: form("f", "open") })).status, 401);
    assert.equal((await callSandbox(id, "GET", "/files?path=/tmp/f")).status, 401);
    const box = await Sandbox.connect(id.sandboxId);
    await box.files.write("/tmp/f", "closed");
    assert.equal(await (await fetch(await box.downloadUrl("/tmp/f"))).text(), "closed");
    assert.equal((await box.commands.run("cat /tmp/f")).stdout, "closed");
  } finally {
    await call("DELETE", `/sandboxes/${id.sandboxId}`);
  }
});

// --- watching ------------------------------------------------------------------------------------

const { CHMOD, CREATE, REMOVE, RENAME, WRITE } = FilesystemEventType;

async function watched(box, path, opts = {}) {
  const events = [];
  const handle = await box.files.watchDir(path, (event) => { events.push(event); }, { timeoutMs: 0, ...opts });
  const has = (type, name) => eventually(() => events.some((each) => each.type === type && each.name === name));
  return { events, handle, has };
}

await claim("a_watch_tells_what_happens", async () => {
  const box = await sandbox();
  await box.files.makeDir("w/sub");
  const { events, handle, has } = await watched(box, "w");
  await box.files.write("w/a", "1");
  await has(WRITE, "a");
  await run(box, "touch w/b; chmod 600 w/b; mv w/b w/c; rm w/a");
  await has(CREATE, "b");
  await has(CHMOD, "b");
  await has(RENAME, "b");
  await has(REMOVE, "a");
  await box.files.write("w/sub/deep", "1");
  await box.files.write("w/last", "1");
  await has(WRITE, "last");
  assert.ok(!events.some((each) => each.name.includes("deep"))); // not recursive
  assert.ok(events.every((each) => each.entry === undefined));
  await handle.stop();
  await box.files.write("w/after", "1");
  await pause(100);
  assert.ok(!events.some((each) => each.name === "after"));
});

await claim("a_recursive_watch_sees_directories_that_come_later", async () => {
  const box = await sandbox();
  await box.files.makeDir("w/old");
  const { events, handle, has } = await watched(box, "w", { recursive: true, includeEntry: true });
  await box.files.write("w/old/a", "1");
  await has(WRITE, "old/a");
  await run(box, "mkdir -p w/new/deep");
  await has(CREATE, "new");
  await eventually(async () => { // a watch of a new directory takes its time
    await box.files.write("w/new/deep/b", "12345");
    return events.some((each) => each.name === "new/deep/b");
  });
  await has(WRITE, "new/deep/b");
  const { entry } = events.findLast((each) => each.type === WRITE && each.name === "new/deep/b");
  assert.deepEqual([entry.path, entry.type, entry.owner], ["/home/user/w/new/deep/b", FileType.FILE, "user"]);
  await box.files.remove("w/old");
  await has(REMOVE, "old/a");
  assert.ok(events.filter((each) => [REMOVE, RENAME].includes(each.type)).every((each) => each.entry === undefined));
  await handle.stop();
});

await claim("a_watch_that_cannot_be_is_refused", async () => {
  const box = await sandbox();
  await box.files.write("f", "x");
  await refused(FileNotFoundError, box.files.watchDir("nope", () => {}));
  await refused(InvalidArgumentError, box.files.watchDir("f", () => {}));
});

await claim("a_watch_ends_with_its_sandbox_or_its_time", async () => {
  const box = await sandbox();
  await box.files.makeDir("w");
  const watch = async (timeoutMs) => {
    const exit = {};
    await box.files.watchDir("w", () => {}, { timeoutMs, onExit: (error) => { exit.error = error ?? null; } });
    return exit;
  };
  const lasting = await watch(0);
  // One whose time is over before it has begun is refused.
  const short = await watch(1000).catch((error) => error instanceof TimeoutError ? watch(30e3) : Promise.reject(error));
  await eventually(() => short.error !== undefined);
  assert.equal(lasting.error, undefined);
  await box.kill();
  await eventually(() => lasting.error !== undefined);
  assert.ok(lasting.error instanceof Error);
});

await claim("a_hundred_watches_leave_files_alone", async () => {
  const { files } = await sandbox();
  await files.makeDir("many");
  let heard = 0;
  const watches = await Promise.all(Array.from({ length: 100 }, () => files.watchDir("many", () => { heard++; }, { timeoutMs: 0 })));
  await files.write("many/f", "seen");
  assert.equal(await files.read("many/f"), "seen");
  await eventually(() => heard >= 100);
  await Promise.all(watches.map((each) => each.stop()));
});

await claim("the_polled_watch_of_other_clients_works", async () => {
  const box = await sandbox();
  await box.files.makeDir("w");
  const rpc = async (method, message) => {
    const response = await callSandbox(box, "POST", `/filesystem.Filesystem/${method}`, {
      headers: { "Content-Type": "application/json", "Connect-Protocol-Version": "1" }, body: JSON.stringify(message),
    });
    return { status: response.status, json: await response.json() };
  };
  const { json: { watcherId } } = await rpc("CreateWatcher", { path: "w", recursive: true });
  assert.equal(typeof watcherId, "string");
  await box.files.write("w/a", "1");
  const events = [];
  await eventually(async () => {
    events.push(...(await rpc("GetWatcherEvents", { watcherId })).json.events ?? []);
    return events.some((each) => each.type === "EVENT_TYPE_WRITE" && each.name === "a");
  });
  assert.equal((await rpc("RemoveWatcher", { watcherId })).status, 200);
  assert.deepEqual([(await rpc("GetWatcherEvents", { watcherId })).status, (await rpc("GetWatcherEvents", { watcherId })).json.code], [404, "not_found"]);
});

// --- a full disk ---------------------------------------------------------------------------------

await claim("a_full_disk_is_said_to_be_full", async () => {
  const box = await sandbox();
  await run(box, "cat /dev/zero > fill 2>/dev/null; sync; cat /dev/zero > rest 2>/dev/null; sync; true");
  await refused(NotEnoughSpaceError, box.files.write("big", pattern(8 << 20).buffer));
  await refused(NotEnoughSpaceError, box.files.write("big", pattern(8 << 20).buffer, { useOctetStream: true }));
  const response = await callSandbox(box, "POST", "/files?path=/home/user/big", {
    headers: { "Content-Type": "application/octet-stream" }, body: pattern(8 << 20),
  });
  assert.equal(response.status, 507);
  await response.arrayBuffer();
  await box.files.remove("fill");
  await box.files.remove("rest");
  await eventually(async () => {
    try {
      await box.files.write("small", "fits");
      return true;
    } catch {
      return false; // what was removed comes free a little later
    }
  });
  assert.equal(await box.files.read("small"), "fits");
});

finish();
