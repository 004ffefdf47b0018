// Ports of programs in a sandbox, on the daemon's one port: by header and by host name, streams as they
// come, WebSockets, the case of headers, masked host names, private traffic, closed ports, waking up.
import assert from "node:assert/strict";
import { request } from "node:http";
import { connect } from "node:net";
import { apiUrl, callSandbox, claim, eventually, finish, sandbox, start } from "./lib.mjs";

const { hostname, port: daemonPort } = new URL(apiUrl);

// Answers with the head it was sent; /slow in two pieces, the second when /go was asked for; an upgrade becomes an echo.
const program = `
import socket, threading
go = threading.Event()
def serve(peer):
    head = b""
    while b"\\r\\n\\r\\n" not in head:
        piece = peer.recv(65536)
        if not piece: return
        head += piece
    head, rest = head.split(b"\\r\\n\\r\\n", 1)
    path = head.split(b" ")[1]
    if b"upgrade: echo" in head.lower():
        peer.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: echo\\r\\nConnection: Upgrade\\r\\n\\r\\n" + rest)
        while piece := peer.recv(65536): peer.sendall(piece)
        return
    if path == b"/slow":
        peer.sendall(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5\\r\\nfirst\\r\\n")
        go.wait()
        peer.sendall(b"6\\r\\nsecond\\r\\n0\\r\\n\\r\\n")
    else:
        if path == b"/go": go.set()
        peer.sendall(b"HTTP/1.1 200 OK\\r\\nX-Own-CASE: kept\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(head) + head)
    peer.close()
listener = socket.create_server(("0.0.0.0", 8000))
while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
`;

async function serving(opts) {
  const box = await sandbox(opts);
  await box.files.write("server.py", program);
  await start(box, "python3 server.py");
  const headers = box.trafficAccessToken ? { "e2b-traffic-access-token": box.trafficAccessToken } : {};
  await eventually(async () => (await callSandbox(box, "GET", "/", { port: 8000, headers })).status === 200);
  return box;
}

// By hand: fetch lets nobody choose a host name.
function get(path, headers) {
  return new Promise((resolve, reject) => {
    request({ hostname, port: daemonPort, path, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => { text += part; }).on("end", () => resolve({ status: response.statusCode, raw: response.rawHeaders, text }));
    }).on("error", reject).end();
  });
}

await claim("a_port_is_reached_by_header_and_by_host_name", async () => {
  const box = await serving();
  assert.match(box.getHost(8000), new RegExp(`^8000-${box.sandboxId}\\.`));
  for (const headers of [{ "E2b-Sandbox-Id": box.sandboxId, "E2b-Sandbox-Port": "8000" }, { Host: `8000-${box.sandboxId}.localhost` },
    { Host: `8000-${box.sandboxId}.localhost:${daemonPort}` }]) {
    const { status, text } = await get("/a/path?q=1%202", headers);
    assert.equal(status, 200);
    assert.match(text, /^GET \/a\/path\?q=1%202 HTTP\/1\.1/);
  }
});

await claim("headers_keep_their_case", async () => {
  const box = await serving();
  const { raw, text } = await get("/", { Host: `8000-${box.sandboxId}.localhost`, "X-MiXeD-Case": "Value" });
  assert.match(text, /^X-MiXeD-Case: Value$/m);
  assert.ok(raw.includes("X-Own-CASE"), `${raw}`);
});

await claim("an_answer_streams", async () => {
  const box = await serving();
  const response = await callSandbox(box, "GET", "/slow", { port: 8000 });
  const reader = response.body.getReader();
  assert.equal(Buffer.from((await reader.read()).value).toString(), "first");
  await callSandbox(box, "GET", "/go", { port: 8000 });
  assert.equal(Buffer.from((await reader.read()).value).toString(), "second");
});

await claim("an_upgraded_connection_goes_both_ways", async () => {
  const box = await serving();
  const socket = connect(Number(daemonPort), hostname);
  let heard = "";
  socket.setEncoding("latin1").on("data", (part) => { heard += part; });
  socket.write(`GET /echo HTTP/1.1\r\nHost: 8000-${box.sandboxId}.localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`);
  await eventually(() => heard.includes("\r\n\r\n"));
  assert.match(heard, /^HTTP\/1\.1 101 /);
  socket.write("there and back");
  await eventually(() => heard.endsWith("there and back"));
  const closed = new Promise((resolve) => { socket.on("error", () => {}).on("close", resolve); });
  await box.kill();
  await closed;
});

await claim("a_closed_port_says_so", async () => {
  const box = await sandbox();
  const closed = await callSandbox(box, "GET", "/", { port: 8001 });
  assert.deepEqual([closed.status, await closed.json()], [502, {
    sandboxId: box.sandboxId, message: "The sandbox is running but port is not open", port: 8001, code: 502,
  }]);
});

await claim("a_host_name_is_masked", async () => {
  const box = await serving({ network: { maskRequestHost: "localhost:${PORT}" } });
  assert.match(await (await callSandbox(box, "GET", "/", { port: 8000 })).text(), /^Host: localhost:8000$/im);
});

await claim("private_traffic_needs_its_token", async () => {
  const box = await serving({ network: { allowPublicTraffic: false } });
  assert.equal(typeof box.trafficAccessToken, "string");
  const status = async (headers) => (await callSandbox(box, "GET", "/", { port: 8000, headers })).status;
  assert.equal(await status({}), 403);
  assert.equal(await status({ "e2b-traffic-access-token": "wrong" }), 403);
  assert.equal(await status({ "e2b-traffic-access-token": box.trafficAccessToken }), 200);
});

await claim("traffic_wakes_a_sandbox_that_resumes_by_itself", async () => {
  const box = await serving({ lifecycle: { onTimeout: "pause", autoResume: true } });
  await box.pause();
  assert.equal((await callSandbox(box, "GET", "/", { port: 8000 })).status, 200);
  assert.equal((await box.getInfo()).state, "running");
  const asleep = await serving();
  await asleep.pause();
  assert.equal((await callSandbox(asleep, "GET", "/", { port: 8000 })).status, 502);
  assert.equal((await asleep.getInfo()).state, "paused");
});

finish();
