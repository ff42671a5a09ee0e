"""``unbag review`` as a process of its own."""

import json
import subprocess
import sys
import urllib.request


class Command:
    """``unbag review`` as a process of its own, and what a page would send to it."""

    def __init__(self, folder, *options, table="colours.csv"):
        arguments = ["review", "m.unbag", table, "--no-browser", *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "unbag.cli", *arguments], cwd=folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
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

    def kill(self):
        """End it at once."""
        self.process.kill()
        self.process.communicate(timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
