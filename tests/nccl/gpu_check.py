#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unmodified PyTorch with NCCL over the plugin of adapters/nccl, several ranks on one GPU.

Each part starts ranks as processes of this script, with the variables that docs/nccl.md names. No root, no network
but loopback. Results go to OUT/result.json after each part, logs of NCCL to OUT/*.log. The most important parts come
first. The last line is "N passed, N failed".

Examples:
  tests/nccl/gpu_check.py --tribd bin/tribd --plugin lib/libnccl-net-tributary.so --out /tmp/out
  tests/nccl/gpu_check.py ... --parts two,ddp
  tests/nccl/gpu_check.py ... --backend gloo     # the script itself, on a machine without a GPU
"""
import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time

SIZES = (1, 2, 3, 7, 31, 1000, 8191, 8193, 65537, 1 << 20, (1 << 20) + 1)
LARGE = 64 << 20  # elements
TYPES = ("float32", "bfloat16", "float16", "float64", "int32", "int64", "int8", "uint8")
OPS = ("sum", "max", "min", "avg")
CHAINS = "Connected Collnet Chains"
TIMEOUT_S = 10  # TRIB_TIMEOUT of the parts that kill something
GRACE_S = 20  # for PyTorch to notice, and for processes to end


# ---- a rank ----

class Rank:
    def __init__(self, options):
        import torch
        import torch.distributed as dist
        self.torch, self.dist, self.options = torch, dist, options
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.device = torch.device("cuda:0" if options.backend == "nccl" else "cpu")
        if options.backend == "nccl":
            torch.cuda.set_device(0)
        import datetime
        dist.init_process_group(options.backend, timeout=datetime.timedelta(seconds=90))
        self.begun = time.monotonic()

    def tell(self, **what):
        print("TELL " + json.dumps({"rank": self.rank, **what}), flush=True)

    def late(self):
        """All ranks decide alike, so that none waits alone."""
        now = [time.monotonic() - self.begun > self.options.seconds]
        self.dist.broadcast_object_list(now, 0)
        return now[0]

    # -- sums

    def vector(self, n, kind, rank):
        """Small whole numbers, whose sums are exact in every type."""
        torch = self.torch
        base = torch.arange(n, device=self.device, dtype=torch.int64) * 7 + 13 * rank
        base = base % (5 if kind == "uint8" else 9)
        return (base if kind == "uint8" else base - 4).to(getattr(torch, kind))

    def expected(self, n, kind, op):
        torch = self.torch
        all_ranks = [self.vector(n, kind, r) for r in range(self.size)]
        if op in ("max", "min"):
            result = all_ranks[0]
            for other in all_ranks[1:]:
                result = getattr(torch, op + "imum")(result, other)
            return result
        wide = torch.float64 if kind.startswith(("float", "bfloat")) else torch.int64
        result = sum(one.to(wide) for one in all_ranks)
        return (result / self.size if op == "avg" else result).to(getattr(torch, kind))

    def batch(self, cases):
        """What is wrong. Ranks take turns on the GPU when they wait for it, so all cases wait together."""
        torch, sums, right = self.torch, [], []
        for n, kind, op in cases:
            sums.append(self.vector(n, kind, self.rank))
            self.dist.all_reduce(sums[-1], getattr(self.dist.ReduceOp, op.upper()))
            right.append(self.expected(n, kind, op))
        good = torch.stack([(mine == wanted).all() for mine, wanted in zip(sums, right)]).tolist()
        wrong = []
        for number, (n, kind, op) in enumerate(cases):
            if not good[number]:
                at = int((sums[number] != right[number]).nonzero()[0])
                wrong.append(f"{op} of {n} {kind}: element {at} is {sums[number][at].item()}, not {right[number][at].item()}")
        return wrong

    def stale(self, kind):
        """Buffers are full of huge values and NaN; a short sum must not be spoiled by them."""
        torch, wrong = self.torch, []
        for fill in (float("nan"), float("inf"), torch.finfo(getattr(torch, kind)).max):
            self.dist.all_reduce(torch.full((1 << 20,), fill, device=self.device, dtype=getattr(torch, kind)))
            for n in (1, 5, 100):
                mine = torch.full((n,), 2.0 ** -6 * (self.rank + 1), device=self.device, dtype=getattr(torch, kind))
                self.dist.all_reduce(mine)
                right = 2.0 ** -6 * self.size * (self.size + 1) / 2
                if not bool((mine == right).all()):
                    wrong.append(f"sum of {n} {kind} behind {fill}: {mine[0].item()}, not {right}")
        return wrong

    def drawn(self):
        """The error of a sum of random numbers, in units of the largest element times 2^-24."""
        torch = self.torch
        vectors = [torch.randn(1 << 20, generator=torch.Generator().manual_seed(r)).to(self.device)
                   for r in range(self.size)]
        mine = vectors[self.rank].clone()
        self.dist.all_reduce(mine)
        right = sum(v.double() for v in vectors)
        error = float((mine.double() - right).abs().max())
        return error / (float(right.abs().max()) * 2.0 ** -24)

    def sums(self):
        done, wrong, left_out = 0, [], []
        kinds = TYPES if self.options.backend == "nccl" else ("float32", "int32", "int64")
        ops = OPS if self.options.backend == "nccl" else OPS[:3]
        cases = [(n, kind, op) for n in SIZES for kind in kinds for op in ops
                 if op != "avg" or kind.startswith(("float", "bfloat"))]
        random.Random(1).shuffle(cases)  # if time runs out, what was done is of all kinds
        batches = [cases[at:at + 16] for at in range(0, len(cases), 16)]
        large = LARGE if self.options.backend == "nccl" else 1 << 22
        batches[1:1] = [[(large, "float32", "sum")]]
        batches += [[(large, kind, "sum")] for kind in ("bfloat16", "int32") if kind in kinds]
        for number, batch in enumerate(batches):
            if self.late():
                left_out = [case for later in batches[number:] for case in later]
                break
            wrong += self.batch(batch)
            done += len(batch)
            if batch[0][0] == large:
                self.tell(progress=f"{large} elements after {time.monotonic() - self.begun:.1f} s")
        for kind in ("float32", "bfloat16", "float16"):
            if not self.late():
                wrong += self.stale(kind) if kind in kinds else []
        units = self.drawn()
        if units > 4:
            wrong.append(f"random numbers: the error is {units:.1f} units")
        self.tell(sums=done, wrong=wrong[:10], left_out=len(left_out), error_units=round(units, 3),
                  seconds=round(time.monotonic() - self.begun, 1))

    # -- training

    def ddp(self):
        """The same data and weights with every network, so the same losses up to rounding."""
        torch = self.torch
        torch.manual_seed(1)
        teacher = torch.randn(64, 10)
        model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
                                    torch.nn.Linear(512, 10)).to(self.device)
        ids = [0] if self.device.type == "cuda" else None
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=ids)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        draw, losses = torch.Generator().manual_seed(100 + self.rank), []
        for _ in range(self.options.steps):
            inputs = torch.randn(64, 64, generator=draw)
            labels = (inputs @ teacher).argmax(1)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs.to(self.device)), labels.to(self.device))
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        losses = torch.stack(losses).double()
        self.dist.all_reduce(losses)
        weights = torch.cat([p.detach().flatten() for p in model.parameters()]).view(torch.int32).to(torch.int64)
        digest = int((weights * (torch.arange(weights.numel(), device=self.device) % 65521 + 1)).sum())
        self.tell(losses=[round(x / self.size, 6) for x in losses.tolist()], digest=digest)

    # -- failures

    def hold(self):
        """Sums until something fails; says what PyTorch then raised."""
        vector, count = self.torch.ones(1 << 18, device=self.device), 0
        try:
            while True:
                self.dist.all_reduce(vector, self.dist.ReduceOp.MAX)
                if vector[0].item() != 1:
                    raise AssertionError("a wrong maximum")
                count += 1
                if count == 3:
                    self.tell(holds=True)
        except Exception as error:  # whatever PyTorch raises is the result
            self.tell(raised=f"{type(error).__name__}: {str(error)[:300]}", sums=count)
            os._exit(3)  # NCCL's communicator is broken: nothing can be taken down in order

    def main(self):
        for name in self.options.worker.split(","):
            getattr(self, name)()
        self.dist.destroy_process_group()


# ---- the parts ----

class Job:
    """Ranks, and what they told."""

    def __init__(self, check, name, size, work, aggregator, env=None, seconds=60):
        self.check, self.name, self.size, self.told, self.processes = check, name, size, [], []
        self.out = os.path.join(check.options.out, name)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        for rank in range(size):
            own = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK="0", MASTER_ADDR="127.0.0.1",
                       MASTER_PORT=str(port), NCCL_HOSTID=f"check-{rank}", NCCL_SOCKET_IFNAME="lo",
                       NCCL_MNNVL_ENABLE="0", NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET,ENV",
                       NCCL_DEBUG_FILE=f"{self.out}.{rank}.log", CUBLAS_WORKSPACE_CONFIG=":4096:8",
                       GLOO_SOCKET_IFNAME="lo")
            if aggregator:
                own.update(NCCL_NET_PLUGIN=os.path.abspath(check.options.plugin), NCCL_COLLNET_ENABLE="1",
                           NCCL_ALGO="allreduce:collnetchain,ring", TRIB_AGGREGATOR=aggregator)
            own.update(env or {})
            words = [sys.executable, os.path.abspath(__file__), "--worker", work, "--seconds", str(seconds), "--backend",
                     check.options.backend, "--steps", str(check.options.steps)]
            with open(f"{self.out}.{rank}.out", "w", encoding="utf-8") as file:
                self.processes.append(subprocess.Popen(words, env=own, stdout=file, stderr=subprocess.STDOUT))

    def text(self, ending):
        parts = []
        for rank in range(self.size):
            path = f"{self.out}.{rank}.{ending}"
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    parts.append(file.read())
        return "\n".join(parts)

    def tells(self, key):
        lines = [json.loads(line[5:]) for line in self.text("out").split("\n") if line.startswith("TELL ")]
        return [line for line in lines if key in line]

    def wait(self, seconds):
        """The exit codes; None for a rank that hangs, which is ended."""
        end, codes = time.monotonic() + seconds, []
        for process in self.processes:
            try:
                codes.append(process.wait(max(0.1, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                codes.append(None)
        return codes

    def until(self, key, seconds):
        end = time.monotonic() + seconds
        while len(self.tells(key)) < self.size and time.monotonic() < end:
            if any(process.poll() is not None for process in self.processes):
                return False
            time.sleep(0.05)
        return len(self.tells(key)) == self.size

    def excerpt(self):
        """Lines of NCCL's log that show what it chose."""
        wanted = re.compile(r"COLLNET|[Cc]ollnet|NET/|TRIBUTARY|[Tt]ributary|WARN")
        lines = [re.sub(r"^\S+:\d+:\d+ ", "", line) for line in self.text("log").split("\n") if wanted.search(line)]
        return list(dict.fromkeys(lines))[:25]


class Check:
    def __init__(self, options):
        self.options, self.results = options, []
        self.port = 17700 + os.getpid() % 1000 * 16

    def tribd(self):
        """An aggregator; its process and its address."""
        self.port += 16
        at = f"127.0.0.1:{self.port}"
        path = os.path.join(self.options.out, f"tribd.{self.port}.log")
        with open(path, "w", encoding="utf-8") as file:
            process = subprocess.Popen([self.options.tribd, "--listen", at, "--plane", "udp", "--http", "off"], stdout=file,
                                       stderr=subprocess.STDOUT)
        for _ in range(100):
            with open(path, encoding="utf-8") as file:
                if "ready on" in file.read():
                    return process, at
            time.sleep(0.1)
        process.kill()
        raise RuntimeError(f"tribd does not start: see {path}")

    def note(self, name, passed, **what):
        self.results.append({"check": name, "passed": bool(passed), **what})
        print(("PASS " if passed else "FAIL ") + name + (f": {what['why']}" if what.get("why") else ""), flush=True)
        with open(os.path.join(self.options.out, "result.json"), "w", encoding="utf-8") as file:
            json.dump(self.results, file, indent=1)

    def is_dry(self):
        return self.options.backend != "nccl"

    def sums(self, size, seconds):
        daemon, at = self.tribd()
        job = Job(self, f"sums{size}", size, "sums,ddp", at, seconds=seconds)
        codes = job.wait(seconds + 60)
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
        log, told, trained = job.text("log"), job.tells("sums"), job.tells("losses")
        wrong = [fault for one in told for fault in one["wrong"]]
        if not self.is_dry():
            self.note(f"{size} ranks: {CHAINS}", log.count(CHAINS) >= size, excerpt=job.excerpt())
        self.note(f"{size} ranks: sums are right", len(told) == size and not wrong and told[0]["sums"] > 0,
                  why="; ".join(wrong)[:600] or (f"{told[0]['sums']} sums in {told[0]['seconds']} s, {told[0]['left_out']} left out, "
                                           f"error {told[0]['error_units']} units" if told else "no rank has told"), told=told)
        self.note(f"{size} ranks end in order", codes == [0] * size, why=f"exit codes {codes}")
        return trained

    def two(self):
        self.trained = self.sums(2, 60)

    def four(self):
        self.sums(4, 60)

    def ddp(self):
        """Losses through the aggregator (part two) beside those over NCCL's sockets."""
        trained = getattr(self, "trained", None)
        if not trained:
            daemon, at = self.tribd()
            job = Job(self, "ddp", 2, "ddp", at)
            job.wait(60)
            daemon.kill()
            daemon.wait()
            trained = job.tells("losses")
        job = Job(self, "sockets", 2, "ddp", None, {"NCCL_NET_PLUGIN": "none", "NCCL_NET": "Socket"})
        codes = job.wait(60)
        sockets = job.tells("losses")
        if len(trained) < 2 or len(sockets) < 2:
            self.note("DDP: the same loss as with sockets", False, why=f"not every rank has trained: exit codes {codes}")
            return
        ours, theirs = trained[0]["losses"], sockets[0]["losses"]
        with open(os.path.join(self.options.out, "losses.json"), "w", encoding="utf-8") as file:
            json.dump({"tributary": ours, "sockets": theirs}, file)
        apart = max(abs(a - b) / max(b, 0.05) for a, b in zip(ours, theirs))
        self.note("DDP: the same loss as with sockets", apart < 0.01 and ours[-1] < ours[0] / 2,
                  why=f"from {ours[0]:.4f} to {ours[-1]:.4f}, sockets {theirs[-1]:.4f}, at most {apart:.2%} apart")
        self.note("DDP: all ranks have the same weights", len({one["digest"] for one in trained}) == 1)

    def killed(self, name, victim, handling):
        """
        `victim` is killed. NCCL's communicator has to get an asynchronous error with our sentence in time: PyTorch's
        watchdog prints it, and ends the process later. `handling` 1: it aborts the communicator before; 3: it does not.
        """
        daemon, at = self.tribd()
        job = Job(self, name, 2, "hold", at, {"TRIB_TIMEOUT": str(TIMEOUT_S), "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
                                              "TORCH_NCCL_ASYNC_ERROR_HANDLING": handling})
        began = job.until("holds", 60)
        killed = time.monotonic()
        (daemon if victim == "aggregator" else job.processes[1]).kill()
        error = re.compile(r"async exception: NCCL error.*?\n(NET/Tributary: a collective failed[^\n]*)", re.S)
        while time.monotonic() < killed + TIMEOUT_S + GRACE_S and not error.search(job.text("out")):
            time.sleep(0.2)
        took = time.monotonic() - killed
        found = error.search(job.text("out"))
        codes = job.wait(GRACE_S)
        daemon.kill()
        daemon.wait()
        survivors = codes if victim == "aggregator" else codes[:1]
        good = found and not any(code in (0, -signal.SIGSEGV, -signal.SIGBUS) for code in survivors)
        self.note(f"a killed {victim} is an error in time", bool(began and good), excerpt=job.excerpt(),
                  why=f"after {took:.1f} s: {found[1] if found else 'no error'}; exit codes {codes}" if began
                  else "the job did not begin")

    def killed_aggregator(self):
        if self.is_dry():
            print("left out: without NCCL no rank uses the aggregator")
            return
        self.killed("killed-aggregator", "aggregator", "3")

    def killed_peer(self):
        self.killed("killed-peer", "peer", "1")

    def no_aggregator(self):
        """A closed port: NCCL goes on with rings over the plugin."""
        job = Job(self, "no-aggregator", 2, "sums", f"127.0.0.1:{self.port + 8}", {"TRIB_TIMEOUT": str(TIMEOUT_S)}, 20)
        codes = job.wait(100)
        told, lines = job.tells("sums"), [line for line in job.excerpt() if re.search("tributary.*aggregator", line, re.I)]
        right = len(told) == 2 and not any(one["wrong"] for one in told)
        self.note("no aggregator: sums are right", codes == [0, 0] and right, why=f"exit codes {codes}")
        if not self.is_dry():
            self.note("no aggregator: NCCL uses rings, and the log says so", lines and CHAINS not in job.text("log"),
                      why=str(lines[:2]), excerpt=job.excerpt())

    def main(self):
        for name in self.options.parts.split(","):
            began = time.monotonic()
            try:
                getattr(self, name.replace("-", "_"))()
            except (OSError, RuntimeError, KeyError, IndexError, ValueError) as error:
                self.note(name, False, why=f"{type(error).__name__}: {error}")
            print(f"-- {name}: {time.monotonic() - began:.0f} s", flush=True)
        failed = sum(not one["passed"] for one in self.results)
        print(f"{len(self.results) - failed} passed, {failed} failed")
        return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tribd", default="build/src/cli/tribd")
    parser.add_argument("--plugin", default="build/adapters/nccl/libnccl-net-tributary.so")
    parser.add_argument("--out", default=os.environ.get("OUT", "build/nccl-out"), help="folder of logs and results (%(default)s)")
    parser.add_argument("--parts", default="two,ddp,killed-aggregator,no-aggregator,four,killed-peer",
                        help="in this order (%(default)s)")
    parser.add_argument("--backend", default="nccl", help="gloo: without a GPU, to try the script")
    parser.add_argument("--steps", type=int, default=60, help="of training (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help=argparse.SUPPRESS)  # of a rank's sums
    parser.add_argument("--worker", help=argparse.SUPPRESS)  # this process is a rank
    options = parser.parse_args()
    if options.worker:
        Rank(options).main()
        return 0
    os.makedirs(options.out, exist_ok=True)
    return Check(options).main()


if __name__ == "__main__":
    sys.exit(main())
