// The tab with the files of a sandbox: tree, editor, conflicts, uploads, downloads, hostile names.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { claim, eventually, finish, forgive, go, open, startDaemon } from "./lib.mjs";

const daemon = await startDaemon();
const { sandbox: { id } } = await daemon.call("SandboxService/Create", { name: "work" });
const sh = (text) => daemon.holt("exec", "work", "--", "sh", "-c", text);
const content = (path) => daemon.holt("exec", "work", "--", "cat", path);
await sh(`cd /workspace && mkdir -p src many && printf 'one\\ntwo\\nthree\\n' >src/a.txt && printf 'x\\r\\ny\\r\\n' >dos.txt &&
  head -c 3000 /dev/urandom >blob.bin && ln -s src/a.txt link && cd many && seq 1200 | xargs touch`);

const page = await open(daemon, { at: "#/sandboxes/work/files" });
const tree = page.getByRole("tree");
const row = (name) => tree.getByRole("treeitem").filter({ has: page.getByText(name, { exact: true }) });
const editor = page.getByRole("textbox", { name: /^Contents of/ });
const save = page.getByRole("button", { name: "Save", exact: true });
const saved = async (name) => page.getByText(`Saved ${name}`).last().waitFor();

await claim("a_file_is_edited_and_saved", async () => {
  await row("src").click();
  await row("a.txt").click();
  await eventually(async () => (await editor.inputValue()) === "one\ntwo\nthree\n");
  assert.ok(await save.isDisabled());
  await editor.fill("one\n2\nthree\n");
  await page.getByText("not saved").waitFor();
  await save.click();
  await saved("a.txt");
  assert.equal(await content("/workspace/src/a.txt"), "one\n2\nthree");
});

await claim("a_mode_is_kept_and_dos_line_ends_too", async () => {
  await sh("chmod 751 /workspace/dos.txt");
  await row("dos.txt").click();
  await eventually(async () => (await editor.inputValue()) === "x\ny\n");
  await editor.fill("x\nz\n");
  await editor.press("Control+s");
  await saved("dos.txt");
  assert.equal(await daemon.holt("exec", "work", "--", "sh", "-c", "od -c /workspace/dos.txt | head -1; stat -c %a /workspace/dos.txt"),
    "0000000   x  \\r  \\n   z  \\r  \\n\n751");
});

await claim("a_link_leads_to_its_file_and_stays", async () => {
  await row("link").click();
  await eventually(async () => (await editor.inputValue()) === "one\n2\nthree\n");
  await editor.fill("through\n");
  await save.click();
  await saved("link");
  assert.equal(await content("/workspace/src/a.txt"), "through");
  assert.equal(await sh("test -L /workspace/link && echo link"), "link");
});

await claim("what_others_write_shows_by_itself", async () => {
  await row("a.txt").click();
  await eventually(async () => (await editor.inputValue()) === "through\n");
  await sh("echo by-others >/workspace/src/a.txt; echo 1 >/workspace/src/appears");
  await row("appears").waitFor();
  await eventually(async () => (await editor.inputValue()) === "by-others\n");
  await sh("rm /workspace/src/appears");
  await row("appears").waitFor({ state: "detached" });
});

await claim("somebody_elses_change_is_compared_before_it_is_overwritten", async () => {
  await editor.fill("mine\n");
  await sh("echo theirs >/workspace/src/a.txt");
  await page.getByText("Somebody else has changed this file").waitFor();
  await save.click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("changed meanwhile").waitFor();
  await dialog.locator(".diff-line.deleted", { hasText: "theirs" }).waitFor();
  await dialog.locator(".diff-line.added", { hasText: "mine" }).waitFor();
  await dialog.getByRole("button", { name: "Keep editing" }).click();
  assert.equal(await content("/workspace/src/a.txt"), "theirs");
  await save.click();
  await dialog.locator(".diff-line.deleted", { hasText: "theirs" }).waitFor();
  await sh("echo third >/workspace/src/a.txt");
  await dialog.getByRole("button", { name: "Overwrite" }).click();
  await dialog.locator(".diff-line.deleted", { hasText: "third" }).waitFor();
  assert.equal(await content("/workspace/src/a.txt"), "third", "only what was compared is overwritten");
  await dialog.getByRole("button", { name: "Overwrite" }).click();
  await saved("a.txt");
  assert.equal(await content("/workspace/src/a.txt"), "mine");
  forgive(/status of 412/);
});

await claim("a_file_that_was_removed_is_not_made_again_unasked", async () => {
  await editor.fill("again\n");
  await sh("rm /workspace/src/a.txt");
  await save.click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("removed meanwhile").waitFor();
  await sh("echo somebody >/workspace/src/a.txt");
  await dialog.getByRole("button", { name: "Create it again" }).click();
  await dialog.locator(".diff-line.deleted", { hasText: "somebody" }).waitFor();
  await dialog.getByRole("button", { name: "Overwrite" }).click();
  await saved("a.txt");
  assert.equal(await content("/workspace/src/a.txt"), "again");
  forgive(/status of 4(12|04)/);
});

await claim("one_refused_request_does_not_end_the_session", async () => {
  await page.route("**/holt.v1/file?**", (route) => route.fulfill({
    status: 401, contentType: "application/json", body: '{"code":"unauthenticated","message":"who are you"}',
  }));
  const probed = page.waitForResponse("**/console/session");
  await row("dos.txt").click();
  await page.getByText("who are you").waitFor();
  assert.equal((await probed).status(), 200);
  await page.unroute("**/holt.v1/file?**");
  await row("a.txt").click();
  await eventually(async () => (await editor.count()) === 1);
  forgive(/status of 401/);
});

await claim("leaving_an_unsaved_file_asks", async () => {
  await editor.fill("unsaved\n");
  await row("blob.bin").click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  assert.equal(await editor.inputValue(), "unsaved\n");
  await row("blob.bin").click();
  await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
});

await claim("bytes_are_shown_and_not_edited", async () => {
  await page.getByText("It is not text.").waitFor();
  await page.getByRole("region", { name: "Bytes of blob.bin" }).getByText("00000010").waitFor();
  assert.equal(await editor.count(), 0);
});

// Only visible rows exist: scrolls until this one does.
async function scrollTo(wanted) {
  await eventually(async () => {
    const height = await tree.evaluate((each) => each.scrollHeight);
    for (let top = 0; top < height; top += 400) {
      await tree.evaluate((each, to) => {
        each.scrollTop = to;
        return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      }, top);
      if ((await wanted.count()) > 0) return true;
    }
    return false;
  });
}

await claim("a_large_directory_comes_in_pages", async () => {
  await row("many").click();
  assert.ok(await tree.getByRole("treeitem").count() < 200, "all rows exist");
  const more = tree.getByText("Load more");
  for (let i = 0; i < 2; i++) {
    await scrollTo(more);
    const height = await tree.evaluate((each) => each.scrollHeight);
    await more.click();
    await eventually(async () => (await tree.evaluate((each) => each.scrollHeight)) > height);
  }
  await scrollTo(row("999"));
  await scrollTo(row("many"));
  await row("many").click();
  assert.equal(await more.count(), 0);
});

await claim("files_are_made_renamed_and_removed", async () => {
  await row("src").click();
  if ((await row("src").getAttribute("aria-expanded")) === "false") await row("src").click();
  await page.getByRole("button", { name: "New file" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("fresh.txt");
  await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
  await row("fresh.txt").waitFor();
  await eventually(async () => (await editor.inputValue()) === "");
  await page.getByRole("button", { name: "Rename" }).click();
  await page.getByRole("dialog").getByLabel("New path").fill("/workspace/src/renamed.txt");
  await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
  await row("renamed.txt").waitFor();
  await row("fresh.txt").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByRole("dialog").getByText("Will be lost").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await row("renamed.txt").waitFor({ state: "detached" });
  assert.equal(await sh("ls /workspace/src"), "a.txt");
});

const picture = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGP8z8DAwMDAxMDAwMDAAAANHQEDasKb6QAAAABJRU5ErkJggg==";

await claim("an_image_is_drawn", async () => {
  await sh(`echo ${picture} | base64 -d >/workspace/dot.png`);
  await row("dot.png").click();
  const image = page.getByRole("img", { name: "dot.png" });
  await eventually(async () => (await image.evaluate((each) => each.naturalWidth)) === 2);
});

const size = 100 * 1024 * 1024;
const digest = createHash("sha256");
let expected;

await claim("a_file_of_100_MB_is_dropped_and_arrives", async () => {
  // The browser makes the bytes itself: what is dropped need not pass through the test.
  const data = await page.evaluateHandle(async (length) => {
    const part = new Uint8Array(1 << 20);
    for (let i = 0; i < part.length; i++) part[i] = (i * 2654435761) >>> 24;
    const parts = Array.from({ length: length >> 20 }, (_, i) => {
      const copy = part.slice();
      new DataView(copy.buffer).setUint32(0, i);
      return copy;
    });
    const transfer = new DataTransfer();
    transfer.items.add(new File(parts, "large.bin"));
    return transfer;
  }, size);
  for (let i = 0; i < size >> 20; i++) {
    const part = Buffer.alloc(1 << 20);
    for (let j = 0; j < part.length; j++) part[j] = Math.imul(j, 2654435761) >>> 24;
    part.writeUInt32BE(i);
    digest.update(part);
  }
  expected = digest.digest("hex");
  await row("src").dispatchEvent("dragover", { dataTransfer: data });
  await row("src").dispatchEvent("drop", { dataTransfer: data });
  await page.getByText("Uploads: 0 of 1 file done").or(page.getByText("Uploads: 1 of 1 file done")).waitFor();
  await page.getByText("Uploads: 1 of 1 file done").waitFor();
  assert.equal((await sh("sha256sum /workspace/src/large.bin")).split(" ")[0], expected);
});

await claim("a_file_of_100_MB_is_downloaded", async () => {
  await row("large.bin").click();
  await page.getByText("too large to be edited").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download", exact: true }).click()]);
  assert.equal(download.suggestedFilename(), "large.bin");
  const hash = createHash("sha256");
  for await (const part of createReadStream(await download.path())) hash.update(part);
  assert.equal(hash.digest("hex"), expected);
});

await claim("an_upload_asks_before_it_replaces", async () => {
  await page.getByLabel("Files to upload").setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("uploaded\n") });
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Replace 1 existing file?").waitFor();
  assert.equal(await content("/workspace/src/a.txt"), "again");
  await dialog.getByRole("button", { name: "Replace" }).click();
  await page.getByText("Uploads: 2 of 2 files done").waitFor();
  assert.equal(await content("/workspace/src/a.txt"), "uploaded");
  forgive(/status of 412/);
});

await claim("a_directory_is_downloaded_as_an_archive", async () => {
  await sh("rm /workspace/src/large.bin");
  await row("src").click();
  const [download] = await Promise.all([
    page.waitForEvent("download"), page.getByRole("button", { name: "Download the directory as .tar" }).click()]);
  assert.equal(download.suggestedFilename(), "src.tar");
});

await claim("hostile_names_and_contents_do_nothing", async () => {
  await sh(`mkdir /workspace/bad && cd /workspace/bad && touch '<img src=x onerror=alert(1)>' "$(printf 'new\\nline')" \\
    "$(printf 'rtl-\\342\\200\\256gpj.exe')" "$(printf 'esc\\033[31m')" "$(printf 'raw-\\377')" &&
    echo '<script>document.title="owned"</script>' >page.html &&
    head -c 1000000 /dev/zero | tr '\\0' x >long && printf 'a\\342\\200\\256b\\n' >bidi.txt &&
    echo '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>' >x.svg`);
  await row("bad").click();
  await row("<img src=x onerror=alert(1)>").waitFor();
  await row("new\\nline").waitFor();
  await row("rtl-\\u{202e}gpj.exe").waitFor();
  await row("esc\\u{1b}[31m").waitFor();
  await row("page.html").click();
  await eventually(async () => (await editor.inputValue()).includes("<script>"));
  await row("x.svg").click();
  await eventually(async () => (await editor.inputValue()).includes("<svg"));
  await row("long").click();
  await page.getByText("It has a line of 1,000,000 characters").waitFor();
  await page.getByText("998,000 more characters").waitFor();
  await row("bidi.txt").click();
  await page.getByText("invisible or direction-changing characters (1)").waitFor();
  await page.getByRole("button", { name: "Show them" }).click();
  await page.getByText("a\\u{202e}b").waitFor();
  await sh("cd /workspace/bad && echo bytes >\"$(printf 'raw-\\377')\"");
  await row("raw-?").click();
  await eventually(async () => (await editor.inputValue()) === "bytes\n");
  await editor.fill("changed\n");
  await save.click();
  await page.getByText("Saved raw-?").waitFor();
  assert.equal(await sh("cd /workspace/bad && cat \"$(printf 'raw-\\377')\""), "changed");
  assert.equal(await page.title(), await page.evaluate(() => document.title));
  assert.notEqual(await page.title(), "owned");
  const isWider = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  assert.equal(isWider, false, "the page scrolls sideways");
});

await claim("a_reader_sees_files_and_no_actions", async () => {
  const token = (await daemon.call("TokenService/Create", { role: "read-only" })).secret;
  const reader = await open(daemon, { token, at: "#/sandboxes/work/files?path=/workspace/src/a.txt" });
  const area = reader.getByRole("textbox", { name: /^Contents of/ });
  await eventually(async () => (await area.inputValue()) === "uploaded\n");
  assert.equal(await area.evaluate((each) => each.readOnly), true);
  for (const name of ["Save", "New file", "Upload files", "Rename", "Remove"])
    assert.equal(await reader.getByRole("button", { name, exact: true }).count(), 0, name);
  const status = await reader.evaluate(async (sandbox) => {
    const reply = await fetch(`/holt.v1/file?sandbox=${sandbox}&path=/workspace/x`, {
      method: "PUT", body: "x", headers: { "X-Holt-Session": sessionStorage.getItem("holt.key") },
    });
    return reply.status;
  }, id);
  assert.equal(status, 403);
  forgive(/status of 403/);
  await reader.context().close();
});

await claim("the_files_of_a_paused_sandbox_are_not_offered", async () => {
  await daemon.holt("pause", "work");
  await page.getByText("The files of a paused sandbox cannot be read").waitFor();
  await daemon.holt("resume", "work");
  await row("src").waitFor();
  await go(page, "#/");
});

await finish();
