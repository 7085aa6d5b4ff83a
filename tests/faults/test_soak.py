"""Several writers under random faults; see `tests.faults.soak`, which does the same for as long as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.soak import Soak

pytestmark = pytest.mark.system


def test_what_several_writers_add_under_random_faults_is_there_once_and_whole(tmp_path: Path) -> None:
    soak = Soak(tmp_path, episodes=100, seed=1)
    assert soak.run() == []
    assert min(soak.done[fault] for fault in ("killed writers", "killed servers", "cut connections")) > 0
