"""What a process has in its memory: whole values, and parts of eight bytes of them."""

import struct

PART = 8


class Traces:
    """Named values to look for in the memory of a process."""

    def __init__(self, part=PART, **values):
        self.parts = {
            (value[start:start + part], name) for name, value in values.items()
            for start in range(len(value) - part + 1)}
        assert all(len(value) >= part for value in values.values())

    def found(self, pid):
        """{name of a value: where} of all that has at least a part in writable memory."""
        found = {}
        for region, data in writable(pid):
            for part, name in self.parts:
                place = data.find(part)
                if place >= 0:
                    found[name] = f"{region}, {place:#x} bytes into it"
        return found


def writable(pid):
    """Every writable region: its line in maps and its bytes."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            region, access = line.split()[:2]
            if "w" in access and "r" in access and "[v" not in line:
                start, end = (int(part, 16) for part in region.split("-"))
                memory.seek(start)
                yield line.strip(), memory.read(end - start)


def keyed_states(secret):
    """What HMAC-SHA-1 makes of a key, each as good as the key: the padded keys, and SHA-1's state
    after each of them, as words in the order of this machine."""
    inner, outer = (bytes(byte ^ pad for byte in secret.ljust(64, b"\0")) for pad in (0x36, 0x5c))
    return {
        "inner padded key": inner[:len(secret)], "outer padded key": outer[:len(secret)],
        "inner state": struct.pack("=5I", *sha1_block(inner)),
        "outer state": struct.pack("=5I", *sha1_block(outer))}


def sha1_block(block):
    """SHA-1's state after its first block (FIPS 180-4, section 6.1.2)."""
    def left(word, bits):
        return (word << bits | word >> (32 - bits)) & 0xffffffff
    start = 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0
    words = list(struct.unpack(">16I", block))
    for index in range(16, 80):
        words.append(left(words[-3] ^ words[-8] ^ words[-14] ^ words[-16], 1))
    a, b, c, d, e = start
    for index, word in enumerate(words):
        mixed, constant = [
            (d ^ (b & (c ^ d)), 0x5a827999), (b ^ c ^ d, 0x6ed9eba1),
            ((b & c) | (d & (b | c)), 0x8f1bbcdc), (b ^ c ^ d, 0xca62c1d6)][index // 20]
        mixed = left(a, 5) + mixed + e + constant + word
        a, b, c, d, e = mixed & 0xffffffff, a, left(b, 30), c, d
    return [(one + two) & 0xffffffff for one, two in zip(start, (a, b, c, d, e))]
