"""Test vectors for verifiers: small releases that hold, and forged ones with the check that fails.

    python docs/reference/make_vectors.py        writes docs/reference/vectors/

Forgers here state what they please: the sentence, the README, the weights and every digest are made again from the
manifest that they forged, so that only the check that is named has something against it.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import deniable as dn
import deniable_verify
from deniable import mechanisms
from deniable.core.manifest import Manifest, with_sentence
from deniable.release.readme import analyst_readme
from deniable.release.weights import Weights
from deniable.tables.storage import digest_of

VECTORS = Path(__file__).resolve().parent / "vectors"
KEY, DAY = bytes(range(32)), "1760000000"
JOBS = list("abcdefgh")
Json = dict[str, Any]

# -- Tables ------------------------------------------------------------------------------------------------------------


def people(rows: int = 1_500) -> pa.Table:
    rng = np.random.default_rng(2)
    return pa.table(
        {
            "sex": rng.choice(["F", "M"], rows),
            "town": rng.choice(["A", "B", "C"], rows),
            "job": rng.choice(JOBS, rows, p=np.arange(8, 0, -1) / 36),
        }
    )


def aged(rows: int = 1_500) -> pa.Table:
    age = np.random.default_rng(3).integers(18, 90, rows)
    return people(rows).append_column("age", pa.array(age))


def listed() -> pa.Table:
    rng = np.random.default_rng(5)
    some = [[item for item in "xyz" if rng.random() < 0.3] for _ in range(1_500)]
    return pa.table({"sex": rng.choice(["F", "M"], 1_500), "ills": [one[:2] for one in some]})


def copied() -> pa.Table:
    table = people(4_000)
    return table.append_column("work", table["job"])


FREQUENCY = dn.Privacy("1/4", "1/2")
ANY_PRIOR = dn.Privacy("1/4", "1/2", adversary="any-prior")
OWN = dn.Privacy(per_value=dict.fromkeys("abcdef", ("1/4", "2/5")))
RARE = dn.Privacy("1/10", "1/5")


@dataclass(frozen=True)
class Good:
    """A release that holds: its options, its table, and what cannot be checked of it."""

    options: Json
    table: Callable[[], pa.Table] = people
    unchecked: tuple[str, ...] = ()


def of_job(mechanism: Any, privacy: Any = FREQUENCY, **more: Any) -> Json:
    return {"sensitive": "job", "mechanism": mechanism, "privacy": privacy, **more}


GOOD: dict[str, Good] = {
    "uniform": Good(of_job("uniform")),
    "uniform-any-prior": Good(of_job("uniform", ANY_PRIOR, domain=JOBS), lambda: people(6_000)),
    "uniform-of-many-rows": Good(of_job("uniform"), lambda: people(6_000)),
    "uniform-csv": Good(of_job("uniform", format="csv"), lambda: people(500)),
    "uniform-frequent-values": Good(of_job("uniform", RARE)),
    "uniform-without-histogram": Good(
        of_job("uniform", dn.Privacy("1/10", "3/4"), marginals=False), lambda: people(6_000), ("left out", "left out")
    ),
    "uniform-of-bins": Good(
        {"sensitive": "age", "mechanism": "uniform", "privacy": "1/2", "bins": {"age": [18, 40, 60, 90]}}, aged
    ),
    "uniform-recoded": Good(of_job("uniform", recode={"age": dn.bands(10)}), aged),
    "uniform-signed": Good(of_job("uniform", sign=Ed25519PrivateKey.from_private_bytes(KEY))),
    "small-domain": Good(of_job("small-domain", dn.Privacy("1/4", "1/3")), people, ("frequencies in cells",)),
    "fine-grain": Good(of_job("fine-grain", OWN)),
    "fine-grain-any-prior": Good(of_job("fine-grain", ANY_PRIOR, domain=JOBS)),
    "designed": Good(of_job("designed")),
    "designed-two-columns": Good(
        {"sensitive": ["job", "town"], "mechanism": "designed", "privacy": dn.Privacy("1/8", "1/4")},
        lambda: people(20_000),
    ),
    "identity": Good(of_job("identity")),
    "line-ups": Good(of_job("lineup")),
    "line-ups-any-prior": Good(of_job("lineup", ANY_PRIOR, domain=JOBS)),
    "line-ups-by-codes": Good(
        of_job(mechanisms.Lineup(size=17), ANY_PRIOR, domain=[*JOBS, *(f"z{number:02}" for number in range(16))]),
        lambda: people(300),
    ),
    "decoys": Good(of_job("decoys:c=4", None)),
    "decoys-small-sums": Good(
        of_job("decoys", dn.Privacy(small_sums=dn.SmallSums("3/10", 2, "1/2")), domain=JOBS),
    ),
    "redraw": Good(of_job("redraw", None)),
    "pram": Good(of_job("pram")),
    "retention": Good(
        {
            "mechanism": mechanisms.Retention(
                {
                    "job": dn.Replace(privacy=dn.Privacy("1/4", "1/2")),
                    "age": dn.Replace(coin=0.4, low=0, high=99),
                    "town": dn.Replace(coin=0.5, replacing="identity"),
                }
            )
        },
        aged,
    ),
    "retention-swapped": Good({"mechanism": mechanisms.Retention({"job": dn.Replace(coin=0.5, replacing="swapping")})}),
    "items": Good({"sensitive": "ills", "mechanism": mechanisms.Items(most=2), "privacy": FREQUENCY}, listed),
    "synthetic": Good(of_job("synthetic", dn.Privacy(epsilon=2), domain=JOBS), lambda: people(3_000)),
    "synthetic-a-table-for-each-column": Good(
        of_job(mechanisms.Synthetic(tables=(("sex",), ("town",))), dn.Privacy(epsilon=2), domain=JOBS),
        lambda: people(3_000),
    ),
    "synthetic-list-by-threshold": Good(of_job("synthetic", dn.Privacy(epsilon=4))),
}

# -- What forgers do ---------------------------------------------------------------------------------------------------


@dataclass
class Forged:
    """A copy of a release in a forger's hands; what is not ``kept`` is made again from the manifest."""

    folder: Path
    raw: Json
    kept: set[str] = field(default_factory=set)

    @property
    def part(self) -> Json:
        made: Json = self.raw["parts"][0]
        return made

    @property
    def promise(self) -> Json:
        made: Json = self.part["promise"]
        return made

    def table(self, name: str = "data") -> pa.Table:
        return pq.read_table(self.folder / f"{name}.parquet")

    def write(self, table: pa.Table, name: str = "data") -> None:
        pq.write_table(table, self.folder / f"{name}.parquet")

    def column(self, name: str, values: Any, table: str = "data") -> None:
        """Other values in a column of a table."""
        old = self.table(table)
        kind = old.schema.field(name)
        self.write(old.set_column(old.column_names.index(name), kind, pa.array(values, kind.type)), table)

    def finish(self) -> None:
        """Make again what follows from the manifest."""
        if "manifest" not in self.kept:
            stated = Manifest.from_dict(self.raw)
            if "weights" not in self.kept and (weights := Weights.of(stated)) is not None and self.raw.get("weights"):
                self.write(weights.table(), "weights")
            if "sentence" not in self.kept:
                stated = with_sentence(stated)
                self.raw["guarantee"]["sentence"] = stated.guarantee["sentence"]
        for name in ("data", "lineups", "tables", "weights"):
            if self.raw.get(name) and name not in self.kept and (self.folder / self.raw[name]["file"]).exists():
                self.raw[name]["sha256"] = digest_of(self.folder / self.raw[name]["file"])
        text = json.dumps(self.raw, indent=1, ensure_ascii=False) + "\n"
        (self.folder / "manifest.json").write_text(text, encoding="utf-8")
        if not {"README", "manifest"} & self.kept:
            (self.folder / "README.md").write_text(analyst_readme(Manifest.from_dict(self.raw)), encoding="utf-8")


Change = Callable[[Forged], Any]


def beside(release: Forged) -> None:
    with (release.folder / "originals.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["job"], *([job] for job in people()["job"].to_pylist()[:50])])


def in_metadata(release: Forged) -> None:
    release.write(release.table().replace_schema_metadata({"originals": "a,b,a,c"}))


def after_the_columns(release: Forged) -> None:
    """Bytes between the last column and the footer, which readers pass over."""
    path = release.folder / "data.parquet"
    content, hidden = path.read_bytes(), b"job=a;job=c;job=b"
    size = int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[: -8 - size] + hidden + content[-8 - size :])


def raw_rows(release: Forged) -> None:
    release.column("job", people(6_000)["job"])


def turned_round(release: Forged) -> None:
    release.write(release.table().take(np.arange(1_500)[::-1]))


def more_than_all(release: Forged) -> None:
    release.part["cells"][0]["replace"][0] += 5


def exchanged(release: Forged) -> None:
    counts = release.part["marginal"]["counts"]
    counts[0], counts[6] = counts[6], counts[0]


def lower(release: Forged, name: str, number: str) -> None:
    for part in release.raw["parts"]:
        part["promise"][name] = number


def for_nobody(release: Forged) -> None:
    release.raw["privacy"]["exempt"] = JOBS
    release.promise["exempt"] = list(range(8))


def far_beliefs(release: Forged) -> None:
    breach = {"kind": "relative-prior", "s": "50", "rho1": "1/10", "rho2": "1/2", "like_column": False}
    release.raw["parts"][1]["promise"] = breach


def other_groups(release: Forged) -> None:
    release.promise["c"] = release.part["groups"]["c"] = 5


def other_levels(release: Forged) -> None:
    levels = release.table("tables")["level"].to_pylist()
    release.column("level", [*levels[1:], levels[0]], "tables")


def theta(release: Forged, change: Callable[[np.ndarray, np.ndarray], None]) -> None:
    table = release.table("tables")
    number, parameters = table["table"].to_numpy(), table["theta"].to_numpy().copy()
    change(number, parameters)
    release.column("theta", parameters, "tables")


def other_shares(release: Forged) -> None:
    def change(number: np.ndarray, parameters: np.ndarray) -> None:
        parameters[:1] += 60

    theta(release, change)


def other_parameters(release: Forged) -> None:
    """What adds the same to all values of a level changes no probability, and can hold any message."""

    def change(number: np.ndarray, parameters: np.ndarray) -> None:
        parameters[(number == 0)] += 2**16

    theta(release, change)


def rows_of_a_group(release: Forged) -> None:
    rows = release.table().to_pydict()
    jobs, moved = rows["job"], 0
    for place, sex in enumerate(rows["sex"]):
        if sex == "F" and jobs[place] == "a" and moved < 60:
            jobs[place], moved = "h", moved + 1
    release.column("job", jobs)


def rows_of_pairs(release: Forged) -> None:
    """The counts of each column stay as they are; in pairs of them the values of half of the rows are exchanged."""
    rows = release.table().to_pydict()
    at: dict[tuple[str, str, str], list[int]] = {}
    for place, key in enumerate(zip(rows["sex"], rows["town"], rows["job"], strict=True)):
        at.setdefault(key, []).append(place)
    for job, other in (("a", "b"), ("c", "d")):
        corners = [("F", "A", job), ("F", "B", other), ("M", "A", other), ("M", "B", job)]
        number = min(len(at[corner]) for corner in corners)
        for sex, town, shown in corners:
            for place in at[sex, town, shown][:number]:
                rows["job"][place] = other if shown == job else job
    release.column("job", rows["job"])


def finer(release: Forged) -> None:
    release.raw["recoded"]["age"][-1]["width"] = 20


def other_code(release: Forged) -> None:
    stored = release.table("lineups").to_pydict()
    name = list(stored)[-1]
    release.column(name, [*stored[name][:7], stored[name][7] + 1, *stored[name][8:]], "lineups")


def other_weights(release: Forged) -> None:
    release.column("w", [weight * 1.01 for weight in release.table("weights")["w"].to_pylist()], "weights")


def a_link(release: Forged) -> None:
    (release.folder / "README.md").unlink()
    (release.folder / "README.md").symlink_to("/etc/hostname")


def fewer_singles(release: Forged) -> None:
    release.promise["loose"] = []


def silent_readme(release: Forged) -> None:
    path = release.folder / "README.md"
    path.write_text(path.read_text(encoding="utf-8").replace("- ", "* "), encoding="utf-8")


def scaled(number: str, by: float) -> str:
    from fractions import Fraction

    return str(Fraction(number) * Fraction(by).limit_denominator(100))


@dataclass(frozen=True)
class Bad:
    """A forgery: of which release, the only check that fails, what a forger did, and what they kept."""

    of: str
    fails: str
    change: Change
    kept: tuple[str, ...] = ()


BAD: dict[str, Bad] = {
    # the manifest by itself
    "an-unknown-field": Bad("uniform", "manifest", lambda r: r.raw.update(trusted=True), ("manifest",)),
    "an-unknown-version": Bad("uniform", "software", lambda r: r.raw["software"].update(version="9.9.9")),
    "labels-of-no-column": Bad(
        "uniform", "manifest", lambda r: r.raw.update(labels={"pay": [["a", "b"]]}), ("manifest",)
    ),
    "shares-that-do-not-add-up": Bad("uniform", "channels", more_than_all, ("manifest",)),
    "noise-that-is-smaller-than-stated": Bad(
        "uniform", "noisy histogram", lambda r: r.part["marginal"].update(variance=r.part["marginal"]["variance"] / 2)
    ),
    "edges-of-other-bins": Bad(
        "uniform-of-bins", "bins", lambda r: r.part["bins"]["age"].update(edges=[18.0, 40.0, 80.0, 90.0])
    ),
    "a-seed-that-is-not-told": Bad("uniform", "randomness", lambda r: r.raw["randomness"].update(seed=5)),
    # what is stated and required
    "a-smaller-gamma": Bad(
        "uniform", "amplification", lambda r: r.raw["guarantee"].update(gamma="11/10", epsilon=float(np.log(1.1)))
    ),
    "half-of-epsilon": Bad(
        "uniform", "epsilon", lambda r: r.raw["guarantee"].update(epsilon=r.raw["guarantee"]["epsilon"] / 2)
    ),
    "a-stronger-requirement": Bad("uniform", "adversary", lambda r: r.raw["privacy"].update(adversary="any-prior")),
    "a-promise-of-nothing": Bad(
        "uniform", "promise", lambda r: r.part.update(promise={"kind": "nothing", "why": "trust us"})
    ),
    "a-promise-of-an-unknown-kind": Bad(
        "uniform", "promise", lambda r: r.part.update(promise={"kind": "trust", "why": "us"}), ("manifest",)
    ),
    "a-promise-for-nobody": Bad("designed", "promise", for_nobody),
    "a-requirement-of-a-column-that-is-not-kept": Bad(
        "retention", "requirement of 'job'", lambda r: r.part["requirement"].update(s="3")
    ),
    "a-sentence-that-numbers-do-not-give": Bad(
        "uniform",
        "sentence",
        lambda r: r.raw["guarantee"].update(sentence="Nobody learns anything."),
        ("sentence",),
    ),
    # promises by their kinds
    "amplification-above-its-gamma": Bad(
        "uniform", "part amplification", lambda r: lower(r, "gamma", scaled(r.promise["gamma"], 0.95))
    ),
    "a-belief-that-grows-further": Bad("uniform", "posterior", lambda r: lower(r, "rho2", "49/100")),
    "a-frequent-value-that-is-not-named": Bad(
        "uniform-frequent-values", "left out", lambda r: r.promise.update(above=[])
    ),
    "a-rare-value-that-is-called-frequent": Bad(
        "uniform-frequent-values", "left out", lambda r: r.promise["above"].append(7)
    ),
    "a-posterior-above-rho2": Bad("designed", "posterior", lambda r: lower(r, "rho2", "3/10")),
    "single-values-that-are-not-kept": Bad("designed-two-columns", "single values", fewer_singles),
    "a-value-above-its-own-limit": Bad(
        "fine-grain-any-prior", "own amplification", lambda r: r.promise["limits"][0].__setitem__(2, "49/100")
    ),
    "a-cell-above-its-gamma": Bad(
        "small-domain", "cell amplification", lambda r: r.promise["gammas"].__setitem__(0, "101/100")
    ),
    "a-breach-of-a-range": Bad("retention", "no breach in 'age'", far_beliefs),
    "replacements-unlike-the-column": Bad(
        "retention", "replacements of 'town'", lambda r: r.raw["parts"][2]["promise"].update(s="1/2")
    ),
    "values-swapped-among-more-rows": Bad(
        "retention-swapped", "swapped rows of 'job'", lambda r: r.part.update(swapped=10**6)
    ),
    "sets-that-take-beliefs-away": Bad("line-ups", "downward", lambda r: lower(r, "stays", "9/10")),
    "sets-above-their-gamma": Bad(
        "line-ups-any-prior", "part amplification", lambda r: lower(r, "gamma", scaled(r.promise["gamma"], 0.95))
    ),
    "a-posterior-of-sets-above-rho2": Bad("line-ups", "posterior", lambda r: lower(r, "rho2", "3/10")),
    "a-row-of-items-above-its-budget": Bad(
        "items", "row budget", lambda r: lower(r, "gamma", scaled(r.promise["gamma"], 0.95))
    ),
    "groups-of-fewer-values": Bad("decoys", "decoy groups", other_groups),
    "sums-that-are-too-certain": Bad(
        "decoys-small-sums",
        "small sums",
        lambda r: [one["small_sums"].update(at_least="99/100") for one in (r.raw["privacy"], r.promise)],
    ),
    "a-ledger-above-its-gamma": Bad("synthetic", "ledger", lambda r: lower(r, "gamma", "7")),
    "a-table-that-is-not-paid-for": Bad(
        "synthetic", "tables", lambda r: r.part["learned"]["spent"][0].update(what="choice")
    ),
    # the folder
    "originals-beside-the-data": Bad("uniform", "folder", beside),
    "a-link-out-of-the-folder": Bad("uniform", "folder, README", a_link, ("manifest",)),
    "other-rows-under-the-same-digest": Bad("uniform", "data", turned_round, ("data",)),
    "originals-in-metadata": Bad("uniform", "metadata", in_metadata),
    "bytes-after-the-columns": Bad("uniform", "metadata", after_the_columns),
    "fewer-rows": Bad("uniform", "rows", lambda r: r.raw.update(rows=1_499)),
    "columns-in-another-order": Bad("uniform", "columns", lambda r: r.raw["columns"].reverse()),
    "another-type": Bad("uniform", "types", lambda r: r.raw["columns"][0].update(type="large_string")),
    "a-readme-that-leaves-limits-out": Bad("uniform", "README", silent_readme, ("manifest",)),
    "another-readme-after-signing": Bad("uniform-signed", "signature", lambda r: None),
    "codes-of-other-sets": Bad("line-ups-by-codes", "table of line-ups", other_code),
    "weights-of-another-channel": Bad("uniform", "table of weights", other_weights, ("weights table",)),
    # the rows
    "a-value-outside-the-domain": Bad("uniform", "values", lambda r: r.column("job", ["z"] * 1_500)),
    "a-histogram-of-other-rows": Bad("uniform-of-many-rows", "published counts", exchanged),
    "original-rows": Bad("uniform-any-prior", "possible counts", raw_rows),
    "a-frequent-value-that-rows-tell": Bad(
        "uniform-without-histogram", "published frequencies", lambda r: r.promise.update(above=[])
    ),
    "a-column-finer-than-stated": Bad("uniform-recoded", "recoded", finer),
    # what was learned
    "noisy-tables-in-another-order": Bad("synthetic", "table of tables", other_levels),
    "shares-of-other-tables": Bad("synthetic", "shares", other_shares),
    "parameters-of-other-tables": Bad("synthetic", "learning", other_parameters),
    "rows-that-are-not-the-models": Bad("synthetic", "dealing", rows_of_a_group),
    "rows-that-follow-something-else": Bad("synthetic-a-table-for-each-column", "groups", rows_of_pairs),
}
PUBLISHED_BAD = {"a-public-copy": ("public columns", of_job("uniform"), copied)}  # as a careless owner makes it


# -- The folder --------------------------------------------------------------------------------------------------------


def publish(options: Json, table: Callable[[], pa.Table], out: Path) -> None:
    dn.publish(table(), **{"key": KEY, "out": out, "name": "a test vector", **options})


def forge(good: Path, bad: Bad, out: Path) -> None:
    shutil.copytree(good, out)
    raw = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    release = Forged(out, raw, set(bad.kept))
    if bad.change is other_weights:
        release.kept.add("weights")
        bad.change(release)
        raw["weights"]["sha256"] = digest_of(out / "weights.parquet")
    else:
        bad.change(release)
    if bad.fails == "signature":
        with (out / "README.md").open("a", encoding="utf-8") as file:
            file.write("\nTrust us.\n")
    else:
        release.finish()


def said(certificate: deniable_verify.Certificate) -> list[str]:
    """What checks say, of a release that does not hold those that fail."""
    return [f"{check.what}: {check.detail}" for check in certificate.failures or certificate.checks]


def main(out: Path = VECTORS) -> None:
    os.environ["SOURCE_DATE_EPOCH"] = DAY
    expected: Json = {"good": {}, "bad": {}}
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        home = Path(place)
        for name, good in GOOD.items():
            publish(good.options, good.table, home / "good" / name)
            expected["good"][name] = {"holds": None if good.unchecked else True, "unchecked": list(good.unchecked)}
        for name, bad in BAD.items():
            (home / "bad").mkdir(exist_ok=True)
            forge(home / "good" / bad.of, bad, home / "bad" / name)
            expected["bad"][name] = {"of": bad.of, "fails": bad.fails.split(", ")}
        for name, (fails, options, table) in PUBLISHED_BAD.items():
            publish(options, table, home / "bad" / name)
            expected["bad"][name] = {"of": None, "fails": [fails]}
        for kind, entries in expected.items():
            for name, entry in entries.items():
                entry["says"] = said(deniable_verify.verify(home / kind / name))
        (home / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(home, out, symlinks=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else VECTORS)
