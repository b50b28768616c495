// node-redlock as a client of the rig. The lines that it writes are told in src/line.rs.
const { createRequire } = require("node:module");

const args = {};
for (let i = 2; i + 1 < process.argv.length; i += 2) args[process.argv[i]] = process.argv[i + 1];
const packages = createRequire(`${args["--packages"]}/`);
const Redis = packages("ioredis");
const { default: Redlock } = packages("redlock");

const ttl = Number(args["--ttl-ms"]);
const pause = 1000 / Math.max(Number(args["--rate"]), 0.1);
const nodes = args["--urls"].split(",").map((url) => {
  const node = new Redis(url, {
    maxRetriesPerRequest: 0,
    commandTimeout: 200,
    retryStrategy: () => 100,
  });
  node.on("error", () => {});
  return node;
});
const redlock = new Redlock(nodes, { retryCount: 0 });
redlock.on("error", () => {});

let stop = false;
process.stdin.on("end", () => (stop = true)).resume();
const sleep = (millis) => new Promise((done) => setTimeout(done, millis));
const tell = (line) => process.stdout.write(`${line}\n`);
const now = () => process.hrtime.bigint();
const nanos = (millis) => BigInt(Math.round(millis * 1e6));

(async () => {
  let hold = 0;
  while (!stop) {
    const key = `k${Math.floor(Math.random() * Number(args["--keys"]))}`;
    const asked = now();
    try {
      const lock = await redlock.acquire([args["--prefix"] + key], ttl);
      const at = now();
      // Its own word, and no more than it can have had when it was asked.
      const claimed = at + nanos(lock.expiration - Date.now());
      const most = asked + nanos(ttl - ttl * 0.01 - 2);
      const until = claimed < most ? claimed : most;
      if (until > at) {
        hold += 1;
        tell(`+ ${hold} ${key} ${at} ${until}`);
        await sleep(Math.random() * 30);
        tell(`- ${hold} ${now()} release`);
      }
      await lock.release().then(
        () => tell(". released"),
        () => tell(". release failed"),
      );
    } catch (error) {
      tell(`. ${error.name}`);
    }
    await sleep(pause * (0.5 + Math.random()));
  }
  process.exit(0);
})();
