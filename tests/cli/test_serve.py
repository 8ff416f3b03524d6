"""`deniable serve`: clients of PostgreSQL ask a release, and get what deniable answers."""

from __future__ import annotations

import json
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import deniable as dn
from tests.golden.cases import CASES

FLU = "SELECT region, COUNT(*) AS n FROM release WHERE disease = 'flu' AND age > 30 GROUP BY region ORDER BY region"


@dataclass
class Served:
    """A release that is served, and where."""

    release: dn.Release
    port: int
    token: str

    @property
    def address(self) -> str:
        return f"host=127.0.0.1 port={self.port} dbname=release user=analyst password={self.token}"

    def rows(self, question: str) -> list[tuple[object, ...]]:
        """What deniable answers."""
        table = self.release.sql(question)
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served") / "release"
    release = CASES["small-domain"].publish(out=folder)
    command = [sys.executable, "-m", "deniable", "serve", str(folder), "--port", "0", "--seconds", "30", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        assert started["host"] == "127.0.0.1"
        yield Served(release, started["port"], started["token"])
        process.terminate()
        assert process.wait(20) == 0


def test_psql_asks_it(served: Served) -> None:
    if shutil.which("psql") is None:
        pytest.skip("psql is missing: install postgresql-client")

    def psql(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["psql", served.address, "-tAX", *words], capture_output=True, text=True, check=False)

    lines = [line.split("|") for line in psql("-c", FLU).stdout.splitlines()]
    assert [(line[0], *map(float, line[1:])) for line in lines] == served.rows(FLU)
    qualified = psql("-c", 'SELECT COUNT(*) AS n FROM "public"."release" AS r WHERE r.disease = \'hiv\'').stdout
    assert float(qualified.split("|")[0]) == served.release.count({"disease": "hiv"}).value
    assert "release" in psql("-c", "\\dt").stdout
    names = psql("-c", "SELECT column_name FROM information_schema.columns WHERE table_name = 'release'").stdout.split()
    assert names == [name for name in served.release.table.column_names if name != "cell"]
    for refused, words in (
        ("DELETE FROM release", "A release can only be asked"),
        ("SELECT disease FROM release", "'disease' is sensitive"),
        ("SELECT * FROM read_csv('/etc/passwd')", "cannot say this"),
        ("SELECT COUNT(*) FROM range(10000000000)", "Only the table release"),
        ("COPY release TO '/tmp/x'", "A release can only be asked"),
        ("CREATE TABLE x AS SELECT 1", "A release can only be asked"),
        ("SELECT nope FROM release", "There is no column 'nope'"),
    ):
        assert words in psql("-c", refused).stderr, refused
    wrong = subprocess.run(
        ["psql", served.address.replace(served.token, "x" * 22), "-c", FLU], capture_output=True, text=True, check=False
    )
    assert "The password is not the token" in wrong.stderr


def test_psycopg_asks_it_with_parameters_and_transactions(served: Served) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(served.address) as connection:
        asked = "SELECT sex, COUNT(*) AS n FROM release WHERE disease = %s AND age > %s AND insured = %s GROUP BY sex"
        wanted = "SELECT sex, COUNT(*) AS n FROM release WHERE disease = 'flu' AND age > 30 AND insured GROUP BY sex"
        for binary in (False, True):
            assert connection.execute(asked, ("flu", 30, True), binary=binary).fetchall() == served.rows(wanted)
        born = "SELECT born, seen, COUNT(*) AS n FROM release GROUP BY born, seen ORDER BY born, seen LIMIT 3"
        assert connection.execute(born, binary=True).fetchall() == served.rows(born)
        with pytest.raises(psycopg.Error, match="There is no column"):
            connection.execute("SELECT diseas FROM release")
        connection.rollback()
        strange = "SELECT COUNT(*) AS n FROM release WHERE disease = %s"
        assert connection.execute(strange, ("flu'; DROP",)).fetchall()[0][0] == 0  # a text, and nobody's value
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM release LIMIT 0")
            assert [column.name for column in cursor.description][:3] == ["sex", "region", "town"]
            by_town = "SELECT town, COUNT(*) AS n FROM release WHERE disease = 'flu' GROUP BY town"
            told: list[str] = []
            connection.add_notice_handler(lambda notice: told.append(notice.message_primary))
            cursor.execute(f"{by_town} ORDER BY n DESC LIMIT 2")
            assert told
            assert "picked among" in told[0]


def test_sqlalchemy_asks_it(served: Served) -> None:
    sa = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    pytest.importorskip("psycopg")
    engine = sa.create_engine(f"postgresql+psycopg://analyst:{served.token}@127.0.0.1:{served.port}/release")
    with engine.connect() as connection:
        rows = connection.execute(sa.text(FLU.replace("'flu'", ":ill")), {"ill": "flu"}).all()
    engine.dispose()
    assert [tuple(row) for row in rows] == served.rows(FLU)


def test_r_asks_it(served: Served, tmp_path: Path) -> None:
    needed = ["Rscript", "-e", "library(RPostgreSQL)"]
    if shutil.which("Rscript") is None or subprocess.run(needed, capture_output=True, check=False).returncode:
        pytest.skip("R with RPostgreSQL is missing: install r-base-core r-cran-rpostgresql")
    script = tmp_path / "ask.R"
    script.write_text(
        f'library(RPostgreSQL)\nconnection <- dbConnect(PostgreSQL(), host="127.0.0.1", port={served.port}, '
        f'user="analyst", password="{served.token}", dbname="release")\n'
        f'write.csv(dbGetQuery(connection, "{FLU}"), row.names=FALSE)\n'
    )
    done = subprocess.run(["Rscript", str(script)], capture_output=True, text=True, check=True)
    lines = [line.split(",") for line in done.stdout.splitlines()[1:]]
    assert [line[0].strip('"') for line in lines] == [row[0] for row in served.rows(FLU)]
    assert [float(line[1]) for line in lines] == pytest.approx([row[1] for row in served.rows(FLU)])


def greeting(served: Served) -> socket.socket:
    """A client that has sent its first words."""
    client = socket.create_connection(("127.0.0.1", served.port), timeout=20)
    words = b"user\0analyst\0database\0release\0\0"
    client.sendall(struct.pack("!ii", len(words) + 8, 196608) + words)
    return client


def received(client: socket.socket) -> bytes:
    parts = []
    while True:
        part = client.recv(65536)
        if not part:
            return b"".join(parts)
        parts.append(part)


def sent(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("!i", len(content) + 4) + content


@pytest.mark.parametrize(
    "hostile",
    [
        b"\xff" * 40,
        struct.pack("!ii", 2**30, 196608),
        struct.pack("!ii", 8, 80877102),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_who_speaks_something_else_is_left(hostile: bytes, served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as client:
        client.sendall(hostile)
        client.shutdown(socket.SHUT_WR)
        assert received(client) == b""
    assert served.release.count().value == 3600


def test_before_the_token_nothing_is_answered(served: Served) -> None:
    with greeting(served) as client:
        client.sendall(sent(b"Q", FLU.encode() + b"\0"))
        answer = received(client)
    assert b"The password is not the token" in answer
    assert b"north" not in answer


def test_broken_messages_are_refused_and_the_next_is_answered(served: Served) -> None:
    with greeting(served) as client:
        client.sendall(sent(b"p", served.token.encode() + b"\0"))
        client.sendall(sent(b"B", b"\0nosuch\0\0\0\0\0\0\0") + sent(b"E", b"") + sent(b"S", b""))
        client.sendall(sent(b"P", b"\0SELECT $1\0\0\0") + sent(b"B", b"\0\0\0\0\0\1\0\0\xff\xff") + sent(b"S", b""))
        client.sendall(sent(b"?", b"abc") + sent(b"S", b"") + sent(b"Q", b"\xff\xfe\0"))
        client.sendall(sent(b"Q", FLU.encode() + b"\0") + sent(b"X", b""))
        answer = received(client)
    assert answer.count(b"There is no prepared statement") == 1
    assert b"north" in answer
    with greeting(served) as client:
        client.sendall(sent(b"p", served.token.encode() + b"\0") + b"Q" + struct.pack("!i", 2**30))
        client.shutdown(socket.SHUT_WR)
        assert b"at most 1,048,576 are read" in received(client)


def test_a_question_has_its_time_and_a_token_its_length(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    CASES["small-domain"].publish(out=folder)
    (tmp_path / "token").write_text("a token of mine\n")
    command = [sys.executable, "-m", "deniable", "serve", str(folder), "--port", "0", "--json"]
    timed = [*command, "--seconds", "0.1", "--token-file", str(tmp_path / "token")]
    with subprocess.Popen(timed, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        served = Served(dn.open_release(folder), started["port"], started["token"])
        with greeting(served) as client:
            slow = (
                "SELECT disease, "
                + ", ".join(f"AVG(pay * {k}) AS a{k}" for k in range(300))
                + " FROM release GROUP BY disease"
            )
            client.sendall(sent(b"p", b"a token of mine\0") + sent(b"Q", slow.encode() + b"\0") + sent(b"X", b""))
            assert b"The question took more than 0.1 seconds" in received(client)
        process.terminate()
        process.wait(60)
    (tmp_path / "token").write_text("short")
    done = subprocess.run(
        [*command, "--token-file", str(tmp_path / "token")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "8 to 1,000" in done.stderr
