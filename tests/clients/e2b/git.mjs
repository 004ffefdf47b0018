// The git helpers: repositories, branches, commits, status, remotes by path, configuration, credentials.
import assert from "node:assert/strict";
import { CommandExitError, GitUpstreamError, InvalidArgumentError } from "e2b";
import { claim, finish, refused, run, sandbox, stdout } from "./lib.mjs";

const opts = { timeoutMs: 0 };

async function repository() {
  const box = await sandbox();
  await box.git.configureUser("Ada", "ada@example.com", opts);
  await box.git.init("repo", { initialBranch: "main", ...opts });
  await box.files.write("repo/a", "1\n");
  await box.git.add("repo", opts);
  await box.git.commit("repo", "first", opts);
  return box;
}

await claim("a_repository_is_made_and_committed_to", async () => {
  const box = await repository();
  assert.equal(await stdout(box, "git log --format='%s %an %ae'", { cwd: "repo" }), "first Ada ada@example.com\n");
  await box.git.commit("repo", "it's \"second\"", { allowEmpty: true, authorName: "Bob", authorEmail: "bob@example.com", ...opts });
  assert.equal(await stdout(box, "git log -1 --format='%s %an %ae'", { cwd: "repo" }), "it's \"second\" Bob bob@example.com\n");
  await refused(CommandExitError, box.git.commit("repo", "nothing", opts));
});

await claim("status_says_what_has_changed", async () => {
  const box = await repository();
  const clean = await box.git.status("repo", opts);
  assert.deepEqual([clean.currentBranch, clean.isClean, clean.totalCount], ["main", true, 0]);
  await box.files.write("repo/a", "2\n");
  await box.files.write("repo/staged", "x");
  await box.files.write("repo/untracked", "x");
  await box.git.add("repo", { files: ["staged"], ...opts });
  const status = await box.git.status("repo", opts);
  assert.deepEqual(Object.fromEntries(status.fileStatus.map((each) => [each.name, [each.status, each.staged]])), {
    a: ["modified", false], staged: ["added", true], untracked: ["untracked", false],
  });
  assert.deepEqual([status.stagedCount, status.untrackedCount, status.hasChanges, status.hasConflicts], [1, 1, true, false]);
  await box.git.restore("repo", { paths: ["staged"], staged: true, ...opts });
  await box.git.restore("repo", { paths: ["a"], worktree: true, ...opts });
  assert.equal(await box.files.read("repo/a"), "1\n");
  assert.equal((await box.git.status("repo", opts)).stagedCount, 0);
});

await claim("branches_come_and_go", async () => {
  const box = await repository();
  await box.git.createBranch("repo", "side", opts);
  assert.deepEqual(await box.git.branches("repo", opts), { branches: ["main", "side"], currentBranch: "side" });
  await box.git.checkoutBranch("repo", "main", opts);
  assert.equal((await box.git.branches("repo", opts)).currentBranch, "main");
  await box.git.deleteBranch("repo", "side", { force: true, ...opts });
  assert.deepEqual((await box.git.branches("repo", opts)).branches, ["main"]);
  await refused(CommandExitError, box.git.checkoutBranch("repo", "nope", opts));
});

await claim("a_reset_goes_back", async () => {
  const box = await repository();
  await box.files.write("repo/a", "2\n");
  await box.git.add("repo", { all: true, ...opts });
  await box.git.commit("repo", "second", opts);
  await box.git.reset("repo", { mode: "hard", target: "HEAD~1", ...opts });
  assert.equal(await box.files.read("repo/a"), "1\n");
});

await claim("remotes_are_cloned_pushed_to_and_pulled_from", async () => {
  const box = await repository();
  await box.git.init("bare.git", { bare: true, initialBranch: "main", ...opts });
  await box.git.remoteAdd("repo", "origin", "/home/user/bare.git", opts);
  assert.equal(await box.git.remoteGet("repo", "origin", opts), "/home/user/bare.git");
  assert.equal(await box.git.remoteGet("repo", "nope", opts), undefined);
  await refused(GitUpstreamError, box.git.pull("repo", opts));
  await box.git.push("repo", { remote: "origin", branch: "main", setUpstream: true, ...opts });
  await box.git.clone("/home/user/bare.git", { path: "copy", branch: "main", ...opts });
  assert.equal(await box.files.read("copy/a"), "1\n");
  await box.files.write("repo/a", "3\n");
  await box.git.add("repo", opts);
  await box.git.commit("repo", "third", opts);
  assert.equal((await box.git.status("repo", opts)).ahead, 1);
  await box.git.push("repo", opts);
  await box.git.pull("copy", opts);
  assert.equal(await box.files.read("copy/a"), "3\n");
  await box.git.remoteAdd("repo", "origin", "/home/user/other.git", { overwrite: true, ...opts });
  assert.equal(await box.git.remoteGet("repo", "origin", opts), "/home/user/other.git");
  await refused(CommandExitError, box.git.clone("/home/user/none.git", { path: "none", ...opts }));
});

await claim("configuration_and_credentials_are_kept", async () => {
  const box = await repository();
  await box.git.setConfig("holt.global", "a b", opts);
  await box.git.setConfig("holt.local", "here", { scope: "local", path: "repo", ...opts });
  assert.equal(await box.git.getConfig("holt.global", opts), "a b");
  assert.equal(await box.git.getConfig("holt.local", { scope: "local", path: "repo", ...opts }), "here");
  assert.equal(await box.git.getConfig("holt.none", opts), undefined);
  await box.git.dangerouslyAuthenticate({ username: "ada", password: "token", host: "git.example.com", ...opts });
  const filled = await run(box, "printf 'protocol=https\\nhost=git.example.com\\n\\n' | git credential fill");
  assert.match(filled.stdout, /^username=ada$/m);
  assert.match(filled.stdout, /^password=token$/m);
  await refused(InvalidArgumentError, box.git.clone("https://git.example.com/a.git", { password: "x" }));
});

finish();
