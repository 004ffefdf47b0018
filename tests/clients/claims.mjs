// What all tests of clients share: claims, and the status at the end.
let failures = 0;

export async function claim(name, body) {
  try {
    await body();
    console.log(`ok: ${name}`);
  } catch (error) {
    failures++;
    console.log(`not ok: ${name}`);
    console.log(String(error?.stack ?? error).replace(/^/gm, "    "));
  }
}

export function finish() {
  process.exit(failures === 0 ? 0 : 1);
}
