"""The explorer in a real browser, where one is installed."""

import os
from itertools import combinations, product

import pytest
from selenium.webdriver.common.keys import Keys

from tests.hostile.messages import BIDI
from tests.server.browser import needs_browser

pytestmark = needs_browser
HOSTILE = (
    "<img src=x onerror=hacked=1>",
    "<script>hacked=1</script>",
    "javascript:hacked=1",
    f"{BIDI[3]}Acme",
    "{{7*7}}",
)
NAMES = """
const done = arguments[0];
import(new URL("js/graph.js", document.baseURI)).then(({ view }) => {
  const { width, height } = view.sigma.getDimensions();
  const at = view.sigma.getGraph().mapNodes((node) => view.positionOf(node));
  const reach = (part, whole) => (Math.max(...at.map(part)) - Math.min(...at.map(part))) / whole;
  done([view.labels.shown, at.map(({ x, y }) => [x, y, x, y]), [reach(({ x }) => x, width), reach(({ y }) => y, height)]]);
});
"""


def test_story_loads_by_one_click_and_updates_live(page):
    page.open("ns=story/1")
    page.shows("is empty", "#graph")
    assert page.violations() == []
    page.click("Load the story")
    page.shows("24 messages", "#counts")
    page.shows("Nora", "#side")
    page.shows("I switched from coffee to tea")
    page.shows("0 waiting")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "dark"), (390, "light")])
def test_views_have_no_accessibility_violation(page, offline, width, scheme):
    page.resize(width)
    page.set_scheme(scheme)
    fact = next(fact for fact in offline.facts.list(namespace="demo") if fact.invalid_at)
    nora, coffee = (offline.entities.card(name, namespace="demo").entity.id for name in ("Nora", "coffee"))
    links = f"link&id={nora}%20{coffee} entity&id={nora}&focus={nora}&steps=2 live fact&id={fact.id} entity&id={nora}"
    then = "changes&compare=true&at=2023-12-24T00:00:00.000Z"
    page.open("ns=demo")
    for link in (*links.split(), "review", "search&q=Nora", "saved", then):
        page.go(f"ns=demo&view={link}&pane=panel")
        page.until(lambda: page.text("#panel .view") and "Loading" not in page.text("#panel"))
        assert page.violations() == [], link
        assert "SUMMARY" not in page.text("#panel"), "an offline summary repeats what the card shows"
        assert page.run("return document.documentElement.scrollWidth <= innerWidth"), link
    for pane in ("graph", "time", "side") if width < 500 else ():
        page.go(f"ns=demo&pane={pane}")
        assert page.violations() == [], pane
    page.press("?")
    assert page.violations() == []


def test_fact_view_marks_the_words_that_ended_the_fact(page, offline):
    facts = offline.facts.about("Nora", namespace="demo")
    fact = next(one for one in facts if "coffee" in one.objects and one.invalid_at)
    page.open(f"ns=demo&view=fact&id={fact.id}")
    page.shows("ENDED BY")
    assert page.text("#panel mark") == "I switched from coffee to tea, by the way."


def test_graph_fills_its_pane_and_its_names_cover_nothing(page, offline):
    for fact in (("Ann", "likes", "Oslo"), ("Ann", "visited", "Oslo"), ("Oslo", "hosts", "Ann")):
        offline.facts.add(*fact, namespace="names/1")
    for namespace, words in (("names/1", "3 facts"), ("demo", "Nora")):
        page.open(f"ns={namespace}")
        page.until(lambda: page.run("return document.documentElement.dataset.placed"))
        names, nodes, reach = page.driver.execute_async_script(NAMES)
        assert words in {name["text"] for name in names}, namespace
        assert max(reach) > 0.6, namespace
        boxes = [name["box"] for name in names if "box" in name]
        spots = [[*spot, *spot] for name in names for spot in name.get("spots", ())]
        for one, other in [*combinations(boxes, 2), *product(boxes, nodes + spots)]:
            assert one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1], namespace
    page.go("ns=demo&view=search&q=Oslo")
    page.shows("What an agent gets")
    page.go("ns=demo&at=2023-12-24T00:00:00.000Z")  # the light of the search goes out, and Lisbon gets its first fact
    page.until(lambda: "Lisbon" in {name["text"] for name in page.driver.execute_async_script(NAMES)[0]})


def test_link_restores_comparison_of_two_times(page):
    page.open("ns=demo&view=changes&compare=true&at=2023-12-24T00:00:00.000Z")
    page.shows("上海")
    before = page.text("#panel").split("BEGUN")[1]
    page.driver.refresh()
    page.shows("BEGUN")
    page.until(lambda: page.text("#panel").split("BEGUN")[1] == before)
    page.press("c")
    page.until(lambda: "compare" not in page.run("return location.hash"))
    page.press("n")
    page.until(lambda: "at=" not in page.run("return location.hash"))


def test_keyboard_shortcuts_open_every_view(page):
    page.open("ns=demo")
    for key, view in (("r", "review"), ("d", "changes"), ("s", "search"), ("m", "saved"), ("[", "at=")):
        page.press(key)
        page.until(lambda view=view: view in page.run("return location.hash"))
    page.press("/")
    page.driver.switch_to.active_element.send_keys("Where does Nora live?", Keys.ENTER)
    page.shows("What an agent gets")
    page.shows("Nora lives in Oslo", "#panel .answer h2")
    page.shows("since 16 Sept 2024", "#panel .answer")
    assert "learned on" in page.run("return document.querySelector('svg.axis').textContent")
    page.press(Keys.ESCAPE)
    page.press("?")
    page.shows("Help", "dialog")
    page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    page.until(lambda: not page.run("return document.querySelector('dialog[open]')"))


def test_hostile_texts_are_shown_as_text(page, offline):
    for name in HOSTILE:
        offline.facts.add(name, "knows", "Ann", sentence=f"{name} knows Ann", namespace="hostile/1")
    offline.add(f"{HOSTILE[0]} I live in Bergen.", speaker=HOSTILE[1], thread=HOSTILE[0], namespace="hostile/1")
    ann = offline.entities.card("Ann", namespace="hostile/1").entity.id
    for link in ("view=live", f"view=entity&id={ann}", "view=search&q=Ann", f"view=search&q={HOSTILE[0]}"):
        page.open(f"ns=hostile/1&{link}")
        page.until(lambda: "Loading" not in page.text("#panel"))
        page.shows(HOSTILE[0], "#side")
    page.shows(HOSTILE[0])
    script = "return [typeof hacked, document.querySelectorAll('img, body script, iframe').length]"
    assert page.run(script) == ["undefined", 0]


@pytest.mark.parametrize(("stays", "gone"), [("Ann", "Anne"), ("Anne", "Ann")])
def test_merge_can_be_undone_in_the_page(page, offline, stays, gone):
    space = f"merge/{stays}"
    for name in ("Ann", "Anne"):
        offline.facts.add(name, "lives in", f"{name}stad", namespace=space)
    page.open(f"ns={space}&view=entity&id={offline.entities.card('Ann', namespace=space).entity.id}")
    page.click("Merge …", "#panel")
    page.shows("Anne", "dialog")
    assert page.violations() == []
    page.run("[...document.querySelectorAll('dialog label')].find((one) => one.innerText.startsWith('Anne ')).click()")
    page.run("document.querySelector('dialog select').value = arguments[0]", "this" if stays == "Ann" else "other")
    page.click("Merge", "dialog")
    page.shows("was merged with")
    assert page.violations() == []
    assert len(offline.facts.about(stays, namespace=space)) == 2
    page.shows(f"also called {gone}")
    page.click("Undo", "#panel")
    page.shows("was undone")
    assert len(offline.facts.about(stays, namespace=space)) == 1


def test_forget_dialog_shows_effects_before_deletion(page, offline):
    offline.add("I live in Bergen.", speaker="Liv", at="2024-01-10", namespace="forget/1")
    offline.add("I moved to Oslo.", speaker="Liv", at="2024-06-10", namespace="forget/1")
    (oslo,) = [fact for fact in offline.facts.about("Liv", namespace="forget/1") if "Oslo" in fact.objects]
    page.open(f"ns=forget/1&view=fact&id={oslo.id}")
    page.click("Forget this message", "#panel")
    page.shows("Facts that hold again: 1", "dialog")
    assert page.violations() == []
    assert offline.stats(namespace="forget/1").episodes == 2
    page.click("Forget for good", "dialog")
    page.shows("No stored value has its ids", "dialog")
    assert page.violations() == []
    assert [fact.objects for fact in offline.facts.about("Liv", namespace="forget/1")] == [("Bergen",)]


def test_correction_reports_dates_that_still_stand_and_is_undone(page, offline):
    offline.facts.add("Ann", "lives in", "Bergen", valid_at="2023-02-01", namespace="correct/1")
    (fact,) = offline.facts.about("Ann", namespace="correct/1")
    for city, start, until, words in (
        ("Bergen", "2023-02-01", "2024-06-01", "Corrected."),
        ("Bergen", "2023-05-01", "2024-06-01", "still count"),
        ("Oslo", "2024-07-01", "", "Ann lives in Oslo"),
    ):
        page.open(f"ns=correct/1&view=fact&id={fact.id}")
        page.click("Correct", "#panel")
        script = "document.querySelectorAll('dialog input').forEach((one, place) => { one.value = arguments[place]; })"
        page.run(script, city, start, until)
        assert page.violations() == []
        page.click("Save", "dialog")
        page.shows(words, "body")
    page.click("Undo", ".toasts")
    page.until(lambda: "Undone." in page.text() and "Ann lives in Bergen" in page.text(".title h2"))
    (corrected,) = offline.facts.about("Ann", namespace="correct/1")
    assert corrected.invalid_at is not None
    assert corrected.invalid_at.year == 2024


def test_page_is_translated_to_chinese(page):
    page.open("ns=demo")
    page.run("localStorage.setItem('kg-memory language', 'zh')")
    page.open("ns=demo")
    assert page.run("return document.documentElement.lang") == "zh"
    assert "搜索" in page.text("#panel")
    assert page.violations() == []
    page.run("localStorage.clear()")


@pytest.mark.skipif(not os.environ.get("KG_MEMORY_PICTURE"), reason="KG_MEMORY_PICTURE names no file to write")
def test_picture_for_the_docs_is_saved(page):
    page.resize(1200, 750)
    page.open("ns=demo&view=changes&compare=true&at=2023-12-24T00:00:00.000Z")
    page.until(lambda: page.run("return document.documentElement.dataset.placed"))
    page.driver.save_screenshot(os.environ["KG_MEMORY_PICTURE"])
