// The callers of `many.rs` on the semaphore of redis-semaphore, for one round. Writes one line: how
// many permits were had, the longest wait in microseconds, and how many were held at most at once.
const { createRequire } = require("node:module");

const [packages, key, ...rest] = process.argv.slice(2);
const [lockers, callers, permits, hold, length] = rest.splice(0, 5).map(Number);
const urls = rest;
const load = createRequire(`${packages}/`);
const Redis = load("ioredis");
const { RedlockSemaphore } = load("redis-semaphore");

// As the package has it by default, but no caller gives up.
const semaphore = (nodes, name) =>
  new RedlockSemaphore(nodes, name, permits, { acquireTimeout: 600_000 });
const sleep = (millis) => new Promise((done) => setTimeout(done, millis));

let [acquired, longest, held, most] = [0, 0, 0, 0];
const since = new Map();
const waited = (began) => (longest = Math.max(longest, performance.now() - began));

async function call(nodes, caller) {
  const permit = semaphore(nodes, key);
  for (;;) {
    since.set(caller, performance.now());
    await permit.acquire();
    waited(since.get(caller));
    since.delete(caller);
    acquired += 1;
    held += 1;
    most = Math.max(most, held);
    await sleep(hold);
    held -= 1;
    await permit.release();
  }
}

(async () => {
  // Each with connections of its own, and connected before the time begins.
  const all = [...Array(lockers)].map(() => urls.map((url) => new Redis(url)));
  for (const nodes of all) {
    const warm = semaphore(nodes, `${key}-warm`);
    await warm.acquire();
    await warm.release();
  }
  for (let caller = 0; caller < callers; caller += 1) call(all[caller % lockers], caller);
  await sleep(length);
  // What still waits counts with what it has waited so far.
  since.forEach(waited);
  console.log(`${acquired} ${Math.round(longest * 1000)} ${most}`);
  process.exit(0);
})();
