"""What files of ring 3 have in common."""

import pytest

from support.hosts import add_account, remove_account


@pytest.fixture
def carol():
    """Has an account and no enrollment."""
    add_account("carol", 3003)
    yield "carol"
    remove_account("carol")


@pytest.fixture
def alice():
    """Has an account, which an enrollment needs for places to be remembered."""
    add_account("alice", 3001)
    yield "alice"
    remove_account("alice")
