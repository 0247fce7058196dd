#!/usr/bin/env python3
"""Uses the page of a running server as a person would, in headless Chromium, and says what is wrong.

Usage: browser.py CHROMIUM URL API_KEY OUTPUT_FOLDER
The server routes between two models and asks for API_KEY. Screenshots go to OUTPUT_FOLDER."""
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

QUESTION = "What is 4822 + 22 - 2763?"


class Browser:
    """Chromium's DevTools protocol over a pair of pipes."""

    def __init__(self, program, profile):
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def place_pipes():
            os.dup2(to_browser, 13)
            os.dup2(from_browser, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self._process = subprocess.Popen(
            [program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=place_pipes, close_fds=False, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._held = b""
        self._last_id = 0
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.faults = []
        self.call("Runtime.enable")
        self.call("Page.enable")

    def call(self, method, **parameters):
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._held:
                more = os.read(self._in, 1 << 20)
                if not more:
                    raise SystemExit("page: the browser ended")
                self._held += more
            line, self._held = self._held.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("method") == "Runtime.exceptionThrown":
                details = answer["params"]["exceptionDetails"]
                self.faults.append(details.get("exception", {}).get("description") or details["text"])
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise SystemExit(f"page: {method}: {answer['error']['message']}")
                return answer["result"]

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"page: {expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression, what, seconds=30):
        until = time.monotonic() + seconds
        while not self.js(expression):
            if time.monotonic() > until:
                raise SystemExit(f"page: waited in vain for {what}; state: {self.js('document.body.innerText')}")
            time.sleep(0.05)

    def click(self, selector):
        at = self.js(f"""(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();
                                  return [r.x + r.width / 2, r.y + r.height / 2]; }})()""")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], clickCount=1,
                      button="none" if kind == "mouseMoved" else "left")

    def point_at(self, selector):
        at = self.js(f"""(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();
                                  return [r.x + r.width / 2, r.y + r.height / 2]; }})()""")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=at[0], y=at[1])

    def type(self, selector, text):
        self.js(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def press_enter(self):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r",
                      windowsVirtualKeyCode=13)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def shot(self, file):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        file.write_bytes(base64.b64decode(data))

    def end(self):
        self.call("Browser.close")
        self._process.wait(timeout=20)


def expect(holds, what):
    if not holds:
        raise SystemExit(f"page: {what}")


def text_of(browser, selector):
    return browser.js(f"document.querySelector({json.dumps(selector)}).textContent")


def number_of(browser, selector):
    return float(text_of(browser, selector).replace(",", ""))


def check_key(browser, key):
    browser.wait("document.querySelector('#state').className.includes('bad')", "the refusal without a key")
    expect("API key" in text_of(browser, "#state"), "the page does not say that a key is wanted")
    browser.wait("document.querySelector('#more').open", "the settings to open")
    browser.type("#key", key)
    browser.js("document.querySelector('#key').dispatchEvent(new Event('change'))")
    browser.wait("document.querySelector('#state').className.includes('ready')", "the state")
    browser.js("document.querySelector('#more').open = false")
    expect(browser.js("document.querySelectorAll('#legend li').length") == 2, "the legend lacks models")
    expect(browser.js("document.querySelectorAll('#model option').length") == 3, "the choice of models is not complete")


def check_answer(browser):
    handoffs = number_of(browser, "#all-handoffs")
    finished = number_of(browser, "#finished")
    browser.type("#prompt", QUESTION)
    browser.press_enter()
    browser.wait("document.querySelector('.answer .foot')?.textContent.includes('complete')", "the answer")
    answer = text_of(browser, ".answer .text")
    expect("2081" in answer, f"the answer is wrong: {answer}")
    expect("<think>" not in answer and "<|im_end|>" not in answer, f"special tokens are shown: {answer}")
    by_model = [browser.js(f"document.querySelectorAll('.answer .m{i}.token').length") for i in (0, 1)]
    expect(all(n > 0 for n in by_model), f"tokens by model: {by_model}")
    expect(number_of(browser, "#handoffs") > 0, "no handoffs are counted")
    expect(number_of(browser, "#tokens") >= sum(by_model), "tokens are missing from the count")
    expect(number_of(browser, "#rate") > 0, "there is no throughput")
    shares = browser.js("[...document.querySelectorAll('#legend .share')].map(x => parseFloat(x.textContent))")
    expect(abs(sum(shares) - 100) < 0.3, f"shares: {shares}")
    colours = browser.js("['.m0', '.m1'].map(x => getComputedStyle(document.querySelector('.answer .token' + x)).color)")
    expect(colours[0] != colours[1], "both models have one colour")
    browser.point_at(".answer .m1.token")
    browser.wait("!document.querySelector('#tip').hidden", "the score")
    expect("abacus-m" in text_of(browser, "#tip"), text_of(browser, "#tip"))
    browser.wait(f"Number(document.querySelector('#finished').textContent) > {finished}", "the server's counts")
    expect(number_of(browser, "#all-handoffs") - handoffs == number_of(browser, "#handoffs"),
           f"the answer had {text_of(browser, '#handoffs')} handoffs, the server counts {handoffs} and then "
           f"{text_of(browser, '#all-handoffs')}")


def check_stop(browser):
    """An answer that would go on for long, stopped."""
    browser.js("document.querySelector('#temperature').value = 1.9; document.querySelector('#most').value = 1900;"
               "document.querySelector('#model').value = 'abacus-m'")
    browser.type("#prompt", "List all numbers from 1 to 999, each with its square.")
    for attempt in range(20):
        browser.press_enter()
        browser.wait("document.querySelector('#stop').disabled || "
                     "document.querySelectorAll('.answer:last-child .token').length > 3", "the first tokens")
        browser.js("document.querySelector('#stop').click()")
        browser.wait("document.querySelector('#stop').disabled", "the end")
        if "stopped" in text_of(browser, ".answer:last-child .foot"):
            break
        browser.type("#prompt", f"And from {attempt}?")  # it was done before it could be stopped
    else:
        raise SystemExit("page: no answer could be stopped")
    browser.wait("fetch('/v1/routing', {headers: headers()}).then(x => x.json()).then(x => x.requests).then("
                 "x => x.cancelled > 0 && x.running + x.waiting === 0)", "the server to cancel the request")


def main():
    program, url, key, folder = sys.argv[1:]
    output = pathlib.Path(folder)
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(program, profile)
        browser.size(1280, 800)
        browser.call("Page.navigate", url=url)
        browser.wait("document.readyState === 'complete' && !!document.querySelector('#state')", "the page")
        check_key(browser, key)
        check_answer(browser)
        browser.shot(output / "page.png")
        before = browser.js("document.documentElement.dataset.theme")
        browser.click("#theme")
        expect(browser.js("document.documentElement.dataset.theme") != before, "the theme stays")
        browser.shot(output / "page-other-theme.png")
        check_stop(browser)
        browser.shot(output / "page-stopped.png")
        browser.size(420, 860)
        browser.shot(output / "page-narrow.png")
        expect(browser.js("document.documentElement.scrollWidth <= innerWidth"), "a narrow window scrolls sideways")
        browser.end()
        expect(not browser.faults, f"exceptions: {browser.faults}")


main()
