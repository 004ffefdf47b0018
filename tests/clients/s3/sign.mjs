// Prints random requests with the signatures of @smithy/signature-v4, a JSON object a line: vectors for
// tests/unit/remote/sigv4_test.c.
// usage: node sign.mjs COUNT
import { createHash, createHmac, randomBytes, randomInt } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";

class Sha256 {
  constructor(secret) {
    this.hash = secret ? createHmac("sha256", secret) : createHash("sha256");
  }
  update(data) {
    this.hash.update(data);
  }
  async digest() {
    return new Uint8Array(this.hash.digest());
  }
}

const pick = (of) => of[randomInt(of.length)];
const word = (alphabet, most, least = 1) =>
  Array.from({ length: randomInt(least, most + 1) }, () => pick(alphabet)).join("");
const letters = [..."abcdefghijklmnopqrstuvwxyz"];
const plain = [...letters, ..."ABCXYZ0123456789-._~"];
const any = [...plain, ..." !\"#$%&'()*+,/:;<=>?@[\\]^`{|}", "ä", "€", "😀"];
// Segments that consist of dots are left out: the signer of npm resolves them, ours signs what is sent.
const path = () => "/" + Array.from({ length: randomInt(5) }, () => `s${word(plain, 12)}`).join("/");
const pairs = (names, values, most) =>
  Object.entries(Object.fromEntries(Array.from({ length: randomInt(most) }, () => [word(names, 10), word(values, 20, 0)])));

for (let i = 0; i < Number(process.argv[2]); i++) {
  const service = pick(["s3", "s3", "bedrock", "service"]);
  const body = randomBytes(randomInt(200));
  const query = pairs(any, any, 8);
  const headers = pairs(letters, [...any.filter((c) => c.charCodeAt(0) < 128), " ", " "], 6).map(([n, v]) => [`my-${n}`, v]);
  const credentials = {
    accessKeyId: word(plain, 30, 10),
    secretAccessKey: word([...plain, ..."/+="], 60, 10),
    sessionToken: pick(["", word([...plain, ..."/+="], 900)]) || undefined,
  };
  const time = randomInt(0, 4_000_000_000);
  const region = word(letters, 20);
  const host = pick(["example.com", "127.0.0.1:9000", "[::1]:8080"]);
  const request = {
    method: pick(["GET", "PUT", "HEAD", "DELETE", "POST"]),
    protocol: "https:",
    hostname: host,
    path: path(),
    query: Object.fromEntries(query),
    headers: { host, ...Object.fromEntries(headers) },
    body,
  };
  const signer = new SignatureV4({
    service, region, credentials, sha256: Sha256,
    uriEscapePath: service !== "s3",
    applyChecksum: service === "s3",
  });
  const signed = await signer.sign(request, { signingDate: new Date(time * 1000) });
  console.log(JSON.stringify({
    method: request.method, host, path: request.path, query, headers, time, region, service,
    hash: createHash("sha256").update(body).digest("hex"),
    access: credentials.accessKeyId, secret: credentials.secretAccessKey, token: credentials.sessionToken ?? "",
    authorization: signed.headers.authorization,
  }));
}
