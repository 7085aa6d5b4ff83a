"""Failures of all clients are classified, and waiting is bounded."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.llm.retry import RequestFailure, RetryPolicy, diagnose
from kg_memory.runtime.lifecycle import is_shutdown


class Gone(Exception):
    """An error as SDKs raise it: a status and a response."""

    def __init__(self, status: int) -> None:
        super().__init__("gone")
        self.status_code = status
        self.response = httpx.Response(status)


def test_shutdown_error_is_recognised_and_not_retried():
    ending = RuntimeError("can't create new thread at interpreter shutdown")
    assert not RetryPolicy().allows(1, diagnose(ending), 0)
    assert not is_shutdown(ValueError(str(ending)))  # a server may use the same words


SHUTDOWN = RuntimeError("cannot schedule new futures after interpreter shutdown")
TIMEOUTS = [TimeoutError(), httpx.ReadTimeout("slow")]
PASSING = [*TIMEOUTS, ConnectionResetError(), httpx.ConnectError("no"), Gone(429), Gone(500), Gone(504), SHUTDOWN]
LASTING = [Gone(501), Gone(400), Gone(401), ValueError("odd"), RuntimeError("odd")]


@pytest.mark.parametrize("error", [*PASSING, *LASTING])
def test_diagnose_classifies_failures(error):
    failure = diagnose(error)
    assert failure.transient is (error in PASSING)
    assert failure.timeout is (error in TIMEOUTS)
    assert failure.reason


def test_diagnose_shortens_reason_to_one_line():
    reason = diagnose(ValueError("a\nb " * 500)).reason
    assert len(reason) == 300
    assert "\n" not in reason


TRUTHS = {name: st.booleans() for name in ("transient", "timeout", "rate_limited")}
STATUS, SECONDS = st.none() | st.integers(400, 599), st.none() | st.floats(0, 1e9)
FAILURES = st.builds(RequestFailure, status=STATUS, retry_after=SECONDS, reason=st.just("why"), **TRUTHS)


@given(FAILURES, st.integers(1, 50), st.floats(0, 1))
def test_retry_policy_bounds_delay_and_attempts(failure, attempt, drawn):
    policy = RetryPolicy()
    seconds = policy.delay(attempt, failure, lambda: drawn)
    assert 0 <= seconds <= max(policy.longest, (failure.retry_after or 0) + 0.25)
    assert failure.retry_after is None or seconds >= failure.retry_after
    allowed = policy.allows(attempt, failure, seconds)
    assert not allowed or failure.transient
    if failure.rate_limited:
        assert not allowed or seconds <= policy.longest_wait
    else:
        assert not allowed or attempt < policy.attempts
