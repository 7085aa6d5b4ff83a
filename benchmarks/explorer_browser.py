"""Drive and trace a headless Chromium by its DevTools protocol."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Self
from urllib.request import urlopen

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from websocket import create_connection

ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--lang=en",
    "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--window-size=1440,900",
)  # fmt: skip
CATEGORIES = (
    *("devtools.timeline", "disabled-by-default-devtools.timeline", "disabled-by-default-devtools.timeline.frame"),
    *("blink.user_timing", "loading", "v8", "gpu", "__metadata"),
)
SCRIPT = {"FunctionCall", "EvaluateScript", "v8.evaluateModule", "RunMicrotasks", "MinorGC", "MajorGC", "V8.GC_HEAP"}
WAITING = {"CommandBufferHelper::Finish"}
"""Events in which the main thread waits for the GPU process."""
PAINTING = {"UpdateLayoutTree", "Layout", "PrePaint", "Paint", "Layerize", "Commit"}
Event = Mapping[str, Any]
Span = tuple[float, float]


class Browser:
    """A new browser with an empty profile, and its first tab."""

    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for argument in ARGUMENTS:
            options.add_argument(argument)
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        address = self.driver.capabilities["goog:chromeOptions"]["debuggerAddress"]
        with urlopen(f"http://{address}/json/list") as answer:
            url = next(each["webSocketDebuggerUrl"] for each in json.load(answer) if each["type"] == "page")
        self._socket = create_connection(url, suppress_origin=True, timeout=300)
        self._numbers = count(1)
        self._heard: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self.driver.quit()

    def send(self, method: str, **params: Any) -> Any:
        """Send a DevTools command and return its result. Errors: `RuntimeError` if the command fails."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while (message := json.loads(self._socket.recv())).get("id") != number:
            self._heard.append(message)
        if "error" in message:
            raise RuntimeError(message["error"])
        return message["result"]

    def run(self, script: str) -> Any:
        """Evaluate the JavaScript expression *script* in the page, and return its value."""
        return self.send("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def until(self, script: str, seconds: float = 120.0) -> None:
        """Wait until *script* is true in the page. Errors: `TimeoutError` after *seconds*."""
        deadline = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > deadline:
                raise TimeoutError(script)
            time.sleep(0.05)

    def point(self, kind: str, x: float, y: float, *, pressed: bool = True) -> None:
        """Send a mouse event of type *kind*, such as "mousePressed", at a position."""
        event = {"type": kind, "x": x, "y": y, "button": "left", "buttons": int(pressed), "clickCount": 1}
        self.send("Input.dispatchMouseEvent", **event)

    def start_trace(self) -> None:
        """Start recording a trace."""
        self._heard.clear()
        config = {"includedCategories": CATEGORIES, "recordMode": "recordAsMuchAsPossible"}
        self.send("Tracing.start", transferMode="ReportEvents", traceConfig=config)

    def end_trace(self) -> Trace:
        """Stop recording, and return the trace."""
        self.send("Tracing.end")
        while not self._heard or self._heard[-1]["method"] != "Tracing.tracingComplete":
            self._heard.append(json.loads(self._socket.recv()))
        told = [each["params"]["value"] for each in self._heard if each["method"] == "Tracing.dataCollected"]
        return Trace([event for events in told for event in events])

    def memory(self) -> dict[str, float]:
        """Return megabytes of the page's JavaScript heap, and of the processes of the page and the GPU."""
        self.send("HeapProfiler.collectGarbage")
        heap = self.send("Runtime.getHeapUsage")
        sizes = {kind: max(map(resident, self.list_processes(kind))) for kind in ("renderer", "gpu-process")}
        used = (heap["usedSize"] + heap.get("backingStorageSize", 0)) / 1e6
        return {"heap": used, "page": sizes["renderer"], "gpu": sizes["gpu-process"]}

    def list_processes(self, kind: str) -> list[int]:
        """Return the ids of the browser's processes of a *kind*, such as "renderer"."""
        below = list_children(self.driver.service.process.pid)
        return [pid for pid in below if f"--type={kind}" in Path(f"/proc/{pid}/cmdline").read_text()]

    def gpu_time(self) -> float:
        """Return the processor time of the GPU process in milliseconds, over all its threads."""
        (pid,) = self.list_processes("gpu-process")
        user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return 1000 * (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Trace:
    """A recorded trace of a browser; times are in milliseconds."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = sorted((each for each in events if "ts" in each), key=lambda each: float(each["ts"]))
        self.page = next(each["pid"] for each in self.events if _is_script_of_page(each))
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in self.events if e["name"] == "thread_name"}
        self._main = next(place for place, name in names.items() if place[0] == self.page and name == "CrRendererMain")

    def first(self, *names: str, after: float = 0.0) -> float:
        """Return the time of the page's first event with one of these *names*, at or after the time *after*."""
        times = (e["ts"] / 1000 for e in self.events if e["name"] in names and e["pid"] == self.page)
        return next(time_ for time_ in times if time_ >= after)

    def spans(self, names: Iterable[str]) -> list[Span]:
        """Return the periods in which the main thread was in events of *names*; nested events are left out."""
        chosen, spans = set(names), list[Span]()
        for event in self.events:
            if event["name"] in chosen and (event["pid"], event["tid"]) == self._main and "dur" in event:
                begin, end = event["ts"] / 1000, (event["ts"] + event["dur"]) / 1000
                if not spans or begin >= spans[-1][1]:
                    spans.append((begin, end))
        return spans

    def frames(self) -> list[tuple[float, float]]:
        """Return (script, painting) times on the main thread for each frame that ran a script."""
        begins = [e["ts"] / 1000 for e in self.events if e["name"] == "BeginMainThreadFrame" and e["pid"] == self.page]
        waiting = self.spans(WAITING)
        script = subtract(self.spans(SCRIPT), waiting)
        painting = subtract(self.spans(PAINTING), waiting)
        drawn = [each[0] for each in self.spans({"FireAnimationFrame"})]
        return [
            (within(script, begin, end), within(painting, begin, end))
            for begin, end in pairwise(begins)
            if bisect_left(drawn, begin) < bisect_left(drawn, end)
        ]


def subtract(spans: Sequence[Span], holes: Sequence[Span]) -> list[Span]:
    """Return *spans* without *holes*; both must be sorted and without overlaps."""
    left: list[Span] = []
    for begin, end in spans:
        start = begin
        for first, last in holes:
            if first < end and last > start:
                left.append((start, max(start, first)))
                start = min(end, last)
        left.append((start, end))
    return left


def within(spans: Iterable[Span], begin: float, end: float) -> float:
    """Return the total length of *spans* between two times."""
    return sum(max(0.0, min(end, last) - max(begin, first)) for first, last in spans)


def list_children(pid: int) -> list[int]:
    """Return the ids of all descendants of a process."""
    found = [pid]
    for each in found:
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found[1:]


def resident(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    line = next(each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def middle(numbers: Iterable[float]) -> float:
    """Return the median, rounded to one digit."""
    return round(statistics.median(numbers), 1)


def _is_script_of_page(event: Event) -> bool:
    data = event.get("args", {}).get("data", {})
    return event["name"] in {"EvaluateScript", "FunctionCall"} and "/explorer/" in str(data.get("url"))
