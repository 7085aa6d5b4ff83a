"""Several writers under random faults; `python -m tests.faults.soak` does the same for longer."""

import pytest

from tests.faults.soak import Soak

pytestmark = pytest.mark.system


def test_writers_under_random_faults_store_each_message_once(tmp_path):
    soak = Soak(tmp_path, episodes=100, seed=1)
    assert soak.run() == []
    assert min(soak.done[fault] for fault in ("killed writers", "killed servers", "cut connections")) > 0
