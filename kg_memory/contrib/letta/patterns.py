"""Match lines against a regular expression that a model wrote, in a process that is ended where it takes too long.

Python's expressions may backtrack for ever, and nothing in the same process can stop one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from kg_memory.errors import InputError

LONGEST_PATTERN = 1000
LONGEST_LINE = 10_000
"""Characters of a line that are matched."""
SECONDS = 3.0
MOST = 1000
"""The most lines that are returned."""
SCRIPT = """
import json, re, sys
pattern, lines, most = json.load(sys.stdin)
try:
    search = re.compile(pattern, re.IGNORECASE).search
except (re.error, RecursionError, OverflowError, MemoryError) as error:
    print(json.dumps(str(error)))
else:
    numbers = []
    for number, line in enumerate(lines):
        if search(line):
            numbers.append(number)
            if len(numbers) == most:
                break
    print(json.dumps(numbers))
"""


def match_lines(pattern: str, lines: Sequence[str]) -> list[int]:
    """Return the numbers of the first `MOST` *lines* that *pattern* matches somewhere, whatever the case.

    Errors: `InputError` for a pattern that is invalid, too long, or takes longer than `SECONDS`.
    """
    if not pattern or len(pattern) > LONGEST_PATTERN:
        raise InputError(f"pattern must have 1 to {LONGEST_PATTERN} characters, got {len(pattern)}")
    work = json.dumps([pattern, [line[:LONGEST_LINE] for line in lines], MOST])
    command = [sys.executable, "-I", "-S", "-c", SCRIPT]
    try:
        done = subprocess.run(command, input=work, capture_output=True, text=True, timeout=SECONDS, check=True)
    except subprocess.TimeoutExpired:
        raise InputError(f"the pattern takes longer than {SECONDS:g} seconds; write a simpler one") from None
    except subprocess.CalledProcessError:
        raise InputError("the pattern cannot be matched; write a simpler one") from None
    numbers = json.loads(done.stdout)
    if isinstance(numbers, str):
        raise InputError(f"pattern must be a regular expression ({numbers}); correct it")
    return [int(number) for number in numbers]
