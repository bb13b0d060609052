"""Cables of a network of machines that delay what goes through them, and lose some of it.

Done by this process, since few kernels have netem: the router hands it each packet by a device of its
own, and takes it back from there when its time has come.
"""

import fcntl
import heapq
import itertools
import os
import random
import select
import stat
import struct
import threading
import time
from pathlib import Path

from support.stage import network_of

DEVICE, TABLE = "weather", "77"
TUNSETIFF, PACKETS_ALONE = 0x400454CA, 0x1001


class Weather:
    """Between these machines and those, both ways: seconds later, and a percentage not at
    all, each packet by a die that falls alike in each run."""

    def __init__(self, network, some, others, delay=0.0, loss=0):
        self.network, self.delay, self.loss = network, delay, loss
        pairs = [(a, b) for one in some for other in others for a, b in ((one, other), (other, one))]
        # What comes back from here comes by no cable: it goes on as usual.
        self._rules = [["iif", f"cable{a.number}", "to", b.network, "lookup", TABLE] for a, b in pairs]
        self._die, self.passed, self.lost = random.Random(17), 0, 0

    def _node(self):
        """The one of this machine, which has none in a bare /dev."""
        if not (node := Path("/dev/net/tun")).exists() and not (node := self.network.scratch / "tun").exists():
            os.mknod(node, 0o600 | stat.S_IFCHR, os.makedev(10, 200))
        return node

    def __enter__(self):
        with network_of(self.network.router_pid):
            self._device = os.open(self._node(), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.ioctl(self._device, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), PACKETS_ALONE))
        self._end = os.pipe()
        self.network.router("sh", "-c", f"for all in all {DEVICE}; do echo 0 >/proc/sys/net/ipv4/conf/$all/rp_filter; done; "
                            f"ip link set {DEVICE} up; ip route add default dev {DEVICE} table {TABLE}")
        self._thread = threading.Thread(target=self._carry)
        self._thread.start()
        for words in self._rules:
            self.network.router("ip", "rule", "add", *words)
        return self

    def __exit__(self, *_):
        for words in self._rules:
            self.network.router("ip", "rule", "del", *words)
        os.close(self._end[1])
        self._thread.join()
        for one in self._device, self._end[0]:
            os.close(one)

    def _carry(self):
        under_way, number = [], itertools.count()
        while True:
            left = max(0, under_way[0][0] - time.monotonic()) if under_way else None
            ready = select.select([self._device, self._end[0]], [], [], left)[0]
            if self._end[0] in ready:
                return
            if ready:
                packet = os.read(self._device, 1 << 16)
                if self._die.random() * 100 < self.loss:
                    self.lost += 1
                else:
                    heapq.heappush(under_way, (time.monotonic() + self.delay, next(number), packet))
            while under_way and under_way[0][0] <= time.monotonic():
                os.write(self._device, heapq.heappop(under_way)[2])
                self.passed += 1
