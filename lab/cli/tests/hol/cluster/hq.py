#!/usr/bin/env python3
"""What `hq` does with a job definition file, by HyperQueue's own library: its package has no `hq`.

hq.py serve                                                   a server and two workers, until standard input ends
hq.py [--output-mode=quiet] job submit-file FILE, job wait ID
"""
import pathlib
import sys
import tomllib

from hyperqueue import Job, LocalCluster
from hyperqueue.client import Client
from hyperqueue.cluster import WorkerConfig
from hyperqueue.ffi.protocol import ResourceRequest
from hyperqueue.job import SubmittedJob

SERVER = pathlib.Path("hq-server").absolute()


def serve():
    with LocalCluster(str(SERVER), WorkerConfig(cores=1)) as cluster:
        cluster.start_worker(WorkerConfig(cores=1))
        pathlib.Path("serving").touch()
        sys.stdin.read()


def submit(path):
    table = tomllib.loads(pathlib.Path(path).read_text())
    job = Job(name=table["name"], max_fails=None)
    tasks = {}
    for task in table["task"]:
        tasks[task["id"]] = job.program(
            task["command"],
            cwd=task["cwd"],
            stdout=task["stdout"],
            stderr=task["stderr"],
            deps=[tasks[one] for one in task["deps"]],
            resources=[ResourceRequest(cpus=one["resources"]["cpus"]) for one in task["request"]],
        )
    print(Client(SERVER).submit(job).id)


def wait(number):
    done = Client(SERVER).wait_for_jobs([SubmittedJob(job=Job(), id=int(number))], raise_on_error=False)
    sys.exit(0 if done else 1)


words = [word for word in sys.argv[1:] if not word.startswith("--")]
match words:
    case ["serve"]:
        serve()
    case ["job", "submit-file", path]:
        submit(path)
    case ["job", "wait", number]:
        wait(number)
    case _:
        sys.exit(f"no such command: {words}")
