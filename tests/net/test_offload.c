/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without offloads in the cluster, a batch handed to the kernel at once (UDP_SEGMENT) crosses a
 * link packet by packet. Exit code 77: skipped.
 */
#include "net/cluster.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 10
#define BATCH 20
#define SEGMENT 1400

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

static int batches_send(const char *address)
{
	static char data[BATCH * SEGMENT];
	struct sockaddr_in to = { .sin_family = AF_INET,
		                  .sin_port = htons(9),
		                  .sin_addr.s_addr = inet_addr(address) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int segment = SEGMENT;
	int result = 0;

	if (fd < 0 || setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)) < 0)
		return -1;
	for (int i = 0; i < BATCHES && result == 0; i++)
		if (sendto(fd, data, sizeof(data), 0, (struct sockaddr *)&to, sizeof(to)) < 0)
			result = -1;
	close(fd);
	return result;
}

static unsigned long packets_arrived(void)
{
	char line[512];
	unsigned long packets = 0;
	FILE *file = fopen("/proc/thread-self/net/dev", "re");

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, " eth0: %*u %lu", &packets);
	if (file)
		fclose(file);
	return packets;
}

static long packets_try(const struct cluster *cluster)
{
	const struct cluster_host *from = cluster_find(cluster, "h1");
	const struct cluster_host *to = cluster_find(cluster, "s1");
	unsigned long before, packets = 0;

	if (cluster_enter(to) != TRIB_OK)
		return -1;
	before = packets_arrived();
	if (cluster_enter(from) != TRIB_OK)
		return -1;
	if (batches_send(to->address) < 0)
		return -2;
	if (cluster_enter(to) != TRIB_OK)
		return -1;
	for (int i = 0; i < 50 && packets < BATCHES * BATCH; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		packets = packets_arrived() - before;
	}
	return (long)packets;
}

/*
 * The number of packets that arrive at s1; -1: an error was printed; -2: there is no UDP_SEGMENT.
 */
static long packets_cross(bool no_offload)
{
	static struct cluster cluster;
	char name[32];
	struct cluster_options options = {
		.name = name, .workers = 1, .servers = 1, .no_offload = no_offload
	};
	long packets = -1;

	snprintf(name, sizeof(name), "toff%d", (int)getpid());
	if (cluster_up(&options, &cluster) != TRIB_OK) {
		printf("cluster_up: %s\n", trib_last_error());
		return -1;
	}
	/* A new link may drop the first packets, so try up to 5 times. */
	for (int tries = 0; tries < 5 && packets > -2 && packets < BATCHES; tries++)
		packets = packets_try(&cluster);
	if (cluster_down(name) != TRIB_OK) {
		printf("cluster_down: %s\n", trib_last_error());
		return -1;
	}
	return packets;
}

int main(void)
{
	if (geteuid() != 0) {
		printf("skipped: namespaces need root\n");
		return 77;
	}
	printf("%d packets in %d batches\n", BATCHES * BATCH, BATCHES);
	printf("with offloads: %ld packets crossed\n", packets_cross(false));
	long packets = packets_cross(true);

	if (packets == -2) {
		printf("skipped: this kernel cannot segment UDP\n");
		return 77;
	}
	printf("without offloads: %ld packets crossed\n", packets);
	/* Allow a few more: the bridge sends multicast queries now and then. */
	return packets >= BATCHES * BATCH && packets < BATCHES * BATCH + BATCHES ? 0 : 1;
}
