// Templates: the fluent builder's steps, builds in the fore- and background, logs, failures, the cache,
// start and ready commands, names, tags, sizes; and what a sandbox made from them has.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BuildError, defaultBuildLogger, LogEntry, Sandbox as Plain, TemplateError, waitForFile, waitForPort, waitForProcess, waitForTimeout, waitForURL }
  from "e2b";
import { call, callSandbox, claim, eventually, finish, refused, run, sandbox, stdout, Template } from "./lib.mjs";

const context = mkdtempSync(join(tmpdir(), "holt-e2b-context."));
process.on("exit", () => rmSync(context, { recursive: true }));
const templates = [];
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/;
let count = 0;
const fresh = (word) => `${word}-${process.pid}-${count++}`;
const builder = () => Template({ fileContextPath: context });

async function build(template, name = fresh("built"), opts = {}) {
  const logs = [];
  const info = await Template.build(template, name, { onBuildLogs: (entry) => { logs.push(entry); }, ...opts });
  templates.push(info.templateId);
  return { ...info, logs, text: logs.map((each) => each.message).join("\n") };
}

// A failing build has logs too.
async function fails(template, message) {
  const logs = [];
  const error = await refused(BuildError, Template.build(template, fresh("fails"), { onBuildLogs: (entry) => { logs.push(entry); } }), message);
  return { error, text: logs.map((each) => each.message).join("\n") };
}

await claim("every_step_is_seen_in_the_sandbox", async () => {
  mkdirSync(join(context, "dir/sub"), { recursive: true });
  writeFileSync(join(context, "one.txt"), "one\n");
  writeFileSync(join(context, "dir/two.txt"), "two\n");
  writeFileSync(join(context, "dir/sub/three.txt"), "three\n");
  symlinkSync("two.txt", join(context, "dir/link"));
  const template = builder().fromBaseImage()
    .setEnvs({ BUILT: "with this", PLACE: "/srv" })
    .setUser("root")
    .runCmd("echo by $(whoami) with \"$BUILT\" > /by-root")
    .makeDir(["/srv/a", "/srv/b"], { mode: 0o700 })
    .makeSymlink("/srv/a", "/srv/link")
    .copy("one.txt", "/srv/one.txt", { mode: 0o600, user: "root" })
    .copyItems([{ src: "dir", dest: "/srv/dir" }, { src: ["one.txt", "dir/two.txt"], dest: "/srv/both/" }])
    .runCmd(["echo 1 > /srv/list", "echo 2 >> /srv/list"])
    .runCmd("touch /srv/gone /srv/old")
    .remove("/srv/gone")
    .rename("/srv/old", "/srv/new")
    .setUser("user")
    .setWorkdir("/home/user/work")
    .runCmd("pwd > where; whoami > who")
    .runCmd("id -u > /tmp/as-root", { user: "root" });
  assert.match(Template.toDockerfile(template), /WORKDIR \/home\/user\/work/);
  assert.equal(JSON.parse(await Template.toJSON(template)).fromImage, "e2bdev/base");
  const name = fresh("steps");
  const built = await build(template, name);
  assert.equal(built.name, name);
  assert.ok(built.templateId && built.buildId);
  assert.ok(built.logs.every((each) => each instanceof LogEntry));
  const box = await sandbox({ template: name });
  assert.equal((await box.getInfo()).templateId, built.templateId);
  assert.equal(await stdout(box, "cat /by-root"), "by root with with this\n");
  assert.equal(await stdout(box, "stat -c '%a %U' /srv/a /srv/one.txt", { user: "root" }), "700 root\n600 root\n");
  assert.equal(await stdout(box, "readlink /srv/link; ls /srv"), "/srv/a\na\nb\nboth\ndir\nlink\nlist\nnew\none.txt\n");
  assert.equal(await stdout(box, "cat /srv/dir/two.txt /srv/dir/sub/three.txt /srv/both/one.txt /srv/both/two.txt /srv/list", { user: "root" }),
    "two\nthree\none\ntwo\n1\n2\n");
  assert.equal(await stdout(box, "pwd; cat where who; cat /tmp/as-root; echo $BUILT $PLACE"), "/home/user/work\n/home/user/work\nuser\n0\nwith this /srv\n");
});

await claim("a_template_is_built_upon_another", async () => {
  const first = await build(builder().fromTemplate("base").runCmd("echo 1 > first"));
  const second = await build(builder().fromTemplate(first.name).runCmd("cat first first > second"));
  const box = await sandbox({ template: second.name });
  assert.equal(await stdout(box, "cat second"), "1\n1\n");
});

await claim("the_images_people_start_from_are_the_local_root", async () => {
  for (const template of [builder().fromUbuntuImage("22.04"), builder().fromDebianImage(), builder().fromPythonImage("3.12"),
    builder().fromImage("docker.io/library/ubuntu:22.04"),
    builder().fromDockerfile("FROM e2bdev/base\nENV A=b\nRUN echo $A > /tmp/made\nWORKDIR /tmp\nUSER user\n")]) {
    const { fromImage } = JSON.parse(await Template.toJSON(template));
    const { name, logs } = await build(template.runCmd("echo ok > /tmp/ok"));
    const said = logs.map((each) => each.message).find((each) => each.startsWith("image "));
    assert.equal(said, `image '${fromImage}' is not fetched: the template 'base' is used instead`);
    const box = await sandbox({ template: name });
    assert.equal(await stdout(box, "cat /tmp/ok"), "ok\n");
    await box.kill();
  }
});

await claim("an_image_with_the_name_of_a_template_is_that", async () => {
  const { name } = await build(builder().fromTemplate("base").runCmd("echo mine > /tmp/mine"));
  const { name: above, text } = await build(builder().fromImage(name).runCmd("cat /tmp/mine > /tmp/seen"));
  assert.doesNotMatch(text, /not fetched/);
  const box = await sandbox({ template: above });
  assert.equal(await stdout(box, "cat /tmp/seen"), "mine\n");
});

await claim("images_that_are_not_here_are_refused_by_name", async () => {
  const credentials = { username: "u", password: "secret" };
  const elsewhere = [builder().fromFedoraImage(), builder().fromAlpineImage(), builder().fromArchImage(), builder().fromNodeImage(),
    builder().fromBunImage(), builder().fromImage("registry.invalid/none:1", credentials),
    builder().fromAWSRegistry("registry.invalid/aws:1", { accessKeyId: "a", secretAccessKey: "b", region: "c" }),
    builder().fromGCPRegistry("registry.invalid/gcp:1", { serviceAccountJSON: {} })];
  for (const template of elsewhere) {
    const { fromImage } = JSON.parse(await Template.toJSON(template));
    const { error } = await fails(template.runCmd("true"));
    assert.ok(error.message.includes(fromImage), error.message);
    assert.match(error.message, /holt template import/);
    assert.ok(!error.message.includes("secret"));
  }
  await fails(builder().fromTemplate("no-such-template").runCmd("true"), /no-such-template/);
});

await claim("what_a_build_says_is_heard", async () => {
  const quiet = defaultBuildLogger({ minLevel: "error" });
  const built = await build(builder().fromTemplate("base").runCmd("echo said-aloud; echo said-in-anger >&2"), fresh("logs"));
  assert.match(built.text, /said-aloud/);
  assert.match(built.text, /said-in-anger/);
  built.logs.forEach((each) => quiet(each));
  assert.ok(built.logs.every((each) => each.timestamp instanceof Date && ["debug", "info", "warn", "error"].includes(each.level)));
});

await claim("a_long_log_comes_in_pieces_and_whole", async () => {
  const built = await build(builder().fromTemplate("base").runCmd("for i in $(seq 1000); do echo line-$i-end; done"), fresh("long"));
  for (const i of [1, 100, 101, 500, 1000]) assert.ok(built.text.includes(`line-${i}-end`), `line ${i}`);
});

await claim("a_step_that_fails_fails_the_build", async () => {
  const { error, text } = await fails(builder().fromTemplate("base").runCmd("true").runCmd("echo why; exit 3"));
  assert.ok(error.message.length > 0);
  assert.match(text, /why/);
  await fails(builder().fromTemplate("base").setUser("root123").runCmd("whoami"), /invalid username: 'root123'/);
  await assert.rejects(Template.build(builder().fromTemplate("base").copy("no-such-file", "/tmp/"), fresh("fails")), /no-such-file/);
});

await claim("a_build_goes_on_in_the_background", async () => {
  const name = fresh("background");
  const info = await Template.buildInBackground(builder().fromTemplate("base").runCmd("echo there > there"), name);
  templates.push(info.templateId);
  const first = await Template.getBuildStatus(info);
  assert.deepEqual([first.buildID, first.templateID], [info.buildId, info.templateId]);
  assert.ok(["waiting", "building", "ready"].includes(first.status));
  await eventually(async () => (await Template.getBuildStatus(info, { logsOffset: 0 })).status === "ready");
  const whole = await Template.getBuildStatus(info, { logsOffset: 0 });
  assert.ok(whole.logEntries.length > 0 && whole.logEntries.length <= 100);
  assert.deepEqual((await Template.getBuildStatus(info, { logsOffset: 100000 })).logEntries, []);
  const box = await sandbox({ template: name });
  assert.equal(await stdout(box, "cat there"), "there\n");
  const bad = await Template.buildInBackground(builder().fromTemplate("base").runCmd("exit 1"), fresh("bad"));
  templates.push(bad.templateId);
  await eventually(async () => (await Template.getBuildStatus(bad)).status === "error");
  const { reason } = await Template.getBuildStatus(bad);
  assert.ok(reason.message.length > 0);
  await assert.rejects(Template.getBuildStatus({ templateId: info.templateId, buildId: "00000000-0000-0000-0000-000000000000" }));
});

await claim("steps_that_have_not_changed_are_not_run_again", async () => {
  const random = "head -c 16 /dev/urandom | base64 > /tmp/random";
  const value = async (template, opts) => {
    const { name } = await build(template, undefined, opts);
    const box = await sandbox({ template: name });
    return stdout(box, "cat /tmp/random");
  };
  const once = await value(builder().fromTemplate("base").runCmd(`: ${process.pid}; ${random}`));
  assert.equal(await value(builder().fromTemplate("base").runCmd(`: ${process.pid}; ${random}`).runCmd("true")), once);
  assert.notEqual(await value(builder().fromTemplate("base").runCmd(`: ${process.pid}; ${random}`), { skipCache: true }), once);
  assert.notEqual(await value(builder().fromTemplate("base").skipCache().runCmd(`: ${process.pid}; ${random}`)), once);
  assert.notEqual(await value(builder().fromTemplate("base").runCmd("echo changed > /tmp/c").runCmd(`: ${process.pid}; ${random}`)), once);
});

await claim("a_file_that_has_changed_is_sent_again", async () => {
  const value = async () => {
    const { name } = await build(builder().fromTemplate("base").copy("changing", "/tmp/", { forceUpload: true }).runCmd("cat /tmp/changing > /tmp/seen"));
    const box = await sandbox({ template: name });
    return stdout(box, "cat /tmp/seen");
  };
  writeFileSync(join(context, "changing"), "1\n");
  assert.equal(await value(), "1\n");
  writeFileSync(join(context, "changing"), "2\n");
  assert.equal(await value(), "2\n");
});

await claim("the_start_command_runs_in_every_sandbox", async () => {
  const template = builder().fromTemplate("base").runCmd("echo served > /home/user/f")
    .setStartCmd("python3 -m http.server 8765 --directory /home/user", waitForPort(8765));
  const { name } = await build(template);
  const box = await sandbox({ template: name });
  await eventually(async () => (await callSandbox(box, "GET", "/f", { port: 8765 })).status === 200);
  assert.equal(await (await callSandbox(box, "GET", "/f", { port: 8765 })).text(), "served\n");
});

await claim("a_build_is_ready_when_it_says_so", async () => {
  const ready = [waitForFile("/tmp/ready"), waitForProcess("sleep"), waitForTimeout(1000), "test -e /tmp/ready", waitForURL("http://localhost:8766/")];
  for (const each of ready) {
    const start = "touch /tmp/ready; python3 -m http.server 8766 >/dev/null 2>&1 & sleep 100000";
    await build(builder().fromTemplate("base").setStartCmd(start, each));
  }
  await build(builder().fromTemplate("base").setReadyCmd("true"));
});

await claim("names_and_tags_lead_to_builds", async () => {
  const name = fresh("tagged");
  const first = await build(builder().fromTemplate("base").runCmd("echo 1 > /tmp/v"), `${name}:v1`, { tags: ["stable"] });
  assert.ok(first.tags.includes("v1") || first.tags.includes("stable"), `${first.tags}`);
  const second = await build(builder().fromTemplate("base").runCmd("echo 2 > /tmp/v"), `${name}:v2`);
  assert.equal(second.templateId, first.templateId);
  const version = async (tag) => {
    const box = await sandbox({ template: `${name}:${tag}` });
    return (await stdout(box, "cat /tmp/v")).trim();
  };
  assert.deepEqual([await version("v1"), await version("stable"), await version("v2")], ["1", "1", "2"]);
  const assigned = await Template.assignTags(`${name}:v2`, ["stable", "newest"]);
  assert.equal(assigned.buildId, second.buildId);
  assert.match(assigned.buildId, UUID);
  assert.deepEqual([await version("stable"), await version("newest")], ["2", "2"]);
  await Template.assignTags(`${name}:v1`, "oldest");
  const tags = await Template.getTags(first.templateId);
  assert.equal(tags.find((each) => each.tag === "oldest").buildId, first.buildId);
  for (const each of tags) assert.match(each.buildId, UUID);
  assert.ok(tags[0].createdAt instanceof Date);
  await Template.removeTags(name, ["oldest", "newest"]);
  assert.ok(!(await Template.getTags(first.templateId)).some((each) => ["oldest", "newest"].includes(each.tag)));
  await assert.rejects(Plain.create(`${name}:oldest`));
  await refused(TemplateError, Template.assignTags(`${name}:v2`, ["with:colon"]));
  await refused(TemplateError, Template.assignTags(`${name}:v2`, [""]));
  await refused(TemplateError, Template.assignTags(`${name}:none`, ["x"]));
});

await claim("whether_a_name_is_taken_is_told", async () => {
  assert.equal(await Template.exists("base"), true);
  assert.equal(await Template.aliasExists("base"), true);
  assert.equal(await Template.exists(fresh("none")), false);
  assert.equal(await Template.aliasExists(fresh("none")), false);
});

await claim("size_is_as_asked_for", async () => {
  const { name } = await build(builder().fromTemplate("base").runCmd("true"), undefined, { cpuCount: 1, memoryMB: 256, minFreeDiskMb: 0 });
  const box = await sandbox({ template: name });
  const info = await box.getInfo();
  assert.deepEqual([info.cpuCount, info.memoryMB], [1, 256]);
  await assert.rejects(run(box, "python3 -c 'x = b\"x\" * (400 << 20); print(len(x))'"));
});

await claim("a_repository_is_cloned_by_a_step", async () => {
  const template = builder().fromTemplate("base")
    .runCmd("git init -q -b main /tmp/origin && git -C /tmp/origin -c user.name=a -c user.email=a@b commit -q --allow-empty -m first")
    .gitClone("file:///tmp/origin", "/tmp/clone", { branch: "main", depth: 1 });
  const { name } = await build(template);
  const box = await sandbox({ template: name });
  assert.equal(await stdout(box, "git -C /tmp/clone log --format=%s"), "first\n");
});

await claim("templates_are_listed_published_and_deleted", async () => {
  const { templateId, name } = await build(builder().fromTemplate("base").runCmd("echo deleted"));
  for (const path of ["/templates", "/v2/templates"]) {
    const listed = await call("GET", path);
    assert.equal(listed.status, 200);
    assert.ok(listed.json.some?.((each) => each.templateID === templateId) ?? listed.text.includes(templateId), path);
  }
  assert.equal((await call("PATCH", `/v2/templates/${templateId}`, { public: true })).status, 200);
  assert.equal((await call("GET", `/templates/${templateId}`)).json.templateID, templateId);
  assert.equal((await call("DELETE", `/templates/${templateId}`)).status, 204);
  assert.equal((await call("DELETE", `/templates/${templateId}`)).status, 404);
  assert.equal(await Template.exists(name), false);
  await assert.rejects(Plain.create(name));
});

for (const id of templates) await call("DELETE", `/templates/${encodeURIComponent(id)}`);
finish();
