"""Tasks of a user of the explorer, each by at most three clicks, drags or keys from where it begins."""

from typing import Any

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from kg_memory.contrib.server.keys import KEYS
from tests.server.browser import Page, needs_browser
from tests.server.conftest import state_dispute

pytestmark = needs_browser
HOSTILE = "<img src=x onerror=hacked=1>"
SPOT = """
const [name, done] = arguments;
import(new URL("js/graph.js", document.baseURI)).then(async ({ view }) => {
  const { look } = await import(new URL("js/looking.js", document.baseURI));
  const { x, y } = view.positionOf(look.graph.entities.name.indexOf(name));
  const box = document.querySelector(".stage").getBoundingClientRect();
  done([Math.round(box.left + x), Math.round(box.top + y)]);
});
"""
PLACES = """
const done = arguments[0];
import(new URL("js/graph.js", document.baseURI)).then(({ view }) => {
  done(Object.fromEntries(view.sigma.getGraph().mapNodes((node, { label, x, y }) => [label, [x, y]])));
});
"""
INK = """
const canvas = document.querySelector("canvas.areas");
return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0);
"""
FILTERS = "types Topic,|predicates USES,|source,demo|speaker,Tom|trust,0.6|confidence,0.6"
FILTER = """
const control = document.querySelector(`[data-control="${arguments[0]}"]`);
if (!arguments[1]) return control.click();
control.value = arguments[1];
control.dispatchEvent(new Event(control.type === "range" ? "input" : "change"));
"""


def read_link(page: Page) -> dict[str, str]:
    """Return the parameters of the link in the address bar."""
    return page.run("return Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")


def count_shown(page: Page) -> int:
    return int(page.text("#shown").split()[0])


def drag(page: Page, handle: str, right: int, down: int) -> None:
    element = page.driver.find_element(By.CSS_SELECTOR, handle)
    page.until(element.is_displayed)
    ActionChains(page.driver, duration=50).drag_and_drop_by_offset(element, right, down).perform()


def press_in_dialog(page: Page, *keys: str) -> None:
    page.until(lambda: page.run("return document.querySelector('dialog[open]')"))
    page.driver.switch_to.active_element.send_keys(*keys)


def test_review_is_decided_and_undone_by_keys(page, offline):
    state_dispute(offline, "review/1")

    def decisions() -> list[str]:
        listed = (offline.reviews.list(namespace="review/1", decided=decided) for decided in (False, True))
        return [one.decision for reviews in listed for review in reviews for one in review.decisions]

    page.open("ns=review/1&view=review")
    page.shows("judged by")
    for key, words in (("a", "Accepted."), ("x", "Rejected.")):
        page.press(key)
        page.shows(words, "body")
        page.shows("Nothing waits for you.")
        page.press("u")
        page.until(lambda: "Nothing waits" not in page.text("#panel"))
    page.press("e")
    page.until(lambda: page.run("return document.querySelector('dialog[open]')"))
    assert page.violations() == []
    press_in_dialog(page, "both", Keys.TAB, Keys.ENTER)
    page.shows("Saved.", "body")
    page.shows("edited by")
    assert decisions() == ["accept", "undo", "reject", "undo", "edit"]
    assert page.violations() == []
    assert len([fact for fact in offline.facts.about("Ann", namespace="review/1") if not fact.invalid_at]) == 2


def test_saved_memories_are_traced_deleted_and_disabled(page, offline):
    """The explorer shows the source of a saved memory, deletes it, and turns saving off.

    Features: I1.
    """
    for content, at in (("I live in Bergen.", "2024-01-10"), ("I moved to Oslo.", "2024-06-10")):
        offline.add(content, speaker="Liv", at=at, namespace="saved/1")
    offline.facts.add("Liv", "likes", HOSTILE, sentence=f"Liv likes {HOSTILE}", at="2024-01-01", namespace="saved/1")
    page.open("ns=saved/1&view=saved")
    page.shows("Saving is on.")
    page.shows(HOSTILE)
    assert "Bergen" not in page.text("#saved"), "that fact has ended"
    page.run("document.querySelector('#saved summary').click()")
    page.shows("I moved to Oslo.", "#saved li")
    assert page.violations() == []
    page.click("Delete", "#saved li")
    page.shows("Facts that hold again: 1", "dialog")
    assert offline.stats(namespace="saved/1").episodes == 3
    page.click("Forget for good", "dialog")
    page.shows("No stored value has its ids", "dialog")
    page.click("Close", "dialog")
    page.shows("Bergen", "#saved")
    assert "Oslo" not in page.text("#saved")
    page.click("Turn saving off", "#panel")
    page.shows("Saving is off")
    assert offline.stats(namespace="saved/1").paused
    page.click("Turn saving on", "#panel")
    page.shows("Saving is on.")
    assert not offline.stats(namespace="saved/1").paused
    page.resize(390)
    page.open("ns=saved/1&view=saved&pane=panel")
    page.shows("Bergen", "#saved")
    assert page.violations() == []
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")


def test_namesakes_are_split_and_split_is_undone(page, offline):
    for city in ("Oslo", "Lima"):
        offline.facts.add("Ann", "lives in", city, namespace="split/1")
    ann = offline.entities.card("Ann", namespace="split/1").entity.id
    page.open(f"ns=split/1&view=entity&id={ann}")
    page.click("Split …", "#panel")
    page.shows("Lima", "dialog")
    assert page.violations() == []
    page.run("[...document.querySelectorAll('dialog label')].find((one) => one.innerText.includes('Lima')).click()")
    page.click("Split", "dialog")
    page.shows("was split from")
    page.shows("Lima")
    page.until(lambda: read_link(page)["id"] != ann)
    page.click("Undo", ".toasts")
    page.until(lambda: len(offline.facts.about(ann, namespace="split/1")) == 2)


def test_cross_hairs_move_by_dragging(page, offline):
    page.open(f"ns=demo&view=entity&id={offline.entities.card('Nora', namespace='demo').entity.id}")
    page.shows("VALID AT A")
    now, valid = count_shown(page), page.text("#panel section")
    drag(page, ".handle:not(.b)", -650, 0)
    page.until(lambda: 0 < count_shown(page) < now and page.text("#panel section") != valid)
    page.until(lambda: read_link(page).keys() == {"ns", "view", "id", "at"})
    drag(page, ".handle:not(.b)", 0, 120)
    page.until(lambda: "believed" in read_link(page))
    page.click("Compare with B")
    drag(page, ".handle.b", -60, 60)
    page.until(lambda: {"at2", "believed2"} <= read_link(page).keys())
    page.shows("From A")


def test_cross_hairs_move_by_arrow_keys(page):
    page.open("ns=demo")
    handle = page.driver.find_element(By.CSS_SELECTOR, ".handle:not(.b)")
    before = handle.get_attribute("aria-valuetext")
    handle.send_keys(Keys.ARROW_LEFT)
    page.until(lambda: handle.get_attribute("aria-valuetext") != before)
    page.until(lambda: "at" in read_link(page))
    first = read_link(page)["at"]
    handle.send_keys(Keys.SHIFT, Keys.ARROW_LEFT)
    page.until(lambda: read_link(page)["at"] < first)
    handle.send_keys(Keys.SHIFT, Keys.ARROW_DOWN)
    page.until(lambda: "believed" in read_link(page))
    handle.send_keys(Keys.PAGE_DOWN)
    page.until(lambda: count_shown(page) == 0)
    page.click("Nora", "#side")
    page.shows("Nothing was known yet at A")


def test_filters_show_fewer_facts(page, offline):
    """Each filter of the explorer shows fewer facts, and is kept in the link.

    Features: D16.
    """
    offline.facts.add("Tom", "owns", "boat", trust=0.5, confidence=0.5, source="letters", namespace="demo")
    page.open("ns=demo")
    every = count_shown(page)
    page.run("""document.querySelector('[aria-label="Only Place"]').click()""")
    page.until(lambda: 0 < count_shown(page) < every)
    page.click("all", "#side")
    for control, value in (filter_.split(",") for filter_ in FILTERS.split("|")):
        page.run(FILTER, control, value)
        page.until(lambda: 0 < count_shown(page) < every)
        page.until(lambda control=control: control.split()[0] in read_link(page))
        assert page.violations() == [], control
        assert "hidden by filters" in page.text("#graph")
        fewer = count_shown(page)
        if control == "speaker":
            page.driver.refresh()
            page.until(lambda fewer=fewer: page.text("#shown") and count_shown(page) == fewer)
        page.click("Clear all filters", "#side")
        page.until(lambda: count_shown(page) == every)


def test_communities_are_found_and_drawn_as_areas(page, offline):
    page.open("ns=demo")
    assert not page.run(INK)
    page.click("Find communities", "#graph")
    page.shows("Communities: 2.", "body")
    page.until(lambda: page.run(INK))
    assert "Find communities" not in page.text("#graph")
    page.click("Nora", "#side")
    page.shows(offline.communities.list(namespace="demo")[0].name)
    assert page.violations() == []


def test_double_click_shows_only_the_neighbourhood(page):
    page.open("ns=demo")
    page.until(lambda: page.run("return document.documentElement.dataset.placed"))
    every = count_shown(page)

    def double_click() -> bool:  # repeated, as a slow machine may see two single clicks
        pointer = ActionChains(page.driver, duration=0)
        pointer.w3c_actions.pointer_action.move_to_location(*page.driver.execute_async_script(SPOT, "Tom"))
        pointer.double_click().pause(0.5).perform()
        return "Near Tom" in page.text("#graph")

    page.until(double_click)
    page.until(lambda: 0 < count_shown(page) < every)
    page.shows("Tom")
    page.press(Keys.ESCAPE)
    page.until(lambda: count_shown(page) == every)


def test_message_becomes_fact_and_shows_its_cost(page, offline):
    offline.add("I live in Bergen.", speaker="Liv", at="2024-01-10", namespace="live/1")
    page.open("ns=live/1")
    page.shows("listening")
    page.until(lambda: page.run("return document.documentElement.dataset.placed"))
    before = page.driver.execute_async_script(PLACES)
    page.driver.find_element(By.CSS_SELECTOR, "#say input").send_keys("Liv")
    page.driver.find_element(By.CSS_SELECTOR, "#say textarea").send_keys("I moved to Oslo.", Keys.ENTER)
    page.shows("no model call")
    page.shows("Liv lives in Oslo", "#feed")
    page.shows("Oslo", "#side")
    page.until(lambda: page.run("return document.querySelectorAll('#feed .chip.ended').length"))
    places = page.driver.execute_async_script(PLACES)
    assert places.pop("Oslo") not in before.values()
    assert places == before, "entities stay where they are"
    assert page.violations() == []
    page.click("Liv lives in Oslo", "#feed")
    page.click("Forget this message", "#panel")
    page.click("Forget for good", "dialog")
    page.click("Close", "dialog")
    page.press("l")
    page.until(lambda: "Liv" not in page.text("#feed"))


def test_fact_view_shows_premises_and_consequences(page, offline):
    def find(subject: str) -> str:
        return next(fact.id for fact in offline.facts.about(subject, namespace="why/1") if fact.subject == subject)

    offline.facts.add("Acme", "has an office in", "Oslo", valid_at="2024-01", namespace="why/1")
    grounds = [find("Acme")]
    offline.facts.add("Ann", "commutes to", "Oslo", valid_at="2024-02", rests_on=grounds, namespace="why/1")
    page.open(f"ns=why/1&view=fact&id={find('Ann')}")
    page.shows("RESTS ON")
    page.click("Acme", "#panel ul")
    page.shows("WHAT RESTS ON IT")
    page.shows("Ann commutes to Oslo")
    assert page.violations() == []


def test_verdicts_show_reason_and_author(page, offline):
    state_dispute(offline, "verdict/1")
    (review,) = offline.reviews.list(namespace="verdict/1")
    offline.reviews.decide(review.id, "accept", by="Mia", reason="Ann told me.", namespace="verdict/1")
    page.open(f"ns=verdict/1&view=fact&id={review.existing.id}")
    page.shows("VERDICTS")
    page.shows("accepted by Mia")
    page.shows("Ann told me.")
    assert page.violations() == []


def test_page_asks_for_key_if_server_has_keys(page, ring, offline):
    _, key = ring.create("explorer", ("read",), ("demo",))
    try:
        page.driver.get(f"{page.url}/explorer/#ns=demo")
        for words, said in (("kgm_wrong", "That key was refused."), (key, "")):
            page.shows("Key", "dialog")
            assert page.violations() == []
            press_in_dialog(page, words, Keys.ENTER)
            page.shows(said, "body")
        page.shows("Nora", "#side")
        assert key not in page.run("return location.href")
    finally:
        page.run("sessionStorage.clear()")
        page.driver.get("about:blank")  # else its event stream reconnects with a deleted key
        offline.driver.store.database.command("DEL", KEYS)
    refused: list[dict[str, Any]] = [entry for entry in page.driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert refused
    assert all("401" in entry["message"] for entry in refused), refused
