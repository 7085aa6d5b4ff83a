"""The explorer in a real browser, where one is installed."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from kg_memory import GraphMemory
from kg_memory.cli.demo import read_story
from tests.hostile.messages import BIDI
from tests.server.conftest import Serving

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not BROWSER or not DRIVER, reason="no chromium and chromedriver are installed")
AXE = Path(__file__).parent / "axe/axe.min.js"
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--lang=en",
)
HOSTILE = (
    "<img src=x onerror=hacked=1>",
    "<script>hacked=1</script>",
    "javascript:hacked=1",
    f"{BIDI[3]}Acme",
    "{{7*7}}",
)
CHECK = """
const done = arguments[0];
axe.run(document, {resultTypes: ["violations"]}).then((result) => done(result.violations.map(
  (one) => `${one.id}: ${one.nodes.map((node) => node.target).join(" ")}`)), (error) => done([String(error)]));
"""


class Page:
    """The page in a browser; *url* is the server's."""

    def __init__(self, url: str) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER or ""
        for argument in ARGUMENTS:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.url = url

    def resize(self, width: int, height: int = 900) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def set_scheme(self, scheme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def open(self, link: str) -> None:
        self.driver.get("about:blank")
        self.driver.get(f"{self.url}/explorer/#{link}")
        self.until(lambda: self.run("return document.documentElement.dataset.ready"))

    def until(self, condition: Callable[[], Any]) -> Any:
        return WebDriverWait(self.driver, 15, poll_frequency=0.1, ignored_exceptions=()).until(lambda _: condition())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def text(self, selector: str = "body") -> str:
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def shows(self, words: str, selector: str = "#panel") -> None:
        try:
            self.until(lambda: words in self.text(selector))
        except Exception as error:
            raise AssertionError(f"{words!r} is not in {self.text(selector)!r}") from error

    def press(self, keys: str) -> None:
        self.driver.find_element(By.TAG_NAME, "body").send_keys(keys)

    def click(self, words: str, within: str = "body") -> None:
        """Click the first button in *within* whose text begins with *words*."""
        script = """
        const buttons = [...document.querySelector(arguments[1])?.querySelectorAll("button") ?? []];
        const button = buttons.find((one) => one.innerText.trim().startsWith(arguments[0]) && !one.disabled);
        button?.click(); return Boolean(button);
        """
        self.until(lambda: self.run(script, words, within))

    def violations(self) -> list[str]:
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text("utf-8")})
        return self.driver.execute_async_script(CHECK)


@pytest.fixture(scope="module")
def memory(offline: GraphMemory) -> GraphMemory:
    offline.add_many(read_story(), namespace="demo")
    return offline


@pytest.fixture(scope="module")
def opened(serving: Serving) -> Iterator[Page]:
    page = Page(serving.url)
    yield page
    page.driver.quit()


@pytest.fixture
def page(opened: Page, memory: GraphMemory) -> Iterator[Page]:
    """The page; after each test, nothing went to another host, and the console is without errors."""
    opened.resize(1440)
    opened.set_scheme("light")
    yield opened
    messages = [json.loads(entry["message"])["message"] for entry in opened.driver.get_log("performance")]
    sent = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    assert sent
    assert not [url for url in sent if not url.startswith((opened.url, "data:", "about:", "blob:"))]
    assert not [entry for entry in opened.driver.get_log("browser") if entry["level"] == "SEVERE"]


def test_the_story_is_loaded_by_one_click_and_followed_live(page: Page) -> None:
    page.open("ns=story/1")
    page.shows("is empty", "#graph")
    page.click("Load the story")
    page.shows("24 messages", "#counts")
    page.shows("Nora", "#side")
    page.shows("0 waiting")
    assert "I switched from coffee to tea" in page.text("#panel")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1440, "dark"), (390, "light")])
def test_no_view_breaks_a_rule_of_accessibility(page: Page, memory: GraphMemory, width: int, scheme: str) -> None:
    page.resize(width)
    page.set_scheme(scheme)
    fact = next(fact for fact in memory.facts.list(namespace="demo") if fact.invalid_at)
    nora = memory.entities.card("Nora", namespace="demo").entity.id
    links = ("view=live", f"view=fact&id={fact.id}", f"view=entity&id={nora}", "view=review", "view=search&q=Nora")
    for link in (*links, "view=changes&compare=true&at=2023-12-24T00:00:00.000Z"):
        page.open(f"ns=demo&{link}&pane=panel")
        page.until(lambda: page.text("#panel .view") and "Loading" not in page.text("#panel"))
        assert page.violations() == [], link
        assert page.run("return document.documentElement.scrollWidth <= innerWidth"), link
    for pane in ("graph", "time", "side") if width < 500 else ():
        page.open(f"ns=demo&pane={pane}")
        assert page.violations() == [], pane
    page.press("?")
    assert page.violations() == []


def test_who_ended_a_fact_is_marked_in_the_message(page: Page, memory: GraphMemory) -> None:
    (fact,) = [
        fact for fact in memory.facts.about("Nora", namespace="demo") if "coffee" in fact.objects and fact.invalid_at
    ]
    page.open(f"ns=demo&view=fact&id={fact.id}")
    page.shows("ENDED BY")
    assert page.text("#panel mark") == "I switched from coffee to tea, by the way."


def test_a_link_shows_then_and_now_again(page: Page) -> None:
    page.open("ns=demo&view=changes&compare=true&at=2023-12-24T00:00:00.000Z")
    page.shows("上海")
    page.shows("6", "#panel")
    before = page.text("#panel").split("BEGUN")[1]
    page.driver.refresh()
    page.shows("BEGUN")
    page.until(lambda: page.text("#panel").split("BEGUN")[1] == before)
    page.press("c")
    page.until(lambda: "compare" not in page.run("return location.hash"))
    page.press("n")
    page.until(lambda: "at=" not in page.run("return location.hash"))


def test_the_keys_lead_everywhere(page: Page) -> None:
    page.open("ns=demo")
    for key, view in (("r", "review"), ("d", "changes"), ("s", "search"), ("[", "at=")):
        page.press(key)
        page.until(lambda view=view: view in page.run("return location.hash"))
    page.press("/")
    page.driver.switch_to.active_element.send_keys("Where does Nora live?", Keys.ENTER)
    page.shows("What an agent gets")
    page.press(Keys.ESCAPE)
    page.press("?")
    page.shows("Help", "dialog")
    page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    page.until(lambda: not page.run("return document.querySelector('dialog[open]')"))


def test_hostile_words_are_text(page: Page, memory: GraphMemory) -> None:
    for name in HOSTILE:
        memory.facts.add(name, "knows", "Ann", sentence=f"{name} knows Ann", namespace="hostile/1")
    memory.add(f"{HOSTILE[0]} I live in Bergen.", speaker=HOSTILE[1], thread=HOSTILE[0], namespace="hostile/1")
    ann = memory.entities.card("Ann", namespace="hostile/1").entity.id
    for link in ("view=live", f"view=entity&id={ann}", "view=search&q=Ann", f"view=search&q={HOSTILE[0]}"):
        page.open(f"ns=hostile/1&{link}")
        page.until(lambda: "Loading" not in page.text("#panel"))
        page.shows(HOSTILE[0], "#side")
    page.shows(HOSTILE[0])
    assert page.run("return [typeof hacked, document.querySelectorAll('img, body script, iframe').length]") == [
        "undefined",
        0,
    ]


def test_a_wrong_merge_is_undone(page: Page, memory: GraphMemory) -> None:
    for name in ("Ann", "Anne"):
        memory.facts.add(name, "lives in", f"{name}stad", namespace="merge/1")
    ann = memory.entities.card("Ann", namespace="merge/1").entity.id
    page.open(f"ns=merge/1&view=entity&id={ann}")
    page.click("Merge …", "#panel")
    page.shows("Anne", "dialog")
    page.run("[...document.querySelectorAll('dialog label')].find((one) => one.innerText.startsWith('Anne ')).click()")
    page.click("Merge", "dialog")
    page.shows("was merged with")
    assert len(memory.facts.about("Ann", namespace="merge/1")) == 2
    page.click("Undo", "#panel")
    page.shows("was undone")
    assert len(memory.facts.about("Ann", namespace="merge/1")) == 1


def test_forgetting_shows_what_goes_and_returns_first(page: Page, memory: GraphMemory) -> None:
    memory.add("I live in Bergen.", speaker="Liv", at="2024-01-10", namespace="forget/1")
    memory.add("I moved to Oslo.", speaker="Liv", at="2024-06-10", namespace="forget/1")
    (oslo,) = [fact for fact in memory.facts.about("Liv", namespace="forget/1") if "Oslo" in fact.objects]
    page.open(f"ns=forget/1&view=fact&id={oslo.id}")
    page.click("Forget this message", "#panel")
    page.shows("Facts that hold again: 1", "dialog")
    assert memory.stats(namespace="forget/1").episodes == 2
    page.click("Forget for good", "dialog")
    page.shows("No trace is left", "dialog")
    assert [fact.objects for fact in memory.facts.about("Liv", namespace="forget/1")] == [("Bergen",)]


def test_a_correction_says_where_told_dates_stand(page: Page, memory: GraphMemory) -> None:
    memory.facts.add("Ann", "lives in", "Bergen", valid_at="2023-02-01", namespace="correct/1")
    (fact,) = memory.facts.about("Ann", namespace="correct/1")
    for start, until, words in (
        ("2023-02-01", "2024-06-01", "Corrected."),
        ("2023-05-01", "2024-06-01", "still stand"),
    ):
        page.open(f"ns=correct/1&view=fact&id={fact.id}")
        page.click("Correct", "#panel")
        script = "document.querySelectorAll('dialog input').forEach((one, place) => { if (place) one.value = arguments[place - 1]; })"
        page.run(script, start, until)
        page.click("Save", "dialog")
        page.shows(words, "body")
    (corrected,) = memory.facts.about("Ann", namespace="correct/1")
    assert corrected.invalid_at is not None
    assert corrected.invalid_at.year == 2024


def test_the_page_speaks_chinese(page: Page) -> None:
    page.open("ns=demo")
    page.run("localStorage.setItem('kg-memory language', 'zh')")
    page.open("ns=demo")
    assert page.run("return document.documentElement.lang") == "zh"
    assert "搜索" in page.text("#panel")
    page.run("localStorage.clear()")


@pytest.mark.skipif(not os.environ.get("KG_MEMORY_PICTURE"), reason="KG_MEMORY_PICTURE names no file to write")
def test_the_picture_of_the_docs_is_taken(page: Page) -> None:
    page.resize(1200, 750)
    page.open("ns=demo&view=changes&compare=true&at=2023-12-24T00:00:00.000Z")
    page.until(lambda: page.run("return document.documentElement.dataset.placed"))
    time.sleep(1)
    picture = Path(os.environ["KG_MEMORY_PICTURE"])
    picture.write_bytes(page.driver.get_screenshot_as_png())
    assert picture.stat().st_size < 200_000
