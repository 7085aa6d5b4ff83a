"""Measure the explorer with 10,000 entities and 50,000 facts in a real browser: first paint, dragging, and memory.

    python -m benchmarks.explorer [--facts 50000] [--rounds 5] [--folder DIR] [--out FILE.json] [--quick]

Run it from the root of the repository; it needs Debian's ``chromium`` and ``chromium-driver``, and the extra ``dev``.
It fills an embedded database with a synthetic graph, starts ``kg-memory serve``, and reads the browser's trace:

cold      the server has just started, and the browser is new
warm      the server has the graph in memory; the browser is new
page      from the start of the navigation until the page and all its scripts are read (DOMContentLoaded)
painted   from the same start until the first frame with the graph is drawn; a graph of this size then shows its 3,000
          strongest links, and the others follow (*all links*)
query     waiting for the first byte of the graph; *transfer* until the last byte
script    time of JavaScript on the main thread, without waiting for the GPU process; for the drag (of handle A across
          the time plane), per frame
painting  style, layout and paint on the main thread; *gpu* is processor time of all threads of the GPU process, which
          draws in software here
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from urllib.request import urlopen

from benchmarks.explorer_browser import SCRIPT, WAITING, Browser, middle, resident, subtract, within
from benchmarks.opening import kept, opened, write
from benchmarks.search_scale_data import Data
from benchmarks.search_scale_load import Texts, Writer, load_graph
from benchmarks.server import served
from kg_memory import GraphMemory
from kg_memory.falkor import schema
from kg_memory.falkor.connect import graph_key

NAMESPACE = "bench"
DIMENSION = 384
"""The dimension of the bundled embedding model. Vectors are not stored, as the explorer does not read them."""
STEPS = 60
"""Pointer moves in one drag."""
Figures = dict[str, float]
PAGE = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
REQUEST = "performance.getEntriesByType('resource').find((one) => one.name.endsWith('/explorer/columns'))"
MARK = "performance.getEntriesByName('graph drawn')[0]"


def fill(memory: GraphMemory, facts: int) -> None:
    """Write a graph with *facts* facts and a fifth as many entities, if the namespace is empty."""
    if memory.stats(namespace=NAMESPACE).facts:
        return
    store, data = memory.driver.store, Data(facts, 2)
    schema.ensure(store.database, graph_key(NAMESPACE), DIMENSION, store.vectors.name)
    load_graph(Writer(store.database.client(), graph_key(NAMESPACE)), data, Texts(data), print, meaning=False)


def open_page(browser: Browser, port: int) -> Figures:
    """Open the page and return the milliseconds of its phases."""
    browser.start_trace()
    browser.send("Page.navigate", url=f"http://127.0.0.1:{port}/explorer/#ns={NAMESPACE}")
    browser.until(f"Boolean(document.documentElement.dataset.ready && {MARK})")
    time.sleep(5)
    origin = browser.run(f"{MARK}.startTime")
    sent, first, last = (browser.run(f"{REQUEST}.{name}") for name in ("startTime", "responseStart", "responseEnd"))
    trace = browser.end_trace()
    drawn = trace.first("graph drawn")
    began = drawn - origin
    painted = trace.first("DrawFrame", after=drawn)
    script = subtract(trace.spans(SCRIPT), trace.spans(WAITING))
    whole = [each for each in trace.events if each["name"] == "links drawn"]
    return {
        "page": browser.run(PAGE),
        "painted": painted - began,
        "all links": (whole[0]["ts"] / 1000 if whole else painted) - began,
        "asked at": sent,
        "query": first - sent,
        "transfer": last - first,
        "script": within(script, began, painted),
    }


def drag(browser: Browser) -> Figures:
    """Drag handle A across the time plane and back; return the milliseconds that a frame took."""
    box = "document.querySelector('.handle:not(.b)').getBoundingClientRect()"
    x, y = (browser.run(f"{box}.{edge} + {box}.{size} / 2") for edge, size in (("x", "width"), ("y", "height")))
    step = (x - browser.run("document.querySelector('.plane canvas').getBoundingClientRect().x") - 20) / STEPS
    used = browser.gpu_time()
    browser.start_trace()
    browser.point("mousePressed", x, y)
    for number in (*range(STEPS), *range(STEPS, -1, -1)):
        browser.point("mouseMoved", x - step * number, y)
    browser.point("mouseReleased", x, y, pressed=False)
    trace = browser.end_trace()
    script, painting = zip(*trace.frames(), strict=True)
    return {
        "frames": len(script),
        "script p50": statistics.median(script),
        "script p90": statistics.quantiles(script, n=10)[-1],
        "painting p50": statistics.median(painting),
        "gpu": (browser.gpu_time() - used) / len(script),
    }


def server_memory(folder: Path) -> Figures:
    """Return the megabytes used by the server, and by its database in *folder*."""
    sizes: Figures = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text().replace("\0", " ")
            environment = (process / "environ").read_text(errors="replace")
        except OSError:
            continue
        if "kg_memory serve" in command and f"KG_MEMORY_DATA_DIR={folder}\0" in environment:
            sizes["server"] = resident(int(process.name))
        if "redis-server" in command and str(folder) in command:
            sizes["database"] = resident(int(process.name))
    return sizes


def measure(folder: Path, rounds: int) -> dict[str, Figures]:
    """Return the figures of each part, as medians of *rounds* rounds."""
    taken: dict[str, list[Figures]] = {name: [] for name in ("cold", "warm", "drag", "memory")}
    for _ in range(rounds):
        with served(folder) as (port, _):
            urlopen(f"http://127.0.0.1:{port}/v1/namespaces/another/stats").close()  # until the database is there
            for name in ("cold", "warm"):
                with Browser() as browser:
                    time.sleep(2)
                    taken[name].append(open_page(browser, port))
                    if name == "warm":
                        browser.until("document.documentElement.dataset.placed", 120)
                        taken["memory"].append(browser.memory() | server_memory(folder))
                        taken["drag"].append(drag(browser))
    return {name: {key: middle(row[key] for row in rows) for key in rows[0]} for name, rows in taken.items()}


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keep the database here")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    parser.add_argument("--quick", action="store_true", help="2,000 facts, one round")
    chosen = parser.parse_args()
    facts, rounds = (2000, 1) if chosen.quick else (chosen.facts, chosen.rounds)
    with kept(chosen.folder) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        with opened(folder) as memory:
            fill(memory, facts)
        figures = measure(folder, rounds)
    for name, row in figures.items():
        print(f"{name:<8}" + "  ".join(f"{key} {value:,}" for key, value in row.items()))
    write(figures, chosen.out)


if __name__ == "__main__":
    main()
