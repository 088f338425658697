#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of CUDA tensors, for a machine with a GPU: several ranks share it. The last line is PASS or FAIL.

    python3 tests/python/cuda_check.py [RANKS]

TRIB_LIBRARY names libtributary.so if it is neither installed nor in build/.
"""
import copy
import hashlib
import os
import socket
import subprocess
import sys
import time
import traceback

import torch
import torch.distributed as dist

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "adapters/python")]

import tributary  # noqa: E402
import tributary.torch_backend  # noqa: E402

DEVICE = torch.device("cuda", 0)
DDP = torch.nn.parallel.DistributedDataParallel


def slow_fill(tensor, value):
    """Fills the tensor late: the kernels before take milliseconds, and nobody waits for them."""
    torch.cuda._sleep(20_000_000)
    tensor.fill_(value)


def types(comm):
    for kind in (torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64):
        values = torch.full((7, 1001), comm.rank + 1, dtype=kind, device=DEVICE).t()
        assert comm.all_reduce(values) is values
        assert bool((values == comm.size * (comm.size + 1) // 2).all()), kind


def other_collectives(comm):
    rank, size = comm.rank, comm.size
    rows = comm.all_gather(torch.tensor([rank, 7], device=DEVICE))
    assert rows.is_cuda and rows.tolist() == [[r, 7] for r in range(size)]
    part = comm.reduce_scatter(torch.ones(2 * size, device=DEVICE))
    assert part.is_cuda and part.tolist() == [size, size]
    assert comm.broadcast(torch.full((3,), rank, device=DEVICE), root=1).tolist() == [1, 1, 1]
    at_root = comm.reduce(torch.ones(3, device=DEVICE), root=1)
    assert at_root.tolist() == [size if rank == 1 else 1] * 3


def values_that_come_late(comm):
    """The copy to the host waits for the stream that computes, whichever that is."""
    streams = [torch.cuda.current_stream(), torch.cuda.Stream()]
    for i in range(20):
        with torch.cuda.stream(streams[i % 2]):
            values = torch.zeros(300_000, device=DEVICE)
            slow_fill(values, float(i + comm.rank))
            comm.all_reduce(values)
            twice = values * 2  # without any synchronization
        streams[i % 2].synchronize()
        expected = 2 * sum(i + r for r in range(comm.size))
        assert bool((twice == expected).all()), (i, twice[:4].tolist(), expected)


def several_in_flight(comm):
    """CUDA and CPU tensors in turn, waited for in another order; memory is given back and used again at once."""
    for _ in range(5):
        requests = []
        for i in range(8):
            device = DEVICE if i % 3 else torch.device("cpu")
            requests.append((i, comm.all_reduce(torch.full((100_000 + i,), float(comm.rank + i), device=device), async_op=True)))
        junk = [torch.rand(100_000, device=DEVICE) for _ in range(8)]
        for i, request in reversed(requests):
            expected = sum(r + i for r in range(comm.size))
            assert bool((request.wait() == expected).all()), i
        del junk


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.rows = torch.nn.Embedding(200, 32, sparse=True)
        self.layers = torch.nn.Sequential(torch.nn.Linear(32, 2000), torch.nn.ReLU(), torch.nn.Linear(2000, 2000), torch.nn.ReLU(),
                                          torch.nn.Linear(2000, 10))

    def forward(self, words):
        return self.layers(self.rows(words).mean(1))


def train(model, steps=10):
    draw = torch.Generator().manual_seed(dist.get_rank())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        words = torch.randint(0, 200, (16, 5), generator=draw).to(DEVICE)
        model(words).square().mean().backward()
        optimizer.step()
    return [weights.detach().cpu() for weights in model.parameters()]


def digest(weights):
    return hashlib.sha256(b"".join(part.numpy().tobytes() for part in weights)).hexdigest()


def training(comm):
    """Against the average of a process group of CPU tensors, by a hook, as not every gloo takes CUDA tensors."""
    base = Network().to(DEVICE)
    ours = train(tributary.register(DDP(copy.deepcopy(base), bucket_cap_mb=1), comm))
    again = train(tributary.wrap(copy.deepcopy(base), comm, bucket_cap_mb=1))
    assert digest(ours) == digest(again), "two runs differ"

    def by_gloo(_: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        value = bucket.buffer()
        host = value.to_dense().cpu() if value.is_sparse else value.cpu()
        dist.all_reduce(host)
        mean = (host / dist.get_world_size()).to(DEVICE)
        future = torch.futures.Future(devices=[DEVICE])
        future.set_result(mean.to_sparse(1) if value.is_sparse else mean)
        return future

    model = DDP(copy.deepcopy(base))
    model.register_comm_hook(None, by_gloo)
    theirs = train(model)
    far = max(float((a - b).abs().max()) for a, b in zip(ours, theirs))
    assert far < 1e-4, far
    same = [None] * comm.size
    dist.all_gather_object(same, digest(ours))
    assert len(set(same)) == 1, "ranks differ"


def mixed_precision(comm):
    model = tributary.wrap(torch.nn.Linear(3000, 300).to(DEVICE), comm)
    scaler = torch.amp.GradScaler("cuda") if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(torch.ones(8, 3000, device=DEVICE)).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert bool(torch.isfinite(model.module.weight).all())


def backend(_):
    group = dist.new_group(backend="tributary")
    rank, size = dist.get_rank(), dist.get_world_size()
    total = torch.full((1000,), float(rank), device=DEVICE)
    slow_fill(total, float(rank))
    work = dist.all_reduce(total, group=group, async_op=True)
    work.wait()
    assert bool((total == sum(range(size))).all())
    rows = [torch.zeros(2, device=DEVICE) for _ in range(size)]
    dist.all_gather(rows, torch.full((2,), float(rank), device=DEVICE), group=group)
    assert torch.stack(rows)[:, 0].tolist() == [float(r) for r in range(size)]
    model = DDP(torch.nn.Linear(100, 10).to(DEVICE), process_group=group)
    model(torch.ones(2, 100, device=DEVICE) * (rank + 1)).sum().backward()
    assert torch.allclose(model.module.weight.grad, torch.full((10, 100), float(size + 1), device=DEVICE))
    cpu = torch.ones(3)
    dist.all_reduce(cpu, group=group)
    assert cpu.tolist() == [size] * 3


def one_rank():
    torch.cuda.set_device(DEVICE)
    dist.init_process_group("gloo")
    comm = tributary.init()
    failed = 0
    for test in (types, other_collectives, values_that_come_late, several_in_flight, training, mixed_precision, backend):
        begin = time.monotonic()
        try:
            test(comm)
            verdict = "ok"
        except BaseException:
            verdict = "FAILED\n" + traceback.format_exc()
            failed += 1
        print(f"rank {comm.rank}, {test.__name__}: {verdict} ({time.monotonic() - begin:.1f} s)", flush=True)
        if failed:
            break  # the other ranks would wait for this one
    sys.stdout.flush()
    if not failed:
        dist.destroy_process_group()
    return failed


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name(DEVICE)}, library {tributary._library.load().path}", flush=True)
    ranks = [subprocess.Popen([sys.executable, __file__], env={
        **os.environ, "CUDA_CHECK_RANK": "1", "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}) for rank in range(size)]
    codes = []
    for process in ranks:
        try:
            codes.append(process.wait(timeout=300))
        except subprocess.TimeoutExpired:
            process.kill()
            codes.append("hung")
    print(f"exit codes {codes}")
    print("PASS" if codes == [0] * size else "FAIL")
    return codes != [0] * size


if __name__ == "__main__":
    sys.exit(one_rank() if os.environ.get("CUDA_CHECK_RANK") else main())
