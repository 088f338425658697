#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of scripts/bench_ddp.py: trains copies of one model side by side, each with another way for its gradients.

Step after step, each system in turn trains its own copy on the same batch, so that all see the same machine. Nothing but
the gradients differs. The results go to OUT.RANK as JSON.
"""
import argparse
import contextlib
import copy
import gzip
import hashlib
import json
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "adapters/python")]
import tributary  # noqa: E402

LOCAL = "computation alone"


class Transformer(nn.Module):
    """An image is a sequence of 16 patches of 7 by 7."""

    def __init__(self, width, layers):
        super().__init__()
        self.enter = nn.Linear(49, width)
        self.place = nn.Parameter(torch.zeros(16, width))
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True), layers)
        self.leave = nn.Linear(width, 10)

    def forward(self, images):
        patches = images.view(-1, 4, 7, 4, 7).transpose(2, 3).reshape(-1, 16, 49)
        return self.leave(self.body(self.enter(patches) + self.place).mean(1))


def perceptron(*sizes):
    layers = []
    for i, (inner, outer) in enumerate(zip(sizes, sizes[1:])):
        layers += ([nn.ReLU()] if i else []) + [nn.Linear(inner, outer)]
    return nn.Sequential(*layers)


MODELS = {"mlp": (lambda: perceptron(784, 4096, 4352, 896, 10), 0.05), "transformer": (lambda: Transformer(512, 10), 0.02),
          "small": (lambda: perceptron(784, 300, 10), 0.05)}


def mnist(folder):
    """Images and labels, or drawn ones if the files are not there."""
    try:
        with gzip.open(os.path.join(folder, "train-images-idx3-ubyte.gz")) as file:
            images = torch.frombuffer(bytearray(file.read()[16:]), dtype=torch.uint8).view(-1, 784)
        with gzip.open(os.path.join(folder, "train-labels-idx1-ubyte.gz")) as file:
            labels = torch.frombuffer(bytearray(file.read()[8:]), dtype=torch.uint8)
        return "MNIST", (images.float() / 255 - 0.13) / 0.31, labels.long()
    except OSError:
        draw = torch.Generator().manual_seed(7)
        labels = torch.randint(0, 10, (10000,), generator=draw)
        shapes = torch.randn(10, 784, generator=draw)
        return "drawn data", shapes[labels] + 2 * torch.randn(10000, 784, generator=draw), labels


class Trainee:
    """A system with its own copy of the model."""

    def __init__(self, name, base, rate, options, rank, size):
        self.name, self.times, self.losses = name, [], []
        self.model = copy.deepcopy(base)
        self.comm = None
        if name != LOCAL:
            self.model = nn.parallel.DistributedDataParallel(self.model, gradient_as_bucket_view=True)
        if name == "tributary":
            self.comm = tributary.Communicator(rank=rank, size=size)
        elif name == "tributary, no aggregator":
            self.comm = tributary.Communicator(rendezvous=options.rendezvous, rank=rank, size=size)
        if self.comm:
            tributary.register(self.model, self.comm)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate)

    def step(self, images, labels):
        self.optimizer.zero_grad(set_to_none=False)
        dist.barrier()
        begin = time.monotonic()
        loss = nn.functional.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        self.times.append(time.monotonic() - begin)
        self.losses.append(loss.item())

    def digest(self):
        weights = b"".join(part.detach().numpy().tobytes() for part in self.model.parameters())
        return hashlib.sha256(weights).hexdigest()[:16]


def begin_group(options, rank, size):
    """Gloo has to be told the interface: hosts of a virtual cluster share their name."""
    devices = [name for _, name in socket.if_nameindex() if name != "lo"]
    if devices:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", devices[0])
    dist.init_process_group("gloo", init_method=f"tcp://{options.master}", rank=rank, world_size=size)


def options_read():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--model", choices=MODELS, default="mlp")
    parser.add_argument("--systems", default="gloo;tributary")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--data", default="")
    parser.add_argument("--master", default="127.0.0.1:29500", help="where rank 0's store listens")
    parser.add_argument("--rendezvous", default="127.0.0.1:29501", help="where ranks without an aggregator meet")
    parser.add_argument("--out", required=True)
    return parser.parse_args()


def main():
    options = options_read()
    torch.set_num_threads(1)
    rank, size = int(os.environ["TRIB_RANK"]), int(os.environ["TRIB_SIZE"])
    begin_group(options, rank, size)
    make, rate = MODELS[options.model]
    torch.manual_seed(1)
    base = make()
    data, images, labels = mnist(options.data)
    trainees = [Trainee(name, base, rate, options, rank, size) for name in options.systems.split(";")]
    draw = torch.Generator().manual_seed(100 + rank)
    for number in range(options.warmup + options.steps):
        chosen = torch.randint(0, len(labels), (options.batch,), generator=draw)
        turn = number % len(trainees)
        for trainee in trainees[turn:] + trainees[:turn]:  # each is first equally often
            trainee.step(images[chosen], labels[chosen])
        if rank == 0:
            print(f"step {number + 1}: " + ", ".join(f"{trainee.name} {trainee.times[-1]:.2f} s" for trainee in trainees), flush=True)
    result = {"data": data, "parameters": sum(part.numel() for part in base.parameters()), "torch": torch.__version__,
              "systems": {t.name: {"step_s": t.times[options.warmup:], "losses": t.losses, "digest": t.digest()} for t in trainees}}
    with open(f"{options.out}.{rank}", "w", encoding="utf-8") as file:
        json.dump(result, file)
    dist.barrier()
    for trainee in trainees:
        with contextlib.suppress(tributary.Error):
            if trainee.comm:
                trainee.comm.close()


if __name__ == "__main__":
    main()
