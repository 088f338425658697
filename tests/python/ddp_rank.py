# SPDX-License-Identifier: Apache-2.0
"""One rank of a small training with DDP: prints a digest of the weights. For launchers, and hosts of a virtual cluster."""
import hashlib
import os
import socket
import sys

import torch
import torch.distributed as dist

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../adapters/python")]
import tributary  # noqa: E402


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    devices = [name for _, name in socket.if_nameindex() if name != "lo"]
    if os.environ["MASTER_ADDR"] not in ("127.0.0.1", "localhost"):
        os.environ["GLOO_SOCKET_IFNAME"] = devices[0]  # hosts of a virtual cluster share their name
    dist.init_process_group("gloo")
    model = tributary.wrap(torch.nn.Linear(300, 400))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.full((4, 300), step + dist.get_rank() + 1.0)).square().mean().backward()
        optimizer.step()
    weights = b"".join(part.detach().numpy().tobytes() for part in model.parameters())
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {hashlib.sha256(weights).hexdigest()}", flush=True)
    dist.barrier()


main()
