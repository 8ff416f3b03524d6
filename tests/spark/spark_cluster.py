"""Publish on a little cluster of this machine, and kill its executors meanwhile. A program: a session of its own.

The cluster is a master and two workers on two loopback addresses: Spark starts a slow task a second time on another
host only, and in its own `local-cluster` all workers have one.

    python spark_cluster.py FOLDER KILLS

prints, as JSON, the digests of the release that nobody disturbed and of each that was, how many executors were killed,
how many tasks ran twice because they were slow, and how many ran again after that.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import psutil
import pyspark

import deniable as dn

ROWS = 300_000
KILLS_OF_ONE = 5  # publication
HOSTS = ("127.0.0.1", "127.0.0.2")
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "3",
    "spark.task.maxFailures": "100",
    "spark.stage.maxConsecutiveAttempts": "100",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.driver.host": HOSTS[0],
    "spark.driver.bindAddress": HOSTS[0],
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
    """Kill an executor whenever a while has passed and both are there, some in each publication, ``wanted`` in all."""
    while len(done) < wanted:
        time.sleep(1 + 0.37 * (len(done) % 5))
        alive = executors() if publishing.is_set() else []
        if len(alive) == 2:  # the other one goes on
            with contextlib.suppress(ProcessLookupError):
                os.kill(alive[len(done) % 2].pid, signal.SIGKILL)
                done.append(time.monotonic())
                if len(done) % KILLS_OF_ONE == 0:
                    publishing.clear()


@contextlib.contextmanager
def cluster(folder):
    """The address of a master with two workers, each with a core."""
    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind((HOSTS[0], 0))
        port = free.getsockname()[1]
    address = f"spark://{HOSTS[0]}:{port}"
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(folder / "work")}
    start = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master", "--host", HOSTS[0]]
    commands = [[*start, "--port", str(port), "--webui-port", "0"]]
    for host in HOSTS:
        worker = [start[0], "org.apache.spark.deploy.worker.Worker", "--host", host, "--cores", "1"]
        commands.append([*worker, "--memory", "600m", "--webui-port", "0", address])
    started = []
    try:
        for command in commands:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            started.append(subprocess.Popen(command, env=environment, **quiet))
        yield address
    finally:
        for process in reversed(started):
            process.terminate()


def main(folder, wanted):
    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with cluster(folder) as address:
        session = SparkSession.builder.master(address).config(map=SETTINGS).getOrCreate()
        _publish_and_kill(session, folder, wanted)
        session.stop()


def _publish_and_kill(session, folder, wanted):
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


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
