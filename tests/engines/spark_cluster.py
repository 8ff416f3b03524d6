"""Publish on a little cluster of this machine, and kill its executors meanwhile. A program: a session of its own.

    python spark_cluster.py FOLDER KILLS

prints, as JSON, the digests of the release that nobody disturbed and of each that was, how many executors were killed,
how many tasks ran twice because they were slow, and how many ran again after that.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import psutil

import deniable as dn

ROWS = 300_000
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "3",
    "spark.task.maxFailures": "100",
    "spark.stage.maxConsecutiveAttempts": "100",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.executor.memory": "512m",
    # A task that takes longer than most is started a second time.
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "10ms",
}


def frame(session, attempts):
    """Rows made in the tasks, each batch slowly, so that tasks are killed in the middle; one task is so slow that it is
    started a second time. Attempts after the first leave a line in a file."""

    def people(batches):
        import numpy as np
        import pyarrow as pa
        from pyspark import TaskContext

        task = TaskContext.get()
        if task.attemptNumber():
            with open(attempts, "a") as log:
                log.write(f"{task.stageId()} {task.partitionId()} {task.attemptNumber()}\n")
        for batch in batches:
            numbers = batch.column(0).to_numpy()
            time.sleep(2 if task.partitionId() == 5 and not task.attemptNumber() else 0.05)
            disease = np.array(list("abcdefghij"))[numbers * 7919 % 104729 % 10]
            columns = {"number": numbers, "sex": np.where(numbers % 3 == 0, "F", "M"), "disease": disease}
            yield pa.RecordBatch.from_pydict(columns)

    return session.range(0, ROWS, 1, 6).mapInArrow(people, "number long, sex string, disease string")


def publish(table, out):
    """A release whose rows are dealt to cells by their numbers."""
    privacy = dn.Privacy(rho1="1/4", rho2="1/3")
    dn.publish(table, sensitive="disease", privacy=privacy, mechanism="small-domain", key=bytes(32), out=out)
    release = dn.open_release(out)
    assert sorted(release.table["number"].to_pylist()) == list(range(ROWS)), "a row is lost, or there twice"
    return release.manifest.data.sha256


def executors():
    """The processes of the executors, which descend from this one."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if any("CoarseGrainedExecutorBackend" in word for word in process.cmdline()):
                found.append(process)
    return found


def killer(wanted, done, publishing):
    """Kill an executor whenever a while has passed and one is at work, until ``wanted`` were."""
    while len(done) < wanted:
        time.sleep(1.5 + 0.37 * (len(done) % 5))
        alive = executors() if publishing.is_set() else []
        if len(alive) == 2:  # the other one goes on
            with contextlib.suppress(ProcessLookupError):
                os.kill(alive[len(done) % 2].pid, signal.SIGKILL)
                done.append(time.monotonic())


def main(folder, wanted):
    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local-cluster[2,1,512]").config(map=SETTINGS).getOrCreate()
    attempts = folder / "attempts"
    attempts.touch()
    table, done, publishing = frame(session, str(attempts)), [], threading.Event()
    first = publish(table, folder / "undisturbed")
    speculative = len(attempts.read_text().splitlines())
    threading.Thread(target=killer, args=(wanted, done, publishing), daemon=True).start()
    others = []
    while len(done) < wanted:
        before = len(done)
        publishing.set()
        digest = publish(table, folder / f"disturbed-{len(others)}")
        publishing.clear()
        others.append({"digest": digest, "killed": len(done) - before})
    again = len(attempts.read_text().splitlines()) - speculative
    counted = {"killed": len(done), "speculative": speculative, "again": again}
    print(json.dumps({"undisturbed": first, "disturbed": others, **counted}))
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
