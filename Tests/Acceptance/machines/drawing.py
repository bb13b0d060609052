"""Machines from a seed. Each new one is drawn so that it has most of the pairs of values that no
machine before it had; the same seed and count give the same machines.

One row at a time, as AETG does: a pair that is still missing begins the row, then each dimension
takes the value with which most missing pairs come in. Chance decides among equals.
"""

import itertools
import os
import random

from dimensions import HIDING, MACHINE, NAMES, PERSON, ROOTS, Machine, Person, related

WHOLE, QUICK = 96, 8
COUNT = int(os.environ.get("SALLYPORT_MACHINES", QUICK))
SEED = int(os.environ.get("SALLYPORT_MACHINES_SEED", 1))
MIXED = ("ansible",)
TRIES = 6  # rows that are made for one that is taken


def pairs_of(dimensions, others):
    """All pairs of values of two dimensions, each pair in one order."""
    found = set()
    for one, other in itertools.product(dimensions, others):
        if one < other and related(one, other):
            found |= {((one, a), (other, b)) for a, b in
                      itertools.product((dimensions | others)[one], (dimensions | others)[other])}
    return found


def wanted():
    everything = MACHINE | PERSON
    return pairs_of(everything, everything)


def pair(one, other):
    return (one, other) if one < other else (other, one)


class Drawing:
    """Rows, and the pairs that none of them has yet."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.all = wanted()
        self.missing = set(self.all)

    def row(self, free, fixed):
        """Values of the dimensions `free`, beside those that are fixed already."""
        begun = self._begun(free, fixed)
        made = [self._made(free, fixed, begun) for _ in range(TRIES)]
        best = max(made, key=lambda row: len(self._new(row, fixed)))
        self.missing -= self._new(best, fixed)
        return best

    def _begun(self, free, fixed):
        """The values of `free` in a missing pair that a row beside `fixed` can have."""
        def fits(found):
            here = [name for name, _ in found if name in free]
            return here and all(name in free or fixed.get(name) == value for name, value in found)
        usable = sorted(filter(fits, self.missing))
        chosen = self.random.choice(usable) if usable else ()
        return {name: value for name, value in chosen if name in free}

    def _made(self, free, fixed, begun):
        row = dict(begun)
        rest = [name for name in free if name not in row]
        self.random.shuffle(rest)
        for name in rest:
            row[name] = self._best(name, free[name], fixed | row)
        return row

    def _best(self, name, values, row):
        """The value that brings most; what brings nothing new is as on a plain machine."""
        gains = {value: self._gain((name, value), row) for value in values}
        most = max(gains.values())
        if most == 0:
            return values[0]
        return self.random.choice([value for value in values if gains[value] == most])

    def _gain(self, item, row):
        hiding = HIDING.intersection([item, *row.items()])
        return sum(pair(item, other) in self.missing for other in row.items()
                   if hiding <= {item, other})

    def _new(self, row, fixed):
        hiding = HIDING.intersection([*row.items(), *fixed.items()])
        both = itertools.chain(itertools.combinations(row.items(), 2),
                               itertools.product(row.items(), fixed.items()))
        return {pair(*two) for two in both if hiding <= set(two)} & self.missing

    @property
    def covered(self):
        return 1 - len(self.missing) / len(self.all)


def root_of(drawing, values):
    """Root has a row of his own, with what makes him root fixed."""
    names = drawing.random.sample(ROOTS, 2)
    free = {name: PERSON[name] for name in names}
    fixed = {name: PERSON[name][0] for name in PERSON if name not in names}
    return Person("root", tuple(sorted((drawing.row(free, values) | fixed).items())))


def person_of(drawing, name, values):
    """Most of the people are plain but for two dimensions: somebody on each machine gets in."""
    names = sorted(PERSON) if name in MIXED else drawing.random.sample(sorted(PERSON), 2)
    free = {each: PERSON[each] for each in PERSON if each in names}
    fixed = {each: PERSON[each][0] for each in PERSON if each not in names}
    row = drawing.row(free, values | fixed) | fixed
    return Person(name, tuple(sorted(row.items())))


def drawn(seed, count):
    """`count` machines, and which share of the pairs they have."""
    drawing, machines = Drawing(seed), []
    for number in range(count):
        values = drawing.row(MACHINE, {})
        people = [root_of(drawing, values)]
        people += [person_of(drawing, name, values) for name in NAMES]
        machines.append(Machine(seed, number, tuple(sorted(values.items())), tuple(people)))
    return machines, drawing.covered
