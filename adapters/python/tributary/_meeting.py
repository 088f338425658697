# SPDX-License-Identifier: Apache-2.0
"""How ranks that share a torch store agree on one communicator, before any of them calls trib_init.

Each rank writes a note into the store: its versions and where it runs. Rank 0 reads all notes, within the deadline,
and writes a plan: the settings that all ranks use, or a sentence that says why there is no communicator. So a rank
that never asks, or has another version, is told to all ranks in words, and nobody hangs.

A setting of the environment (TRIB_AGGREGATOR, TRIB_COOKIE, ...) wins over the plan. If rank 0 has no aggregator, the plan
is an address of rank 0 where the ranks meet, with a new cookie.
"""
from __future__ import annotations

import contextlib
import datetime
import json
import os
import random
import secrets
import socket
import threading
import time
from typing import Any, Dict, Iterator, List, Optional

from . import _library

WAYS = ("TRIB_TREES", "TRIB_AGGREGATOR", "TRIB_CONTROLLER", "TRIB_RENDEZVOUS")
SHARED = WAYS + ("TRIB_COOKIE", "TRIB_JOB")
DEFAULT_TIMEOUT = 30.0  # of TRIB_TIMEOUT
GRACE_S = 2.0  # more than the deadline, for a message from rank 0

_environment_lock = threading.Lock()


def timeout_now() -> float:
    """TRIB_TIMEOUT, in seconds; the default if it is malformed, as trib_init will say so."""
    text = os.environ.get("TRIB_TIMEOUT", "").strip()
    with contextlib.suppress(ValueError):
        for unit, factor in (("ms", 1e-3), ("s", 1.0)):
            if text.endswith(unit):
                return float(text[:-len(unit)]) * factor
        return float(text) if text else DEFAULT_TIMEOUT
    return DEFAULT_TIMEOUT


@contextlib.contextmanager
def environment(settings: Dict[str, Optional[str]]) -> Iterator[None]:
    """trib_init sees these variables; None unsets one. The old ones come back afterwards."""
    with _environment_lock:
        before = {name: os.environ.get(name) for name in settings}
        try:
            _set_variables(settings)
            yield
        finally:
            _set_variables(before)


def _set_variables(values: Dict[str, Optional[str]]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def place() -> str:
    """The same text for all processes that reach each other by loopback."""
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip() + os.readlink("/proc/self/ns/net")
    return socket.gethostname()


def _source_towards(host: str) -> Optional[str]:
    """The address from which this host would send there."""
    with contextlib.suppress(OSError):
        for family, kind, _, _, address in socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM):
            with socket.socket(family, kind) as probe:
                probe.connect(address)
                return str(probe.getsockname()[0])
    return None


def _own_address(peers: List[str]) -> str:
    """An address at which the other ranks reach this host: loopback if they all share it."""
    if all(peer == place() for peer in peers):
        return "127.0.0.1"
    for host in (os.environ.get("MASTER_ADDR"), "192.0.2.1"):  # the latter: the source of the default route
        source = _source_towards(host) if host else None
        if source and not source.startswith("127.") and source != "::1":
            return source
    raise _library.ConfigError("rank 0 does not know an address of its own that the other ranks reach: set MASTER_ADDR to one, "
                               "or set TRIB_RENDEZVOUS=host:port and TRIB_COOKIE on all ranks")


def free_port(address: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as listener:
        listener.bind((address, 0))
        return int(listener.getsockname()[1])


def _make_plan(peers: List[str], is_first: bool) -> Dict[str, str]:
    """The settings that rank 0 offers. All communicators but the first need a job of their own at an aggregator."""
    plan = {name: os.environ[name] for name in SHARED if os.environ.get(name)}
    has_way = any(name in plan for name in WAYS)
    if has_way and not is_first and "TRIB_CONTROLLER" not in plan and "TRIB_RENDEZVOUS" not in plan:
        plan["TRIB_JOB"] = str(random.SystemRandom().randrange(256, 65536))
    elif not has_way or not is_first:  # a controller would have to make another job: such ranks use no aggregator
        address = _own_address(peers)
        plan = {"TRIB_COOKIE": plan.get("TRIB_COOKIE") or secrets.token_hex(8), "TRIB_RENDEZVOUS":
                f"[{address}]:{free_port(address)}" if ":" in address else f"{address}:{free_port(address)}"}
    return plan


class Meeting:
    """One exchange of notes and plan by a torch store. `name` tells communicators apart; "world" is the first."""

    def __init__(self, store: Any, name: str, rank: int, size: int, timeout: float) -> None:
        self.store, self.rank, self.size = store, rank, size
        self.is_first = name == "world"
        self.prefix = f"tributary/{name}/"
        self.timeout, self.until = timeout, time.monotonic() + timeout

    def _read(self, key: str, grace: float = 0.0) -> Optional[Dict[str, Any]]:
        """None if it does not come within the deadline."""
        left = max(self.until - time.monotonic(), 0.0) + grace
        try:
            self.store.wait([self.prefix + key], datetime.timedelta(seconds=max(left, 0.01)))
            return json.loads(self.store.get(self.prefix + key))
        except RuntimeError:  # torch's timeout; also its error if rank 0's store is gone
            return None

    def _write(self, key: str, value: Dict[str, Any]) -> None:
        self.store.set(self.prefix + key, json.dumps(value))

    def _judge(self, notes: List[Optional[Dict[str, Any]]], own: Dict[str, Any]) -> Optional[str]:
        """Why these ranks cannot have a communicator."""
        absent = [str(rank) for rank, note in enumerate(notes) if note is None]
        if absent:
            return (f"rank{'s' if len(absent) > 1 else ''} {', '.join(absent)} of {self.size} did not come within "
                    f"{self.timeout:g} s: all ranks have to call tributary.register, or to open the communicator")
        for rank, note in enumerate(notes):
            for what in ("package", "library"):
                if note and note[what] != own[what]:
                    return (f"rank {rank} has version {note[what]} of the {what}, and rank 0 has {own[what]}: install one "
                            "version on all hosts")
        return None

    def _lead(self, own: Dict[str, Any]) -> Dict[str, Any]:
        notes = [own] + [self._read(f"note/{rank}") for rank in range(1, self.size)]
        answer: Dict[str, Any] = {"error": self._judge(notes, own)}
        if not answer["error"]:
            try:
                answer = {"settings": _make_plan([note["place"] for note in notes if note], self.is_first)}
            except (_library.Error, OSError) as error:
                answer = {"error": str(error)}
        self._write("plan", answer)
        if "error" in answer:  # this process may end now, and the store with it: the others read first
            self.until = time.monotonic() + GRACE_S
            for rank in (rank for rank, note in enumerate(notes) if rank and note):
                self._read(f"read/{rank}")
        return answer

    def settings(self, library_version: str) -> Dict[str, Optional[str]]:
        """What to set for trib_init on this rank."""
        own = {"package": _library.__version__, "library": library_version, "place": place()}
        if self.rank == 0:
            answer: Optional[Dict[str, Any]] = self._lead(own)
        else:
            self._write(f"note/{self.rank}", own)
            answer = self._read("plan", GRACE_S)  # rank 0 may have waited for its whole deadline
            with contextlib.suppress(RuntimeError):
                self._write(f"read/{self.rank}", {})
        if answer is None:
            raise _library.DeadlineError(f"rank 0 of {self.size} did not come within {self.timeout:g} s: all ranks have to call "
                                         "tributary.register, or to open the communicator")
        if "error" in answer:
            raise _library.ConfigError(answer["error"])
        return self._merged(answer["settings"])

    def _merged(self, plan: Dict[str, str]) -> Dict[str, Optional[str]]:
        """Rank 0's plan, and this rank's own settings where they are about the same."""
        if not self.is_first:
            return {name: plan.get(name) for name in SHARED}
        if any(os.environ.get(name) for name in WAYS):
            plan = {name: value for name, value in plan.items() if name not in WAYS}
        return {name: value for name, value in plan.items() if name in SHARED and not os.environ.get(name)}
