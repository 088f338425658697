/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that carry the time when they are to leave, through a real fq: sent at a
 * rate as a lane does, received in another network namespace. None may arrive
 * before its time, and all must arrive. Prints what was counted: a few may be swapped, as
 * a veth hands over what two cores send.
 *
 * Usage: fq_times ADDRESS:PORT NAMESPACE-FILE RATE PACKETS
 */
#include "base/clock.h"
#include "base/settings.h"
#include "path/egress.h"
#include "path/pacer.h"

#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PACKET 1000u
#define BATCH 32u

struct mark {
	uint64_t number, time; /* 0: at once */
};

static const struct udp_options options = { .offload = true,
	                                    .receive_bytes = 4 << 20,
	                                    .send_bytes = 256 << 10 };

static int receive(const struct udp_address *at, const char *namespace, uint64_t packets, int ready)
{
	int ns = open(namespace, O_RDONLY | O_CLOEXEC), fd;
	struct udp_rx *rx = udp_rx_new(8, false);
	uint64_t got = 0, early = 0, swapped = 0, with_time = 0, groups = 0, last = 0, before = 0;
	bool gso;

	if (ns < 0 || setns(ns, CLONE_NEWNET) || !rx)
		err(2, "%s", namespace);
	if (udp_open(at, NULL, &options, &fd, &gso) != TRIB_OK)
		errx(2, "%s", trib_last_error());
	if (write(ready, "", 1) != 1)
		err(2, "pipe");
	while (got < packets) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		uint64_t now;
		int n;

		if (poll(&wait, 1, 5000) <= 0)
			break;
		n = udp_receive(rx, fd);
		now = clock_now();
		for (int i = 0; i < n; i++) {
			const struct udp_message *message = udp_message(rx, i);

			for (uint32_t k = 0; k + PACKET <= message->bytes; k += PACKET) {
				struct mark mark;

				memcpy(&mark, message->data + k, sizeof(mark));
				early += mark.time > now;
				with_time += mark.time != 0;
				swapped += got && mark.number < last;
				groups += mark.time != before;
				before = mark.time;
				last = mark.number;
				got++;
			}
		}
	}
	printf("received %llu packets, %llu with a time, %llu times, %llu early, %llu swapped\n",
	       (unsigned long long)got, (unsigned long long)with_time, (unsigned long long)groups,
	       (unsigned long long)early, (unsigned long long)swapped);
	return got == packets && !early ? 0 : 1;
}

/* As worker/transport/lane_udp.c does: messages of packets that leave together. */
static void transmit(int fd, struct udp_tx *tx, struct pacer *pacer, uint64_t packets)
{
	static uint8_t data[BATCH][PACKET];
	uint64_t number = 0, time = 0;

	while (number < packets) {
		uint64_t now = clock_now(), free_at = pacer_free_at(pacer);
		uint32_t together = pacer_message_bytes(pacer, udp_tx_joins(tx));
		uint32_t n = 0, start = 0;

		if (free_at > now) {
			struct timespec span = clock_span(free_at - now);

			nanosleep(&span, NULL);
			pacer->naps++;
			continue;
		}
		for (; n < BATCH && number < packets && pacer_free_at(pacer) <= now; n++) {
			struct mark mark = { .number = number++ };

			pacer_sent(pacer, now, PACKET);
			if (n == start || (n + 1 - start) * PACKET > together) {
				if (n > start) {
					udp_tx_at(tx, time);
					udp_tx_add(tx, data[start], (n - start) * PACKET, PACKET,
					           NULL);
					pacer_message(pacer, now, time);
				}
				start = n;
				time = pacer_time(pacer, now);
			}
			mark.time = time;
			memcpy(data[n], &mark, sizeof(mark));
		}
		udp_tx_at(tx, time);
		udp_tx_add(tx, data[start], (n - start) * PACKET, PACKET, NULL);
		pacer_message(pacer, now, time);
		while (udp_send(tx, fd))
			usleep(500);
	}
}

int main(int argc, char **argv)
{
	struct udp_address peer;
	struct egress egress;
	struct pacer pacer;
	uint64_t rate, packets, start;
	int pipes[2], fd, status;
	bool gso;
	char byte;
	pid_t child;

	if (argc != 5 || udp_resolve(argv[1], 0, &peer) || parse_rate(argv[3], &rate))
		errx(2, "usage: fq_times ADDRESS:PORT NAMESPACE-FILE RATE PACKETS");
	packets = strtoull(argv[4], NULL, 10);
	if (pipe(pipes))
		err(2, "pipe");
	child = fork();
	if (child == 0)
		return receive(&peer, argv[2], packets, pipes[1]);
	if (child < 0 || read(pipes[0], &byte, 1) != 1)
		errx(2, "the receiver did not start");
	if (udp_open(NULL, &peer, &options, &fd, &gso) || egress_find(fd, &egress))
		errx(2, "%s", trib_last_error());
	pacer_start(&pacer, rate, 0, clock_now());
	if (!rtnl_is_fair(&egress.qdisc) || !udp_let_times(fd) ||
	    !pacer_go_ahead(&pacer, udp_send_room(fd, 0) / 4, egress.qdisc.flow_limit))
		errx(2, "the queue of %s is %s", egress.interface, egress.qdisc.kind);
	start = clock_now();
	transmit(fd, udp_tx_new(64, gso), &pacer, packets);
	if (waitpid(child, &status, 0) != child)
		err(2, "waitpid");
	printf("the queue of %s is %s, %u packets a flow; %llu messages with a time, %llu sleeps\n",
	       egress.interface, egress.qdisc.kind, egress.qdisc.flow_limit,
	       (unsigned long long)pacer.messages, (unsigned long long)pacer.naps);
	printf("took %.3f s, the rate says %.3f\n", (double)(clock_now() - start) / 1e9,
	       (double)packets * PACKET * 8 / (double)rate);
	return status ? 1 : 0;
}
