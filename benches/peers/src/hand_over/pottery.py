"""pottery as one of two processes that hand a lock over. It is told what `child.rs` is told, and
says what that says; its clock is the machine's, too."""

import sys
import time

packages, key, ttl, *urls = sys.argv[1:]
sys.path.insert(0, packages)

from pottery import Redlock  # noqa: E402
from redis import Redis  # noqa: E402

# With its own pauses between tries, and as many tries as it takes.
masters = frozenset(Redis.from_url(url) for url in urls)
lock = Redlock(key=key, masters=masters, auto_release_time=int(ttl) / 1000)

for line in sys.stdin:
    if line.strip() == "a":
        lock.acquire()
        at = time.monotonic_ns()
    else:
        at = time.monotonic_ns()
        lock.release()
    print(at, flush=True)
