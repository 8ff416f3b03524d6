"""Who is let in at the desk, and what it takes: tokens, hosts, origins, paths, sizes, tabs."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from deniable.desk.desk import Desk
from deniable.desk.server import MOST_BYTES, Serving
from tests.desk.visitor import Visitor, serving

PEOPLE = "age,sex,disease\n" + "".join(
    f"{20 + i % 60},{'FM'[i % 2]},{['flu', 'cold', 'hiv', 'flu'][i % 4]}\n" for i in range(400)
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    home = tmp_path_factory.mktemp("desk")
    (home / "people.csv").write_text(PEOPLE, encoding="utf-8")
    made = Desk(home=home)
    made.open(str(home / "people.csv"))
    with serving(made) as served:
        yield served


def asked(served: Serving, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Any:
    """One request as it is given, and the answer."""
    line = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    own = {name.replace("_", "-"): value for name, value in headers.items()}
    line.request(method, path, body, own)
    answer = line.getresponse()
    answer.text = answer.read().decode()  # type: ignore[attr-defined]
    line.close()
    return answer


def cookie(served: Serving) -> str:
    return f"deniable-desk-{served.port}={served.token}"


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_page_can_use(desk: Serving) -> None:
    answer = asked(desk, f"/?token={desk.token}&lang=de")
    assert answer.status == 303
    assert answer.getheader("location") == "/?lang=de"
    said = answer.getheader("set-cookie")
    assert said.startswith(f"deniable-desk-{desk.port}={desk.token};")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in said.split(";")}
    assert asked(desk, "/table", cookie=cookie(desk)).status == 200


@pytest.mark.parametrize(
    "path", ["/", "/table", "/publish", "/files/style.css", "/progress/read", "/?token=", "/?token=x"]
)
def test_without_the_token_nothing_is_told(desk: Serving, path: str) -> None:
    answer = asked(desk, path)
    assert answer.status == 403
    assert answer.text.startswith("This desk is open for its owner alone.")
    assert asked(desk, path, cookie=f"deniable-desk-{desk.port}=x{desk.token[1:]}").status == 403


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "127.0.0.1:1", "localhost.example.org", "[::1]", ""])
def test_a_foreign_host_is_refused(desk: Serving, host: str) -> None:
    """Also with the token: a name that an attacker makes to lead here is not ours."""
    answer = asked(desk, "/table", cookie=cookie(desk), host=host)
    assert answer.status in (400, 421)
    assert "flu" not in answer.text


@pytest.mark.parametrize("origin", ["http://example.org", "null", "http://127.0.0.1:1", "https://127.0.0.1"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_origin_is_refused(desk: Serving, method: str, origin: str) -> None:
    assert asked(desk, "/table", method, b"", cookie=cookie(desk), origin=origin).status == 403


def test_a_form_without_an_origin_and_a_page_framed_elsewhere_are_refused(desk: Serving) -> None:
    assert asked(desk, "/columns", "POST", b"go=next", cookie=cookie(desk)).status == 403
    assert asked(desk, "/table", cookie=cookie(desk), sec_fetch_site="cross-site").status == 403
    assert asked(desk, "/table", cookie=cookie(desk), sec_fetch_site="same-origin").status == 200


def test_every_answer_forbids_frames_other_scripts_and_copies(desk: Serving) -> None:
    for path in ("/table", "/nothing", "/files/desk.js"):
        answer = asked(desk, path, cookie=cookie(desk))
        policy = answer.getheader("content-security-policy")
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.getheader("cache-control") == "no-store"
        assert answer.getheader("server") is None
    assert asked(desk, "/table").getheader("x-frame-options") == "DENY"  # refusals, too


@pytest.mark.parametrize(
    "path",
    [
        "/files/../desk.py",
        "/files/%2e%2e/server.py",
        "/files/..%2f..%2fdesk.py",
        "/..//..//etc/passwd",
        "/files//etc/passwd",
        "/%2fetc%2fpasswd",
        "/people.csv",
        "/deniable.toml",
    ],
)
def test_no_path_leads_to_a_file(desk: Serving, path: str) -> None:
    answer = asked(desk, path, cookie=cookie(desk))
    assert answer.status == 404
    assert "root:" not in answer.text
    assert "import" not in answer.text


def test_a_hundred_megabytes_are_refused_and_not_held(desk: Serving) -> None:
    """Stated or sent in pieces: the answer comes before the body does."""
    origin = f"http://127.0.0.1:{desk.port}"
    stated = {"cookie": cookie(desk), "origin": origin, "content_length": str(100 * 2**20)}
    assert asked(desk, "/columns", "POST", b"", **stated).status == 413
    with socket.create_connection(("127.0.0.1", desk.port), timeout=30) as line:
        head = (
            f"POST /columns HTTP/1.1\r\nHost: 127.0.0.1:{desk.port}\r\nOrigin: {origin}\r\nCookie: {cookie(desk)}\r\n"
        )
        line.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        piece = b"10000\r\n" + b"x" * 2**16 + b"\r\n"
        sent = 0
        answer = b""
        with contextlib.suppress(OSError):
            while sent < 100 * 2**20:
                line.sendall(piece)
                sent += 2**16
        line.settimeout(5)
        with contextlib.suppress(OSError):
            answer = line.recv(1000)
    assert answer.startswith(b"HTTP/1.1 413") or sent < 20 * MOST_BYTES
    assert asked(desk, "/table", cookie=cookie(desk)).status == 200


def test_a_body_that_is_no_form_and_a_page_that_is_none(desk: Serving) -> None:
    origin = f"http://127.0.0.1:{desk.port}"
    assert asked(desk, "/columns", "POST", b"\xff\xfe", cookie=cookie(desk), origin=origin).status == 400
    many = urlencode([("a", "b")] * 30_000).encode()
    assert asked(desk, "/columns", "POST", many, cookie=cookie(desk), origin=origin).status == 400
    assert asked(desk, "/other", cookie=cookie(desk)).status == 404
    assert asked(desk, "/table", "DELETE", cookie=cookie(desk), origin=origin).status == 405


def test_a_tab_that_is_older_than_another_ones_change_changes_nothing(desk: Serving) -> None:
    one, other = Visitor(desk), Visitor(desk)
    one.wait("table")
    one.send("table", go="next")
    old = other.fields(other.page("columns"))
    one.send("columns", **{**one.fields(one.text), one.role_of("disease"): "sensitive", "go": "next"})
    assert desk.desk.project is not None
    assert desk.desk.project.sensitive == ("disease",)
    old[other.role_of("age")] = "sensitive"
    other.send("columns", **{**old, "go": "next"})
    assert other.status == 409
    assert "Another tab" in other.text
    assert desk.desk.project.sensitive == ("disease",)
    assert re.search(r'name="role\.\d+"', other.text)  # as things are now, to go on from


def test_it_listens_on_this_machine_alone(desk: Serving) -> None:
    assert desk.socket.getsockname()[0] == "127.0.0.1"
    assert len(desk.token) >= 43
    assert desk.token in desk.address
    assert threading.active_count() >= 2
