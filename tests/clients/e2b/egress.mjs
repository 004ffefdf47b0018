// egressProxy of npm e2b, against the hosts and proxies of tests/system/net (proxy_test runs it): what the client
// sees. What the proxies saw is compared by the test.
import assert from "node:assert/strict";
import { Sandbox } from "e2b";

const patient = { requestTimeoutMs: 0 };
const alice = { address: "other.test:1081", username: "alice", password: "s3cret of alice" };
const bob = { address: "93.184.216.35:1082", username: "bob", password: "s3cret-of-bob" };
const box = await Sandbox.create("host", { ...patient, network: { egressProxy: alice } });
const get = async (url) => (await box.commands.run(`curl -sk -4 -m 60 ${url} || echo failed`, { timeoutMs: 0 })).stdout;
try {
  assert.equal(await get("http://example.com/"), "http example.com 0\n");
  assert.deepEqual((await box.getInfo()).network.egressProxy, { address: "other.test:1081", username: "alice" });
  await box.updateNetwork({ denyOut: ({ allTraffic }) => [allTraffic], allowOut: ["example.com"], egressProxy: bob });
  assert.equal(await get("https://example.com/"), "https example.com 0\n");
  assert.equal(await get("http://other.test/"), "failed\n");
  await box.updateNetwork({ egressProxy: { ...alice, password: "wrong" } });
  assert.equal(await get("http://example.com/"), "failed\n");
  await box.updateNetwork({});
  assert.equal(await get("http://example.com/"), "http example.com 0\n");
  assert.equal((await box.getInfo()).network?.egressProxy, undefined);
} finally {
  await box.kill(patient);
}
