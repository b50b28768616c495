// node-redlock as one of two processes that hand a lock over. It is told what `child.rs` is told,
// and says what that says; its clock is the machine's, too.
const { createRequire } = require("node:module");
const { createInterface } = require("node:readline");

const [packages, key, ttl, ...urls] = process.argv.slice(2);
const load = createRequire(`${packages}/`);
const Redis = load("ioredis");
const { default: Redlock } = load("redlock");

// With its own pauses between tries, and as many tries as it takes.
const redlock = new Redlock(urls.map((url) => new Redis(url)), { retryCount: -1 });
redlock.on("error", () => {});

let held;
let before = Promise.resolve();

async function obey(line) {
  if (line === "a") {
    held = await redlock.acquire([key], Number(ttl));
    console.log(String(process.hrtime.bigint()));
  } else {
    const at = process.hrtime.bigint();
    await held.release();
    console.log(String(at));
  }
}

createInterface({ input: process.stdin })
  .on("line", (line) => (before = before.then(() => obey(line))))
  .on("close", () => process.exit(0));
