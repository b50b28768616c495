"""pottery's Redlock as a client of the rig. The lines that it writes are told in src/line.rs."""

import random
import sys
import threading
import time

from pottery import Redlock
from pottery.exceptions import PotteryError, PrimitiveError
from redis import Redis
from redis.exceptions import RedisError

args = dict(zip(sys.argv[1::2], sys.argv[2::2]))
ttl = int(args["--ttl-ms"]) / 1000
chance = random.Random(int(args["--seed"]) + int(args["--slot"]))
pause = 1 / max(float(args["--rate"]), 0.1)
masters = frozenset(
    Redis.from_url(url, socket_timeout=0.2, socket_connect_timeout=0.2)
    for url in args["--urls"].split(",")
)
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()


# What faults lead to; a lock whose time is over is released with one of the second sort.
EXPECTED = (PotteryError, PrimitiveError, RedisError)


def tell(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


hold = 0
while not stop.is_set():
    key = f"k{chance.randrange(int(args['--keys']))}"
    lock = Redlock(key=key, masters=masters, auto_release_time=ttl)
    asked = time.monotonic_ns()
    try:
        got = lock.acquire(blocking=False)
    except EXPECTED as error:
        tell(f". failed: {type(error).__name__}")
        got = None
    if got:
        at = time.monotonic_ns()
        # Its own formula, from before it was asked: no more than what it promises.
        until = asked + int((ttl - ttl * 0.01 - 0.002) * 1e9)
        if until > at:
            hold += 1
            tell(f"+ {hold} {key} {at} {until}")
            time.sleep(chance.uniform(0, 0.03))
            tell(f"- {hold} {time.monotonic_ns()} release")
        try:
            lock.release()
            tell(". released")
        except EXPECTED as error:
            tell(f". release failed: {type(error).__name__}")
    elif got is False:
        tell(". busy")
    stop.wait(chance.uniform(pause / 2, pause * 3 / 2))
