"""A headless Chromium that is driven by chromedriver, in the words of the WebDriver protocol."""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver") or shutil.which("chromium.chromedriver")
# As WebDriver has keys that are no characters.
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Up": "\ue013", "Down": "\ue015",
        "Left": "\ue012", "Right": "\ue014"}  # fmt: skip


class Browser:
    """A window of a browser; to be used in a ``with`` block."""

    def __init__(self, width=1200, height=900, dark=False):
        # The name of a socket that the browser opens there has room for some hundred characters.
        short = "/tmp" if os.path.isdir("/tmp") else None
        self.profile = tempfile.mkdtemp(dir=short)
        environment = {**os.environ, "TMPDIR": self.profile}
        self.driver = subprocess.Popen(
            [DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment,
        )  # fmt: skip
        for line in self.driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                break
        self.root = f"http://127.0.0.1:{found[1]}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic",
                     "--no-first-run", "--disable-background-networking", "--mute-audio",
                     "--disable-component-update", "--disable-sync", "--hide-scrollbars",
                     "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required",
                     f"--user-data-dir={self.profile}",
                     f"--window-size={width},{height}"]  # fmt: skip
        if dark:
            arguments.append("--force-dark-mode")
        chrome = {"binary": CHROMIUM, "args": arguments}
        wanted = {"browserName": "chrome", "goog:chromeOptions": chrome,
                  "goog:loggingPrefs": {"browser": "ALL"}}  # fmt: skip
        made = self.call("/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"
        # The window that is asked for, not that of a phone or less, which has a least width.
        self.command(
            "/goog/cdp/execute",
            {"cmd": "Emulation.setDeviceMetricsOverride",
             "params": {"width": width, "height": height, "deviceScaleFactor": 1,
                        "mobile": False}},
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command(
            "/goog/cdp/execute",
            {"cmd": "Emulation.setEmulatedMedia", "params": {"features": [scheme]}},
        )

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def command(self, path, body=None):
        return self.call(self.session + path, body)

    def open(self, address):
        self.command("/url", {"url": address})

    def run(self, script, *arguments):
        """Run the body of a function in the page; return what that returns."""
        return self.command("/execute/sync", {"script": script, "args": list(arguments)})

    def press(self, *keys):
        """Press keys, one after the other, wherever the focus is."""
        actions = []
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self.command("/actions", {"actions": [source]})

    def click(self, selector):
        """Click on the middle of an element."""
        place = self.run(
            "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});"
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2];",
            selector,
        )
        x, y = map(round, place)
        actions = [{"type": "pointerMove", "x": x, "y": y}, {"type": "pointerDown", "button": 0},
                   {"type": "pointerUp", "button": 0}]  # fmt: skip
        source = {"type": "pointer", "id": "mouse", "actions": actions}
        self.command("/actions", {"actions": [source]})

    def wait(self, condition, *arguments, seconds=30):
        """Wait until an expression is true in the page; return its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := self.run(f"return {condition};", *arguments):
                return found
            time.sleep(0.02)
        shown = self.run("return document.body.innerText;")
        raise AssertionError(f"{condition} {arguments} has not come true; the page says: {shown}")

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent;", selector)

    def errors(self):
        """Return what the console says is wrong."""
        entries = self.command("/se/log", {"type": "browser"})
        return [each["message"] for each in entries if each["level"] == "SEVERE"]

    def picture(self, path):
        """Write what the window shows to a file."""
        path.write_bytes(base64.b64decode(self.command("/screenshot")))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            request = urllib.request.Request(self.root + self.session, method="DELETE")
            urllib.request.urlopen(request, timeout=30).close()
        finally:
            self.driver.terminate()
            self.driver.wait(timeout=30)
            self.driver.stdout.close()
            shutil.rmtree(self.profile, ignore_errors=True)
