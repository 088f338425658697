# SPDX-License-Identifier: Apache-2.0
"""Tables at parameter servers, which test_python.sh has started (TRIB_SPARSE_SERVERS)."""
import ctypes
import os

import jobs
import numpy
import pytest

import tributary

sparse = tributary.sparse  # as users write it
SERVERS = {name: os.environ[name] for name in ("TRIB_SPARSE_SERVERS",) if name in os.environ}


def tables():
    rank = int(os.environ["RANK"])
    with sparse.Table(width=3, name="python", rate=1.0, staleness=0, workers=2, rank=rank) as table:
        keys = numpy.array([5, 1 << 40, 7 + rank])
        assert table.pull(keys).tolist() == [[0.0] * 3] * 3
        table.step()  # nobody pushes before both have pulled
        table.push(keys, numpy.ones((3, 3)) * (rank + 1))
        table.step()  # waits for the gradients of both
        assert table.pull(keys)[:2].tolist() == [[-3.0] * 3] * 2
        with pytest.raises(tributary.ArgumentError, match="rows of 3 floats"):
            table.push(keys, numpy.ones((3, 2)))
        table.step()
        return table.stats()["pushed_rows"]


def embedding():
    torch = pytest.importorskip("torch")
    rank = int(os.environ["RANK"])
    with sparse.Table(width=4, name="words", rate=0.5, staleness=0, workers=2, rank=rank) as table:
        layer, losses = sparse.Embedding(table, offset=100), []
        for _ in range(5):
            out = layer(torch.tensor([[1, 2, 1], [3, 1, rank]]))
            assert out.shape == (2, 3, 4)
            loss = (out - 1).square().mean()
            loss.backward()
            table.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
        with torch.no_grad():
            return layer(torch.tensor([1])).tolist()


def test_structures_are_those_of_the_header():
    assert [ctypes.sizeof(kind) for kind in (sparse.Options, sparse.Stats)] == [160, 80]


def test_no_servers():
    with pytest.raises(tributary.Error):
        sparse.Table(width=3, servers="127.0.0.1:9", timeout_s=0.5)
    with pytest.raises(tributary.ArgumentError, match="colour"):
        sparse.Table(width=3, colour=1)


@pytest.mark.skipif(not SERVERS, reason="no parameter server was started")
def test_tables():
    assert jobs.good(tables, **SERVERS) == [3, 3]


@pytest.mark.skipif(not SERVERS, reason="no parameter server was started")
def test_embedding():
    first, second = jobs.good(embedding, **SERVERS)
    assert first == second
