"""One Spark session for all tests of a process: starting one takes seconds."""

import functools
import importlib.util
import itertools
import os
import sys

import pytest

from deniable.spark.tasks import OLDEST_JAVA, java_version


def _lacking():
    if importlib.util.find_spec("pyspark") is None:
        return "needs the package pyspark: pip install 'deniable[spark]'"
    if (java_version() or 0) < OLDEST_JAVA:
        return f"needs Java {OLDEST_JAVA} or newer on the PATH"
    return None


LACKING = _lacking()
needs_spark = pytest.mark.skipif(LACKING is not None, reason=str(LACKING))
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",  # tasks that are meant to fail would print a page each
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "UTC",
}


@functools.cache
def session():
    """Two cores of this machine."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()


def in_partitions(table, number):
    """A table as a Spark data frame whose partitions hold its rows in their order; one of seven holds none."""
    cuts = [round(i * table.num_rows / number) for i in range(number + 1)]
    if number > 3:
        cuts[3] = cuts[2]
    pieces = [table.slice(start, end - start) for start, end in itertools.pairwise(cuts)]

    def slices(batches):
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield from pieces[place].to_batches()

    schema = session().createDataFrame(table.slice(0, 1)).schema
    return session().range(0, number, 1, number).mapInArrow(slices, schema)


def rows_of(table):
    """The rows of a table, whatever their order."""
    return sorted(map(repr, table.to_pylist()))
