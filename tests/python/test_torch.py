# SPDX-License-Identifier: Apache-2.0
"""PyTorch: tensors, DistributedDataParallel, the backend, and what ranks are told when another one fails."""
import copy
import hashlib
import os
import threading

import jobs
import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

import tributary  # noqa: E402
from tributary import _library  # noqa: E402

DDP = torch.nn.parallel.DistributedDataParallel


def begin(backend="gloo"):
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    return dist.get_rank()


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.rows = torch.nn.Embedding(50, 8, sparse=True)
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 600), torch.nn.ReLU(), torch.nn.Linear(600, 3))

    def forward(self, words):
        return self.layers(self.rows(words).mean(1))


def tensors():
    begin()
    comm = tributary.init()
    rank = comm.rank
    for kind in (torch.int8, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64):
        values = torch.full((3, 5), rank + 1, dtype=kind).t()  # not contiguous
        assert tributary.all_reduce(values) is values and bool((values == 3).all())
    several = [torch.full((40000,), float(rank + i), requires_grad=True) for i in range(5)]
    for i, request in enumerate([comm.all_reduce(values, "avg", async_op=True) for values in several]):
        assert bool((request.wait() == i + 0.5).all())
    assert comm.all_gather(torch.tensor([[rank]])).tolist() == [[[0]], [[1]]]
    assert comm.reduce_scatter(torch.arange(4.0)).tolist() == [4.0 * rank, 4.0 * rank + 2]
    rows = torch.sparse_coo_tensor([[rank, 3]], torch.tensor([[1.0, 2.0], [3.0, 4.0]]), (5, 2))
    both = tributary.sparse_all_reduce(comm, rows)
    assert both.to_dense().tolist() == [[1, 2], [1, 2], [0, 0], [6, 8], [0, 0]]
    empty = tributary.sparse_all_reduce(comm, torch.sparse_coo_tensor(torch.zeros((1, 0)), torch.zeros((0, 2)), (5, 2)))
    assert empty._nnz() == 0
    noted = torch.tensor([1 + 2j, 3 - 4j]).conj()  # its memory has the numbers before conj()
    plain = comm.broadcast(noted if rank == 0 else torch.zeros(2, dtype=noted.dtype))
    assert plain.tolist() == [1 - 2j, 3 + 4j]


def train(model, steps=4):
    rank = dist.get_rank()
    draw = torch.Generator().manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randint(0, 50, (4, 5), generator=draw)).square().sum().backward()
        optimizer.step()
    return [weights.detach().clone() for weights in model.parameters()]


def training():
    begin()
    base = Network()
    ours = train(tributary.wrap(copy.deepcopy(base), bucket_cap_mb=0.005))
    again = train(tributary.register(DDP(copy.deepcopy(base), bucket_cap_mb=0.005)))
    theirs = train(DDP(copy.deepcopy(base)))
    assert all(torch.equal(a, b) for a, b in zip(ours, again))
    assert max(float((a - b).abs().max()) for a, b in zip(ours, theirs)) < 1e-5
    comm = tributary.communicator_of()
    rounds = comm.stats()["rounds"]
    assert rounds >= 4 * (3 + 2), rounds  # a bucket each, and three calls for the sparse one
    comm.close()
    for thread in threading.enumerate():
        if thread.name.startswith("tributary"):
            thread.join(30)
            assert not thread.is_alive(), thread
    return hashlib.sha256(b"".join(weights.numpy().tobytes() for weights in ours)).hexdigest()


def groups():
    """Two communicators of halves, and one of all, at the same time."""
    rank = begin()
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    comm = tributary.communicator_of(halves[rank // 2])
    assert comm.size == 2 and comm.all_reduce(torch.ones(1) * rank).item() == (1 if rank < 2 else 5)
    assert tributary.init().all_reduce(torch.ones(1)).item() == 4
    return True


def backend():
    import tributary.torch_backend  # noqa: F401
    rank, size = begin("tributary"), 2
    total = torch.arange(3.0) * (rank + 1)
    dist.all_reduce(total)
    assert total.tolist() == [0, 3, 6]
    least = torch.tensor([rank])
    work = dist.all_reduce(least, op=dist.ReduceOp.MIN, async_op=True)
    work.wait()
    assert least.item() == 0
    from_one = torch.full((2,), rank)
    dist.broadcast(from_one, 1)
    assert from_one.tolist() == [1, 1]
    rows = [torch.zeros(2) for _ in range(size)]
    dist.all_gather(rows, torch.full((2,), float(rank)))
    assert torch.stack(rows).tolist() == [[0, 0], [1, 1]]
    part = torch.zeros(2)
    dist.reduce_scatter(part, [torch.full((2,), float(r)) for r in range(size)])
    assert part.tolist() == [2.0 * rank] * 2
    dist.scatter(part, [torch.full((2,), 5.0 + r) for r in range(size)] if rank == 0 else None, src=0)
    assert part.tolist() == [5.0 + rank] * 2
    dist.gather(part, rows if rank == 0 else None, dst=0)
    assert rank or torch.stack(rows).tolist() == [[5, 5], [6, 6]]
    dist.reduce(part, 1)
    assert part.tolist() == ([11, 11] if rank else [5, 5])
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 0}, {"rank": 1}]
    alone = dist.new_group([1])
    assert rank == 0 or dist.get_world_size(alone) == 1
    both = torch.ones(1)
    dist.all_reduce(both, group=dist.new_group([0, 1]))
    assert both.item() == 2
    with pytest.raises(NotImplementedError, match="gloo"):
        dist.send(both, 1 - rank)
    with pytest.raises(tributary.ArgumentError, match="SUM"):
        dist.all_reduce(both, op=dist.ReduceOp.PRODUCT)
    dist.barrier()
    return train(DDP(Network()), 1)[1].sum().item()


def buckets_in_flight():
    """Rank 1 begins its backward pass when rank 0 has started all buckets of its own: none may wait for rank 1."""
    rank = begin()
    store, started = dist.distributed_c10d._get_default_store(), []
    model = DDP(torch.nn.Sequential(*[torch.nn.Linear(600, 600) for _ in range(4)]), bucket_cap_mb=1)
    comm = tributary.communicator_of()

    def hook(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        future = tributary.ddp_hook(comm, bucket)
        started.append((future.done(), bucket.is_last()))
        if rank == 0 and bucket.is_last():
            store.set("all started", "yes")
        return future

    model.register_comm_hook(None, hook)
    model(torch.ones(2, 600)).sum().backward()  # DDP fills its buckets in their final order from the second step on
    store.delete_key("all started")
    dist.barrier()
    started.clear()
    loss = model(torch.ones(2, 600)).sum()
    if rank == 1:
        store.wait(["all started"])
    loss.backward()
    return started


class Stream:
    """Stands for a CUDA stream or event: what a call does with it is written down."""

    def __init__(self, *_):
        self.log = []

    def __getattr__(self, name):
        return lambda *_: self.log.append(name)


def streams_without_a_gpu():
    """The code of CUDA tensors on those of the CPU: order of calls, threads, errors. cuda_check.py has the real test."""
    import contextlib

    from tributary import _cuda, torch_future
    side, current, empty = (Stream(), Stream()), Stream(), torch.empty
    torch.cuda.Event, torch.cuda.current_stream = Stream, lambda _: current
    torch.cuda.stream = contextlib.nullcontext
    torch.Tensor.record_stream = lambda *_: None
    torch.empty = lambda *shape, pin_memory=False, **options: empty(*shape, **options)
    _cuda.side_streams = lambda _: side
    begin()
    comm, requests = tributary.init(), []
    for i in range(30):
        values = torch.full((1000 * i + 1,), float(comm.rank + i))
        if i % 3:
            requests.append(_cuda.run(comm, values, values, lambda view, out: comm._library.trib_iallreduce_with(
                comm._handle, _library.IN_PLACE, view.address, view.count, view.code(), 0, None, out), True, True))
        else:
            requests.append(comm.all_reduce(values, async_op=True))
    futures = [torch_future.future_of(comm, request) for request in requests]
    for i, future in reversed(list(enumerate(futures))):
        assert bool((future.wait() == 1 + 2 * i).all())
    assert side[0].log == ["wait_stream"] * 20 and current.log == ["wait_event"] * 20
    comm.all_reduce(torch.ones(2 + comm.rank), async_op=True)
    late = comm.all_reduce(torch.ones(2), async_op=True)
    with pytest.raises(RuntimeError, match="MismatchError|closed|mismatch|different collectives"):
        torch_future.future_of(comm, late).wait()


def one_dies():
    rank = begin()
    model = tributary.wrap(torch.nn.Linear(500, 400))
    if rank == 1:
        os._exit(9)
    model(torch.ones(2, 500)).sum().backward()


def one_without_the_hook():
    rank = begin()
    model = DDP(torch.nn.Linear(3, 3))
    if rank != 1:
        tributary.register(model)
    else:
        dist.distributed_c10d._get_default_store().wait(["tributary/world/plan"])


def another_version():
    if begin() == 1:
        _library.__version__ = "0.1.99"
    tributary.wrap(torch.nn.Linear(3, 3))


def test_tensors():
    jobs.good(tensors)


def test_training():
    assert len(set(jobs.good(training))) == 1


def test_training_beside_an_aggregator():
    """test_python.sh has started one."""
    at = os.environ.get("TEST_AGGREGATOR")
    if not at:
        pytest.skip("no aggregator was started")
    alone, beside = jobs.good(training), jobs.good(training, TRIB_AGGREGATOR=at, TRIB_COOKIE=os.environ["TEST_COOKIE"])
    assert set(alone) == set(beside)
    jobs.good(groups, 4, TRIB_AGGREGATOR=at, TRIB_COOKIE=os.environ["TEST_COOKIE"])


def test_groups():
    jobs.good(groups, 4)


def test_backend():
    assert len(set(jobs.good(backend))) == 1


def test_buckets_in_flight():
    first, second = jobs.good(buckets_in_flight)
    assert len(first) == len(second) >= 3 and not any(is_done for is_done, _ in first)


def test_streams_without_a_gpu():
    jobs.good(streams_without_a_gpu)


def test_one_dies():
    (what, words), dead = jobs.run(one_dies, TRIB_TIMEOUT=2)
    assert dead == ("died", 9) and what == "RuntimeError" and "PeerError" in words and "rank 1" in words


def test_one_without_the_hook():
    answers = jobs.run(one_without_the_hook, 3, TRIB_TIMEOUT=3)
    for what, words in (answers[0], answers[2]):
        assert what == "ConfigError" and "rank 1 of 3 did not come" in words


def test_another_version():
    for what, words in jobs.run(another_version):
        assert what == "ConfigError" and "rank 1 has version 0.1.99" in words


def test_wrong_model():
    with pytest.raises(tributary.ArgumentError, match="DistributedDataParallel"):
        tributary.register(torch.nn.Linear(1, 1))
    with pytest.raises(tributary.ConfigError, match="init_process_group"):
        tributary.communicator_of()
