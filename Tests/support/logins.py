"""People of a fleet who log in on its hosts, by pamtester and the real module."""

import base64
import collections
import hashlib
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from support.codes import totp
from support.fleet import DONE


def secret_of(name):
    """A secret for everybody, in base32."""
    return base64.b32encode(hashlib.sha256(name.encode()).digest()[:20]).decode()


def enrolled(cast, names):
    """These people, with accounts on all hosts, in the fleet."""
    for number, host in enumerate(cast.hosts):
        host.accounts({name: 5000 + 1000 * number + place for place, name in enumerate(names)})
    with ThreadPoolExecutor(8) as pool:
        done = set(pool.map(lambda name: cast.enroll(name, secret_of(name)), names))
    assert done == {DONE}


def code_of(name):
    return totp(secret_of(name))[0]


class Load:
    """Each of them logs in again and again on all hosts, while the test disturbs."""

    def __init__(self, cast, names, threads=4):
        self.cast, self.over = cast, threading.Event()
        self.let_in, self.typed = [], {}
        self.begin(names)
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(threads)]

    def begin(self, names):
        """Counts from 0, with these people, who were not let in yet: tries, who was let in by which host, and
        the longest that one took."""
        self.codes = [(name, code_of(name)) for name in names]
        self.typed.update(self.codes)
        self.tries, self.slowest, self.by = 0, 0.0, collections.Counter()

    def _work(self, number):
        hosts = itertools.cycle(self.cast.hosts[number % 3:] + self.cast.hosts[:number % 3])
        for place in itertools.count(number):
            if self.over.is_set():
                return
            codes, host, start = self.codes, next(hosts), time.monotonic()
            name, code = codes[place % len(codes)]
            if host.enters(name, code):
                self.let_in.append(name)
                self.by[host.name] += 1
            self.slowest = max(self.slowest, time.monotonic() - start)
            self.tries += 1

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self._threads:
            thread.join()

    def try_again(self):
        """Nobody was let in whom no verifier knows of, nobody twice, and nobody is now."""
        assert len(set(self.let_in)) == len(self.let_in), "twice"
        assert set(self.let_in) <= set(self.cast.accepted()), "nobody is let in on an unknown"
        for number, name in enumerate(self.let_in):
            assert not self.cast.hosts[number % 3].enters(name, self.typed[name]), name
        assert self.cast.twice() == []
