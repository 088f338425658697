#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ordinary traffic beside an aggregation.

traffic.py serve ADDRESS        answers a TCP stream with its SHA-256, and echoes UDP packets
traffic.py go ADDRESS SECONDS   prints what was sent, and the errors: three zeros mean success
"""
import hashlib
import os
import select
import socket
import struct
import sys
import time

PORT = 5001  # of TCP and UDP


def serve(address):
    tcp = socket.create_server((address, PORT))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((address, PORT))
    print("ready", flush=True)
    hashes = {}
    while True:
        for one in select.select([tcp, udp, *hashes], [], [])[0]:
            if one is tcp:
                hashes[tcp.accept()[0]] = hashlib.sha256()
            elif one is udp:
                udp.sendto(*udp.recvfrom(2000))
            elif data := one.recv(1 << 20):
                hashes[one].update(data)
            else:
                one.sendall(hashes.pop(one).digest())
                one.close()


def transfer(address):
    """Sends 8 MiB of random bytes. Is the returned hash right?"""
    data = os.urandom(8 << 20)
    with socket.create_connection((address, PORT), 20) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        return s.recv(64) == hashlib.sha256(data).digest()


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def echo(s, packet, to, offset):
    """Is the packet echoed within a second?"""
    s.sendto(packet, to)
    end = time.monotonic() + 1
    while (left := end - time.monotonic()) > 0 and select.select([s], [], [], left)[0]:
        if s.recv(2000)[offset:] == packet[-len(packet) + (8 if offset else 0):]:
            return True
    return False


def go(address, seconds):
    icmp = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end = time.monotonic() + seconds
    n = lost = udp_lost = wrong = transfers = 0
    while time.monotonic() < end or not transfers:
        body = os.urandom(1000)
        head = struct.pack("!BBHHH", 8, 0, 0, os.getpid() & 0xFFFF, n & 0xFFFF)
        head = head[:2] + struct.pack("!H", checksum(head + body)) + head[4:]
        lost += not echo(icmp, head + body, (address, 0), 28)
        udp_lost += not echo(udp, os.urandom(1000), (address, PORT), 0)
        if n % 50 == 0:
            transfers += 1
            wrong += not transfer(address)
        n += 1
    print(f"{n} pings, {transfers} transfers: lost {lost}, UDP lost {udp_lost}, wrong {wrong}")
    return lost + udp_lost + wrong


if sys.argv[1] == "serve":
    serve(sys.argv[2])
sys.exit(1 if go(sys.argv[2], float(sys.argv[3])) else 0)
