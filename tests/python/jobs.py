# SPDX-License-Identifier: Apache-2.0
"""Jobs of several processes on this machine, for the tests of the Python package.

Each rank is a child made by fork(), which runs a function. So torch is imported only once, by the tests. The parent itself
must not open a communicator.
"""
import multiprocessing
import os
import socket
import time
import traceback

LIMIT_S = 100
FOREIGN = ("TRIB_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "OMPI_", "PMI", "SLURM_")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def set_environment(values):
    for name in list(os.environ):
        if name.startswith(FOREIGN) and name != "TRIB_LIBRARY":
            del os.environ[name]
    os.environ.update({name: str(value) for name, value in values.items()})


def child(pipe, function, values):
    set_environment(values)
    try:
        answer = ("returned", function())
    except BaseException as error:  # the parent shows it
        traceback.print_exc()
        answer = (type(error).__name__, str(error))
    from tributary import communicator
    communicator._close_all()  # multiprocessing leaves without atexit
    pipe.send(answer)
    pipe.close()


def run(function, size=2, **values):
    """What each rank answered: ("returned", value), (name of an exception, its text), or ("died", exit code)."""
    common = {"WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(),
              "TRIB_LOG": "warn", "TRIB_TIMEOUT": 60, **values}
    fork = multiprocessing.get_context("fork")
    ranks, answers, until = [], [], time.monotonic() + LIMIT_S
    for rank in range(size):
        mine, its = fork.Pipe(duplex=False)
        process = fork.Process(target=child, args=(its, function, {**common, "RANK": rank}))
        process.start()
        its.close()
        ranks.append((process, mine))
    for process, pipe in ranks:
        try:
            answers.append(pipe.recv() if pipe.poll(max(until - time.monotonic(), 0)) else ("hung", LIMIT_S))
        except EOFError:
            process.join()
            answers.append(("died", process.exitcode))
        if answers[-1][0] == "hung":
            process.kill()
        process.join()
    return answers


def good(function, size=2, **values):
    """What the ranks returned. All have to end well."""
    answers = run(function, size, **values)
    assert [what for what, _ in answers] == ["returned"] * size, answers
    return [value for _, value in answers]


def ring():
    """Settings of ranks that need no daemon."""
    return {"TRIB_RENDEZVOUS": f"127.0.0.1:{free_port()}"}
