"""A page in a real browser, if one is installed: read its text, click, press keys, check accessibility."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(not BROWSER or not DRIVER, reason="no chromium and chromedriver are installed")
AXE = Path(__file__).parent / "axe/axe.min.js"
ARGUMENTS = (
    "--headless=new --no-sandbox --disable-dev-shm-usage --disable-background-networking "
    "--use-angle=swiftshader --enable-unsafe-swiftshader --lang=en"
).split()
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

    def go(self, link: str) -> None:
        """Show *link* in the open page, without a reload."""
        self.driver.execute_async_script(
            "const [hash, done] = arguments;"
            "addEventListener('hashchange', () => setTimeout(done), { once: true }); location.hash = hash;",
            link,
        )

    def until(self, condition: Callable[[], Any]) -> Any:
        return WebDriverWait(self.driver, 120, poll_frequency=0.1, ignored_exceptions=()).until(lambda _: condition())

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
