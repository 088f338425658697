# SPDX-License-Identifier: Apache-2.0
"""python3 -m tributary.check: can this machine use Tributary from Python, and which way would a job take?

It loads the library, compares versions, says what the environment asks for, and lets two processes of this machine sum
a vector. The exit code is 0 if all of that works. --json prints the same as one JSON object.
"""
from __future__ import annotations

import argparse
import array
import importlib.util
import json
import os
import secrets
import subprocess
import sys
from typing import Any, Dict, List, Optional

from . import _library, _meeting
from .communicator import Communicator

COUNT, LIMIT_S = 100000, 30
_WORDS = {"TRIB_TREES": "trees of aggregators", "TRIB_AGGREGATOR": "the aggregator at", "TRIB_CONTROLLER":
          "aggregators that the controller assigns, at", "TRIB_RENDEZVOUS": "no aggregator: ranks meet rank 0 at"}


def way() -> str:
    """What a job that is started with this environment would use."""
    for name in _meeting.WAYS:
        if os.environ.get(name):
            return f"{_WORDS[name]} {os.environ[name]} ({name})"
    return "no aggregator, as none is named: ranks find each other by the store of torch.distributed, or where their launcher says"


def version_of(module: str) -> Optional[str]:
    """Without an import of it: torch takes seconds."""
    if importlib.util.find_spec(module) is None:
        return None
    from importlib import metadata
    try:
        return metadata.version(module)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def one_rank() -> int:
    """A process of `local_sum`."""
    with Communicator(timeout=LIMIT_S / 2) as comm:
        values = array.array("f", [comm.rank + 1.0]) * COUNT
        comm.all_reduce(values)
        return 0 if values == array.array("f", [3.0]) * COUNT else 1


def local_sum() -> Optional[str]:
    """Two processes sum a vector over loopback. Returns what failed."""
    clean = {name: value for name, value in os.environ.items() if name not in _meeting.SHARED}
    settings = {"TRIB_RENDEZVOUS": f"127.0.0.1:{_meeting.free_port('127.0.0.1')}", "TRIB_COOKIE": secrets.token_hex(8),
                "TRIB_SIZE": "2", "TRIB_LOCAL_SIZE": "2", "TRIB_LOG": "error",
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    ranks: List[Any] = [subprocess.Popen([sys.executable, "-m", "tributary.check", "--one-rank"], text=True,
                                         stderr=subprocess.PIPE, env={**clean, **settings, "TRIB_RANK": str(rank)})
                        for rank in range(2)]
    try:
        for rank, process in enumerate(ranks):
            _, words = process.communicate(timeout=LIMIT_S)
            if process.returncode:
                return f"rank {rank}: {words.strip().splitlines()[-1] if words.strip() else 'the sum is wrong'}"
    except subprocess.TimeoutExpired:
        return f"two processes did not end within {LIMIT_S} s"
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    return None


def findings() -> Dict[str, Any]:
    found: Dict[str, Any] = {"package": _library.__version__, "library": None, "library_version": None, "error": None,
                             "numpy": version_of("numpy"), "torch": version_of("torch"), "way": way(), "sum": False}
    try:
        library = _library.load()
        found.update(library=library.path, library_version=library.version)
        found["error"] = local_sum()
        found["sum"] = found["error"] is None
    except (_library.Error, OSError) as error:
        found["error"] = str(error)
    return found


def print_words(found: Dict[str, Any]) -> None:
    print(f"package tributary {found['package']}")
    if found["library"]:
        print(f"library {found['library_version']}: {found['library']}")
    for module in ("numpy", "torch"):
        print(f"{module} {found[module] or 'is not installed'}")
    print(f"a job of this environment would use {found['way']}")
    print(f"FAILED: {found['error']}" if found["error"] else f"two processes of this machine summed {COUNT} floats: right")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tributary.check", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--one-rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one_rank:
        return one_rank()
    found = findings()
    if options.json:
        print(json.dumps(found))
    else:
        print_words(found)
    return 1 if found["error"] else 0


if __name__ == "__main__":
    sys.exit(main())
