"""A browser without scripts, for tests of the desk: it follows redirects, keeps its cookie and fills in forms."""

from __future__ import annotations

import html
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import cookiejar
from typing import Any
from urllib import error, parse, request

from deniable.desk.desk import Desk
from deniable.desk.server import Serving

PATIENCE = 120.0  # seconds


@contextmanager
def serving(desk: Desk) -> Iterator[Serving]:
    """A desk that is served in a thread, and stopped afterwards."""
    served = Serving(desk)
    thread = threading.Thread(target=served.server.run, kwargs={"sockets": [served.socket]}, daemon=True)
    thread.start()
    until = time.monotonic() + PATIENCE
    while not served.server.started and time.monotonic() < until:
        time.sleep(0.01)
    try:
        yield served
    finally:
        served.server.should_exit = True
        thread.join(30)
        desk.bench.close()
        served.socket.close()


class Visitor:
    """Someone with the token."""

    def __init__(self, served: Serving) -> None:
        self.served = served
        self.base = f"http://127.0.0.1:{served.port}"
        self.opener = request.build_opener(request.HTTPCookieProcessor(cookiejar.CookieJar()))
        self.text, self.status, self.place, self.slowest = "", 0, "", 0.0
        self._open(f"/?token={served.token}")

    def _open(self, path: str, body: bytes | None = None, **headers: str) -> str:
        own = {"Origin": self.base, **headers} if body is not None else headers
        begun = time.monotonic()
        try:
            answer: Any = self.opener.open(request.Request(self.base + path, body, own), timeout=PATIENCE)
        except error.HTTPError as refusal:
            answer = refusal
        self.text, self.status = answer.read().decode(), answer.status
        self.place = parse.urlsplit(answer.url).path
        self.slowest = max(self.slowest, time.monotonic() - begun)
        return self.text

    def page(self, step: str, language: str = "en") -> str:
        return self._open(f"/{step}", **{"Accept-Language": language})

    def wait(self, step: str) -> str:
        """The page of a step once the work that it shows is done."""
        until = time.monotonic() + PATIENCE
        while 'data-state="running"' in self.page(step) and time.monotonic() < until:
            time.sleep(0.05)
        assert 'data-state="running"' not in self.text
        return self.text

    def send(self, step: str, **fields: Any) -> str:
        """Send the form of the page that is open, with some fields changed, and wait for the page that follows."""
        sent = {**(self.fields(self.text) if self.place == f"/{step}" else {}), **fields}
        self._open(f"/{step}", parse.urlencode(sent, doseq=True).encode())
        if self.status == 200 and 'data-state="running"' in self.text:
            self.wait(self.place[1:])
        return self.text

    @property
    def problem(self) -> str:
        found = re.search(r'class="problem"[^>]*>([^<]*)<', self.text)
        return "" if found is None else html.unescape(found[1])

    @staticmethod
    def fields(page: str) -> dict[str, str]:
        """What the form of a page would send."""
        fields: dict[str, str] = {}
        for tag in re.findall(r"<input ([^>]*)>", page):
            named = dict(re.findall(r'([\w.-]+)="([^"]*)"', tag))
            chosen = named.get("type") not in ("radio", "checkbox") or re.search(r"\bchecked\b", tag)
            if "name" in named and chosen:
                fields[named["name"]] = html.unescape(named.get("value", ""))
        for name, inside in re.findall(r'<select name="([^"]+)"[^>]*>(.*?)</select>', page, re.DOTALL):
            options = re.findall(r'<option(?: value="([^"]*)")?([^>]*)>([^<]*)', inside)
            chosen_one = next((one for one in options if "selected" in one[1]), options[0])
            fields[name] = html.unescape(chosen_one[0] or ("" if 'value=""' in inside else chosen_one[2]))
        return fields

    def role_of(self, column: str) -> str:
        """The field of a column's role."""
        found = re.search(rf'id="column-(\d+)">{re.escape(column)}<', self.text)
        assert found is not None, column
        return f"role.{found[1]}"

    def figures_of(self, heading: str) -> list[str]:
        """The cells of the rows with this heading."""
        return [
            html.unescape(re.sub(r"<[^>]+>", "", cell))
            for row in re.findall(r"<tr[^>]*>(.*?)</tr>", self.text, re.DOTALL)
            if heading in row
            for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
        ]
