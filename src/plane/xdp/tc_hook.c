/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook tc (bpf/tc.bpf.c): where XDP would cost more than it gives. A veth whose other end has a
 * program at XDP takes packets one by one, and many drivers have no XDP. At tc, offloads stay, and
 * results leave by the interface's queue. Links of the kernel hold the program: it leaves with the
 * process, however that ends.
 */
#include "plane/xdp/xdp_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <limits.h>
#include <linux/pkt_cls.h>
#include <net/if.h>
#include <string.h>

#include "tc.skel.h"

#define TCX_INGRESS 46 /* BPF_TCX_INGRESS of <linux/bpf.h>, which older systems lack */

int tc_load(struct xdp_plane *plane)
{
	size_t bytes;
	const void *elf = tc_bpf__elf_bytes(&bytes);
	int error;

	plane->tc = bpf_object__open_mem(elf, bytes, NULL);
	if (!plane->tc)
		return -errno;
	error = object_share_maps(plane, plane->tc);
	return error ? error : bpf_object__load(plane->tc);
}

int tc_program(const struct xdp_plane *plane)
{
	return bpf_program__fd(bpf_object__next_program(plane->tc, NULL));
}

uint32_t tc_action(uint32_t action)
{
	return action == TC_ACT_SHOT       ? XDP_DROP
	       : action == TC_ACT_REDIRECT ? XDP_REDIRECT
	                                   : XDP_PASS;
}

int tc_engines(const struct xdp_plane *plane)
{
	return bpf_object__find_map_fd_by_name(plane->tc, "tc_engines");
}

/* Gives the link, which ends with its descriptor; -1 with errno. */
static int attach(const struct xdp_plane *plane, unsigned ifindex)
{
	return bpf_link_create(tc_program(plane), (int)ifindex, (enum bpf_attach_type)TCX_INGRESS,
	                       NULL);
}

/* No interface has that number. A kernel with the hook says so; an older one knows no such hook. */
bool tc_is_possible(const struct xdp_plane *plane)
{
	return attach(plane, INT_MAX) < 0 && errno == ENODEV;
}

trib_status tc_attach(struct xdp_plane *plane, unsigned ifindex)
{
	struct xdp_interface *interface = &plane->interfaces[plane->n_links];
	int fd;

	if (plane->n_links == XDP_INTERFACES_MAX)
		return status_fail(TRIB_ERR_CONFIG, "more than %u interfaces", XDP_INTERFACES_MAX);
	*interface = (struct xdp_interface){ .name = "?", .ifindex = ifindex, .mode = XDP_AT_TC };
	if_indextoname(ifindex, interface->name);
	fd = attach(plane, ifindex);
	if (fd < 0)
		return status_fail(
			TRIB_ERR_SYSTEM, "interface %s takes no program at tc: %s", interface->name,
			errno == EINVAL ? "the kernel is older than 6.6" : strerror(errno));
	plane->links[plane->n_links++] = fd;
	return TRIB_OK;
}
