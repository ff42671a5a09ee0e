"""``unbag review`` as a process of its own."""

import json
import os
import signal
import subprocess
import sys
import urllib.request


class Command:
    """``unbag review`` as a process of its own, and what a page would send to it.

    With variables of the `environment`, it opens the browser that they name.
    """

    def __init__(self, folder, *options, model="m.unbag", table="colours.csv", environment=None):
        arguments = ["review", model, table, *options]
        arguments += ["--no-browser"] if environment is None else []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "unbag.cli", *arguments], cwd=folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONFAULTHANDLER": "1"} | (environment or {}),
        )  # fmt: skip
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("http://127.0.0.1:"), self.process.stderr.read()
        self.origin, _, self.token = self.address.partition("/?token=")

    def ask(self, path, body=None):
        headers = {"X-Unbag-Token": self.token}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers |= {"Content-Type": "application/json", "Origin": self.origin}
        request = urllib.request.Request(f"{self.origin}/api/{path}", data, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def interrupt(self):
        """Send Ctrl-C and return its stderr, with every stack if it does not end."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.communicate(timeout=60)[1]
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            raise AssertionError(self.process.communicate()[1]) from None

    def kill(self):
        """End it at once."""
        self.process.kill()
        self.process.communicate(timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
