"""Make the animated picture of the README from the real page: ``python -m docs.film docs/explorer.webp``."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.demo.demo import read_story
from kg_memory.contrib.server.service import Options
from tests.server.browser import Page
from tests.server.conftest import Serving

SIZE = (1200, 720)
SHOWN = (1000, 600)
MOVING, RESTING, READING = 130, 1300, 3200
"""Milliseconds of a frame while something moves, before the next thing happens, and while there is much to read."""
Frame = tuple[Image.Image, int]


def main(path: Path) -> None:
    """Write the film to *path*."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder), idle_seconds=0, model="offline")
        with GraphMemory.open(settings=settings, embeddings="offline") as memory:
            memory.add_many(read_story(), namespace="demo")
            memory.communities.refresh(namespace="demo")
            with Serving(memory, Options()) as serving:
                page = Page(serving.url)
                try:
                    frames = list(film(page, memory))
                finally:
                    page.driver.quit()
    images, times = zip(*frames, strict=True)
    images[0].save(path, save_all=True, append_images=images[1:], duration=times, loop=0, quality=62, method=6)
    sys.stdout.write(f"{path}: {len(frames)} frames, {sum(times) / 1000:.1f} s, {path.stat().st_size / 1e6:.2f} MB\n")


def film(page: Page, memory: GraphMemory) -> Iterator[Frame]:
    """Yield the frames: time goes by, two times are compared, and a fact that ended shows what ended it."""
    nora = memory.entities.card("Nora", namespace="demo").entity.id
    page.resize(*SIZE)
    page.set_scheme("light")
    page.open(f"ns=demo&view=entity&id={nora}&at=2023-02-20T00:00:00.000Z")
    page.until(lambda: page.run("return document.documentElement.dataset.placed"))
    yield from rest(page, RESTING)
    yield from drag(page, ".handle:not(.b)", right=300, steps=60)
    yield from rest(page, RESTING)
    page.press("c")
    yield from rest(page, READING)
    page.shows("Nora uses coffee")
    page.click("Nora uses coffee", "#panel")
    page.shows("ENDED BY")
    yield from rest(page, READING)
    page.run("document.querySelector('#panel mark').scrollIntoView({block: 'center'})")
    yield from rest(page, READING)


def drag(page: Page, handle: str, *, right: int, steps: int) -> Iterator[Frame]:
    """Drag *handle* to the right by so many pixels, a frame a step."""
    ActionChains(page.driver, duration=0).click_and_hold(page.driver.find_element(By.CSS_SELECTOR, handle)).perform()
    for step in range(steps):
        moved = right * (step + 1) // steps - right * step // steps
        ActionChains(page.driver, duration=0).move_by_offset(moved, 0).perform()
        yield shoot(page), MOVING
    ActionChains(page.driver, duration=0).release().perform()


def rest(page: Page, milliseconds: int) -> Iterator[Frame]:
    """Let the page come to rest, and yield what it shows."""
    page.run("return document.fonts.ready.then(() => new Promise((resolve) => setTimeout(resolve, 400)))")
    yield shoot(page), milliseconds


def shoot(page: Page) -> Image.Image:
    """Return what the page shows."""
    picture = Image.open(io.BytesIO(page.driver.get_screenshot_as_png()))
    return picture.convert("RGB").resize(SHOWN, Image.Resampling.LANCZOS)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
