"""Retention by name and as text."""

import datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Replace, Requirement
from deniable.mechanisms import MECHANISMS, Retention, mechanism_named

KEY = bytes(range(32))


def table(n=2000):
    rng = np.random.default_rng(0)
    days = rng.integers(0, 3650, n).astype("int32")
    return pa.table(
        {
            "zip": rng.choice(list("xyz"), n),
            "age": rng.integers(17, 91, n),
            "born": pa.array(days).cast(pa.date32()),
            "job": rng.choice(list("abcd"), n),
            "ill": rng.choice(["no", "yes"], n),
        }
    )


def test_a_text_says_what_the_mapping_says():
    text = "retention:age=0.5@17..90,born=0.4@1970-01-01..1979-12-31,w=0.3@-1.5..2,job=0.6,ill=0.7~identity"
    assert mechanism_named(text) == Retention(
        {
            "age": Replace(0.5, 17, 90),
            "born": Replace(0.4, datetime.date(1970, 1, 1), datetime.date(1979, 12, 31)),
            "w": Replace(0.3, -1.5, 2),
            "job": Replace(0.6),
            "ill": Replace(0.7, replacing="identity"),
        }
    )


def test_a_text_says_requirements_and_grids():
    text = "retention:age=68:0.1:0.95@17..90,pay=0.5@0..5000/100,job=1/4:1/2,ill=1:10%:50%~identity"
    assert mechanism_named(text) == Retention(
        {
            "age": Replace(privacy=(68, 0.1, 0.95), low=17, high=90),
            "pay": Replace(0.5, 0, 5000, step=100),
            "job": Replace(privacy=dn.Privacy("1/4", "1/2")),
            "ill": Replace(privacy=(1, "10%", "50%"), replacing="identity"),
        }
    )
    release = dn.publish(table(), mechanism="retention:job=1/4:1/2", key=KEY)
    assert release.manifest.parts[0].requirement == Requirement(Fraction(1, 4), Fraction(1, 2))
    certificate = str(release.verify())
    assert "gamma is 3, promised 3" in certificate
    assert "a belief of 0.25 grows to at most 0.5, allowed 0.5" in certificate


def test_text_and_object_publish_the_same_rows():
    text = "retention:age=0.5@17..90,job=0.6"
    by_text = dn.publish(table(), mechanism=text, key=KEY)
    by_object = dn.publish(table(), mechanism=Retention({"age": Replace(0.5, 17, 90), "job": Replace(0.6)}), key=KEY)
    assert by_text.table.equals(by_object.table)
    assert by_text.manifest.to_json() == by_object.manifest.to_json()


def test_by_name_every_column_gets_the_coin_of_the_one_requirement():
    privacy = dn.Privacy("1/4", "1/2")
    release = dn.publish(
        table(), sensitive=["job", "ill"], mechanism="retention", privacy=privacy, key=KEY, drop=["age", "born"]
    )
    assert [part.columns for part in release.manifest.parts] == [("job",), ("ill",)]
    coins = [float(part.channels[0].coins[0]) for part in release.manifest.parts]
    gamma = 3  # rho2 (1 - rho1) / (rho1 (1 - rho2))
    assert coins == pytest.approx([(gamma - 1) / (gamma - 1 + m) for m in (4, 2)], abs=1e-6)
    assert release.verify().holds
    assert isinstance(MECHANISMS["retention"](), Retention)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("retention:age", "names no column and coin"),
        ("retention:=0.5", "names no column and coin"),
        ("retention:age=half", "age=half is not understood"),
        ("retention:age=1/2:1/4", "column 'age'.*rho1 = 1/2 must be smaller than rho2"),
        ("retention:age=x:0.1:0.9", "column 'age': 'x:0.1:0.9' is not understood"),
        ("retention:age=1:2:3:4", "rho1:rho2"),
        ("retention:age=0.5@17..90/x", "not understood"),
        ("retention:age=0.5@17-90", "no range low..high"),
        ("retention:age=0.5@17..old", "not understood"),
        ("retention:age=1.5", "column 'age': Replace: coin = 1.5 is not allowed"),
        ("retention:age=0", "coin = 0.0 is not allowed"),
        ("retention:age=0.5~swap", "Did you mean 'swapping'"),
        ("retention:age=0.5,age=0.6", "twice"),
        ("retention", "needs its columns"),
        ("retentoin", "Did you mean 'retention'"),
    ],
)
def test_what_is_wrong_is_said_with_the_column(text, words):
    with pytest.raises(dn.DeniableError, match=words):
        dn.publish(table(), sensitive="age", mechanism=text, key=KEY)


def test_one_requirement_must_be_whole():
    with pytest.raises(dn.DeniableError, match="'job' needs both rho1 and rho2"):
        dn.publish(table(), sensitive="job", mechanism="retention", privacy=dn.Privacy(rho2="1/2"), key=KEY)
