// Volumes and their content, secrets, teams: small, but stored.
import assert from "node:assert/strict";
import { InvalidArgumentError, Secret as PlainSecret, SecretNotFoundError, VolumeFileType, VolumeNotFoundError, VolumePathNotFoundError } from "e2b";
import { call, claim, finish, pattern, refused, run, sandbox, Secret, stdout, Volume } from "./lib.mjs";

const fresh = (word) => `${word}-${process.pid}`;

async function withVolume(name, body) {
  const volume = await Volume.create(fresh(name));
  try {
    await body(volume);
  } finally {
    await Volume.destroy(volume.volumeId);
  }
}

await claim("volumes_come_and_go", () => withVolume("come", async (volume) => {
  assert.equal(volume.name, fresh("come"));
  const info = await Volume.getInfo(volume.volumeId);
  assert.deepEqual([info.volumeId, info.name, info.token], [volume.volumeId, volume.name, volume.token]);
  assert.ok((await Volume.list()).some((each) => each.volumeId === volume.volumeId));
  const again = await Volume.connect(volume.volumeId);
  assert.equal(again.name, volume.name);
  assert.equal(await Volume.destroy(volume.volumeId), true);
  assert.equal(await Volume.destroy(volume.volumeId), false);
  await refused(VolumeNotFoundError, Volume.getInfo(volume.volumeId));
}));

await claim("a_volume_holds_files", () => withVolume("files", async (volume) => {
  const bytes = pattern(100000);
  const made = await volume.makeDir("/d/e", { force: true, mode: 0o750 });
  assert.deepEqual([made.type, made.mode & 0o777], [VolumeFileType.DIRECTORY, 0o750]);
  const stat = await volume.writeFile("/d/f", "text ü", { mode: 0o600, uid: 1000, gid: 1000 });
  assert.deepEqual([stat.name, stat.path, stat.size, stat.type], ["f", "/d/f", 7, VolumeFileType.FILE]);
  assert.equal(await volume.readFile("/d/f"), "text ü");
  await volume.writeFile("/d/b", bytes.buffer, { force: true });
  assert.deepEqual(await volume.readFile("/d/b", { format: "bytes" }), bytes);
  assert.equal((await volume.readFile("/d/b", { format: "blob" })).size, bytes.length);
  const chunks = [];
  for await (const chunk of await volume.readFile("/d/b", { format: "stream" })) chunks.push(chunk);
  assert.ok(Buffer.concat(chunks).equals(Buffer.from(bytes)));
  assert.deepEqual((await volume.list("/d")).map((each) => each.name).sort(), ["b", "e", "f"]);
  assert.ok((await volume.list("/", { depth: 2 })).some((each) => each.path === "/d/f"));
  const changed = await volume.updateMetadata("/d/f", { mode: 0o644, uid: 0, gid: 0 });
  assert.deepEqual([changed.mode & 0o777, changed.uid, changed.gid], [0o644, 0, 0]);
  assert.ok((await volume.getInfo("/d/f")).mtime instanceof Date);
  assert.equal(await volume.exists("/d/f"), true);
  await volume.remove("/d/f");
  assert.equal(await volume.exists("/d/f"), false);
  await refused(VolumePathNotFoundError, volume.readFile("/d/f"));
  await refused(VolumePathNotFoundError, volume.getInfo("/../../etc/passwd"));
}));

await claim("a_volume_is_mounted_in_sandboxes", () => withVolume("mounted", async (volume) => {
  await volume.writeFile("/f", "from outside");
  const box = await sandbox({ volumeMounts: { "/mnt/v": volume } });
  assert.deepEqual((await box.getInfo()).volumeMounts, [{ name: volume.name, path: "/mnt/v" }]);
  assert.equal(await stdout(box, "cat /mnt/v/f"), "from outside");
  await run(box, "echo inside > /mnt/v/g", { user: "root" });
  assert.equal(await volume.readFile("/g"), "inside\n");
  await box.files.write("/mnt/v/h", "of the user");
  assert.deepEqual([await volume.readFile("/h"), (await volume.getInfo("/h")).uid], ["of the user", 1000]);
  await volume.writeFile("/h", "of the client", { force: true });
  await box.files.write("/mnt/v/h", await box.files.read("/mnt/v/h") + ", too");
  await assert.rejects(Volume.destroy(volume.volumeId), /mounted in sandbox/);
  const other = await sandbox({ volumeMounts: { "/data": volume.name } });
  assert.equal(await stdout(other, "cat /data/g"), "inside\n");
  await box.kill();
  await other.kill();
  assert.equal(await volume.readFile("/g"), "inside\n");
  assert.equal(await volume.readFile("/h"), "of the client, too");
}));

await claim("a_volume_needs_its_own_token", () => withVolume("token", async (volume) => {
  const address = `${process.env.E2B_VOLUME_API_URL}/volumecontent/${volume.volumeId}/path?path=/`;
  assert.equal((await fetch(address)).status, 401);
  assert.equal((await fetch(address, { headers: { Authorization: "Bearer wrong" } })).status, 401);
  assert.equal((await fetch(address, { headers: { Authorization: `Bearer ${volume.token}` } })).status, 200);
}));

await claim("secrets_are_kept_and_not_told", async () => {
  const name = fresh("SECRET");
  const made = await Secret.create(name, "hidden-value", { metadata: { use: "test" } });
  assert.deepEqual([made.name, made.metadata], [name.toLowerCase(), { use: "test" }]);
  assert.equal(await Secret.exists(made.secretId), true);
  const updated = await Secret.update(made.secretId, "another-value");
  assert.ok(updated.version > made.version);
  const info = await Secret.getInfo(made.secretId);
  assert.equal(info.version, updated.version);
  assert.ok(info.createdAt instanceof Date && info.updatedAt >= info.createdAt);
  const listed = [];
  const pages = Secret.list({ limit: 1 });
  while (pages.hasNext) listed.push(...await pages.nextItems());
  assert.ok(listed.some((each) => each.secretId === made.secretId));
  for (const path of ["/secrets", `/secrets/${made.secretId}`]) {
    const { text } = await call("GET", path);
    assert.ok(!text.includes("hidden-value") && !text.includes("another-value"));
  }
  assert.equal(await Secret.destroy(made.secretId), true);
  assert.equal(await Secret.destroy(made.secretId), false);
  assert.equal(await Secret.exists(made.secretId), false);
  await refused(SecretNotFoundError, Secret.getInfo(made.secretId));
});

await claim("what_is_filled_in_later_is_only_text", async () => {
  assert.equal(PlainSecret.fill("KEY"), "${e2b.secrets.KEY}");
  assert.throws(() => PlainSecret.fill("{"), InvalidArgumentError);
  assert.deepEqual(PlainSecret.iamToken({ audience: "a", tokenType: "JWT-SVID" }), { audience: "a", tokenType: "JWT-SVID" });
});

await claim("there_is_one_team", async () => {
  const { status, json } = await call("GET", "/teams");
  assert.equal(status, 200);
  assert.equal(json.filter((each) => each.isDefault).length, 1);
  for (const key of ["teamID", "name", "apiKey"]) assert.equal(typeof json[0][key], "string", key);
});

finish();
