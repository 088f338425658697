/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which interface: the one that the user has named to NCCL (NCCL_SOCKET_IFNAME), else the one
 * towards the aggregator, else the first that is up, loopback last.
 */
#include "plugin.h"

#include "base/settings.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPEED_UNKNOWN 10000 /* Mb/s */
#define SPEED_LEAST 1000    /* NCCL leaves out collectives on devices below 960 Mb/s */
#define LATENCY_US 20
#define BYTES_MAX (1ull << 40)
#define COMMS_MAX 65536
#define CONTROLLER_PORT 7600

static struct device device;
static bool device_found;
static pthread_once_t device_once = PTHREAD_ONCE_INIT;

/*
 * Is the interface in NCCL's list? Names are prefixes, "=" wants whole names, and "^" means all but
 * these.
 */
static bool is_listed(const char *list, const char *name)
{
	bool others = *list == '^', whole, found = false;

	list += others;
	whole = *list == '=';
	for (list += whole; *list && !found; list += strcspn(list, ","), list += *list == ',') {
		size_t length = strcspn(list, ",");

		found = length && strncmp(list, name, length) == 0 &&
		        (!whole || strlen(name) == length);
	}
	return found != others;
}

/* Better addresses have larger numbers; 0: of no use. */
static int rate(const struct ifaddrs *at, const char *list)
{
	const struct sockaddr_in6 *v6 = (const void *)at->ifa_addr;
	int score;

	if (!at->ifa_addr || !(at->ifa_flags & IFF_UP) || (list && !is_listed(list, at->ifa_name)))
		return 0;
	if (at->ifa_addr->sa_family == AF_INET)
		score = 3;
	else if (at->ifa_addr->sa_family == AF_INET6)
		score = IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ? 1 : 2;
	else
		return 0;
	return at->ifa_flags & IFF_LOOPBACK ? score : score + 3;
}

static void take_address(const struct ifaddrs *at)
{
	device.address.length = at->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
	                                                           : sizeof(struct sockaddr_in6);
	memcpy(&device.address.storage, at->ifa_addr, device.address.length);
	snprintf(device.name, sizeof(device.name), "%s", at->ifa_name);
}

/* The best address. `like` is the one it has to be; NULL: any. */
static bool find_address(const char *list, const struct udp_address *like)
{
	struct ifaddrs *all, *best = NULL;
	int score = 0;

	if (getifaddrs(&all))
		return false;
	for (struct ifaddrs *at = all; at; at = at->ifa_next) {
		struct udp_address address = { 0 };

		if (rate(at, list) <= score)
			continue;
		memcpy(&address.storage, at->ifa_addr,
		       at->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
		                                          : sizeof(struct sockaddr_in6));
		if (like && !udp_same_host(&address, like))
			continue;
		best = at;
		score = rate(at, list);
	}
	if (best)
		take_address(best);
	freeifaddrs(all);
	return best != NULL;
}

/* The address from which packets to the aggregator leave. */
static bool find_route(void)
{
	const char *star = setting_text(SETTING_AGGREGATOR, NULL);
	const char *controller = setting_text(SETTING_CONTROLLER, NULL);
	struct udp_address peer, local;
	char text[256];

	if (!star && !controller)
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(star ? star : controller, "#"),
	         star ? star : controller);
	return udp_resolve(text, star ? UDP_DEFAULT_PORT : CONTROLLER_PORT, &peer) == TRIB_OK &&
	       udp_local(&peer, &local) == TRIB_OK && find_address(NULL, &local);
}

static void find_speed(void)
{
	char path[128];
	FILE *file;

	device.speed = SPEED_UNKNOWN;
	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", device.name);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fscanf(file, "%d", &device.speed) != 1 || device.speed <= 0)
		device.speed = SPEED_UNKNOWN;
	fclose(file);
	if (device.speed < SPEED_LEAST)
		device.speed = SPEED_LEAST;
}

/* NCCL asks where in the machine the interface is. A virtual one has no place. */
static void find_path(void)
{
	char link[128], *real;

	snprintf(link, sizeof(link), "/sys/class/net/%s/device", device.name);
	real = realpath(link, NULL);
	if (real && strlen(real) < sizeof(device.path))
		snprintf(device.path, sizeof(device.path), "%s", real);
	free(real);
}

static void find_device(void)
{
	const char *list = getenv("NCCL_SOCKET_IFNAME");

	device_found =
		list && *list ? find_address(list, NULL) : find_route() || find_address(NULL, NULL);
	if (!device_found)
		return;
	udp_set_port(&device.address, 0);
	device.guid = if_nametoindex(device.name);
	find_speed();
	find_path();
}

const struct device *device_get(void)
{
	pthread_once(&device_once, find_device);
	return device_found ? &device : NULL;
}

bool device_has_aggregator(void)
{
	return setting_text(SETTING_AGGREGATOR, NULL) || setting_text(SETTING_TREES, NULL) ||
	       setting_text(SETTING_CONTROLLER, NULL);
}

int device_properties(int number, struct nccl_properties_v11 *properties)
{
	if (!device_get() || number != 0)
		return NCCL_INVALID_ARGUMENT;
	*properties = (struct nccl_properties_v11){ .name = device.name,
		                                    .pci_path = *device.path ? device.path : NULL,
		                                    .guid = device.guid,
		                                    .pointers = NCCL_PTR_HOST,
		                                    .registration_is_global = 1,
		                                    .speed = device.speed,
		                                    .latency = LATENCY_US,
		                                    .max_comms = COMMS_MAX,
		                                    .max_receives = 1,
		                                    .parts = { .n = 1 },
		                                    .max_p2p_bytes = BYTES_MAX,
		                                    .max_coll_bytes = BYTES_MAX,
		                                    .max_multi_request = 1 };
	return NCCL_SUCCESS;
}
