// Gives a client that knows no tokens access to a daemon: adds the token, and passes everything else on.
// usage: node proxy.mjs ADDRESS_FILE TOKEN_FILE; prints its port. The files are read at the first request.
import http from "node:http";
import { readFileSync } from "node:fs";

const [addressFile, tokenFile] = process.argv.slice(2);
http.createServer((request, reply) => {
  const address = readFileSync(addressFile, "utf8").trim();
  const headers = { ...request.headers, authorization: `Bearer ${readFileSync(tokenFile, "utf8").trim()}` };
  if (/^(localhost|127\.0\.0\.1)(:\d+)?$/.test(headers.host)) headers.host = address; // another one is for the daemon to refuse
  const { hostname, port } = new URL(`http://${address}`);
  const onward = http.request({ hostname, port, method: request.method, path: request.url, headers }, (answer) => {
    reply.writeHead(answer.statusCode, answer.headers);
    answer.pipe(reply);
  });
  onward.on("error", () => reply.destroy());
  reply.on("close", () => onward.destroy());
  request.pipe(onward);
}).listen(0, "127.0.0.1", function () { console.log(this.address().port); });
