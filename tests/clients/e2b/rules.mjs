// Secrets and network.rules of npm e2b, against the hosts of tests/system/net (e2b_test of tests/system/secret runs it). What
// the hosts saw is compared by the test.
import assert from "node:assert/strict";
import { Sandbox, Secret } from "e2b";

const patient = { requestTimeoutMs: 0 };
const [first, second, literal] = process.argv.slice(2);
await Secret.create("Api-Key", first);
const rules = {
  "example.com": [{ transform: { headers: { Authorization: `Bearer ${Secret.fill("api-key")}`, "X-Team": literal } } }],
};
const box = await Sandbox.create("host", { ...patient, network: { allowOut: ({ rules }) => [...rules.keys()], denyOut: ({ allTraffic }) => [allTraffic], rules } });
const get = async (url) => (await box.commands.run(`curl -s -m 60 ${url} || echo failed`, { timeoutMs: 0 })).stdout;
try {
  assert.equal(await get("https://example.com/sdk-1"), "https example.com 0\n");
  const shown = (await box.getInfo()).network.rules["example.com"][0].transform.headers;
  assert.deepEqual(shown, { Authorization: "Bearer ${e2b.secrets.api-key}", "X-Team": "(hidden)" });
  await Secret.update("api-key", second);
  assert.equal(await get("https://example.com/sdk-2"), "https example.com 0\n");
  assert.equal((await Secret.getInfo("api-key")).version, 2);
  assert.ok(!(await get("https://example.com/reflect")).includes(second));
  await box.updateNetwork({ rules: { "example.com": [{ transform: { headers: { "X-Team": "plain" } } }] } });
  assert.equal(await get("https://example.com/sdk-3"), "https example.com 0\n");
  await assert.rejects(box.updateNetwork({ rules: { "example.com": [{ transform: { headers: { A: Secret.fill("none") } } }] } }));
  await box.updateNetwork({ rules });
  assert.ok(await Secret.destroy("api-key"));
  assert.match(await get("https://example.com/sdk-4"), /the value of a header that a rule sets is gone/);
  await box.updateNetwork({});
  assert.match(await get("-k https://example.com/sdk-5"), /^https example.com 0/);
} finally {
  await box.kill(patient);
}
