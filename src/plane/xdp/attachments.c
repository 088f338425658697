/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interfaces of the program: attaching it, watching that it stays, and leaving interfaces where
 * what it sends does not arrive. There it costs speed and gives none: a veth with a program takes
 * packets one by one. Thread 0 of the daemon owns the interfaces. Lanes only ask.
 */
#include "plane/xdp/xdp_internal.h"

#include "base/log.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

static trib_status fail_occupied(const char *name, const char *other)
{
	return status_fail(TRIB_ERR_CONFIG,
	                   "interface %s already runs another XDP program, %s: remove it "
	                   "(ip link set dev %s xdp off), name other interfaces (--interface), or "
	                   "use --plane udp",
	                   name, other, name);
}

/* Why attaching failed. Drivers use errno for reasons that strerror() does not name. */
static const char *attach_reason(int error)
{
	return error == ERANGE       ? "the MTU is too large for its driver's XDP"
	       : error == EOPNOTSUPP ? "its driver has no XDP"
	                             : strerror(error);
}

/* Gives the link, which ends with its descriptor; -1 with errno. */
static int attach(int program, unsigned ifindex, enum xdp_mode mode)
{
	LIBBPF_OPTS(bpf_link_create_opts, options);

	options.flags = mode == XDP_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
	return bpf_link_create(program, (int)ifindex, BPF_XDP, &options);
}

trib_status xdp_attach(struct xdp_plane *plane, unsigned ifindex, bool native)
{
	struct xdp_interface *interface = &plane->interfaces[plane->n_links];
	int program = bpf_program__fd(plane->bpf->progs.aggregate), fd = -1, error = 0;
	struct xdp_probe probe;

	if (plane->n_links == XDP_INTERFACES_MAX)
		return status_fail(TRIB_ERR_CONFIG, "more than %u interfaces", XDP_INTERFACES_MAX);
	*interface = (struct xdp_interface){ .name = "?", .ifindex = ifindex };
	if_indextoname(ifindex, interface->name);
	xdp_probe(ifindex, &probe);
	if (*probe.other)
		return fail_occupied(interface->name, probe.other);
	if (!native)
		snprintf(interface->why, sizeof(interface->why), "--generic was given");
	for (unsigned mode = native ? XDP_NATIVE : XDP_GENERIC; mode <= XDP_GENERIC; mode++) {
		interface->mode = (enum xdp_mode)mode;
		fd = attach(program, ifindex, interface->mode);
		if (fd >= 0)
			break;
		error = errno;
		if (error == EBUSY || error == EEXIST)
			return fail_occupied(interface->name, "attached just now");
		snprintf(interface->why, sizeof(interface->why), "%s", attach_reason(error));
		log_info("%s refuses the program in %s mode: %s", interface->name,
		         mode == XDP_NATIVE ? "driver" : "generic", strerror(error));
	}
	if (fd < 0)
		return status_fail(TRIB_ERR_SYSTEM, "interface %s takes no XDP program: %s",
		                   interface->name, strerror(error));
	plane->generic |= interface->mode == XDP_GENERIC;
	plane->links[plane->n_links++] = fd;
	return TRIB_OK;
}

const struct xdp_interface *xdp_interface(const struct xdp_plane *plane, unsigned i)
{
	return i < plane->n_links ? &plane->interfaces[i] : NULL;
}

const char *xdp_describe(const struct xdp_plane *plane, char *out, size_t size)
{
	static const char *const modes[] = { [XDP_NATIVE] = " (driver mode)",
		                             [XDP_GENERIC] = " (generic mode: ",
		                             [XDP_AT_TC] = "" };
	const unsigned shown = 8;
	size_t used = 0;

	*out = '\0';
	for (unsigned i = 0; i < plane->n_links && i < shown && used < size; i++) {
		const struct xdp_interface *interface = &plane->interfaces[i];
		bool generic = interface->mode == XDP_GENERIC;
		int n = snprintf(out + used, size - used, "%s%s%s%s%s", i ? ", " : "",
		                 interface->name, modes[interface->mode],
		                 generic ? interface->why : "", generic ? ")" : "");

		used += n > 0 ? (size_t)n : 0;
	}
	if (plane->n_links > shown && used < size)
		snprintf(out + used, size - used, " and %u more", plane->n_links - shown);
	return out;
}

/* What is true of an interface that the program is no longer on. */
static void interface_end(struct xdp_plane *plane, struct xdp_interface *interface, const char *why)
{
	interface->lost = true;
	snprintf(interface->why, sizeof(interface->why), "%s", why);
	log_warn("interface %s: %s; what comes in there is summed in user space", interface->name,
	         interface->why);
	plane->n_lost++;
}

static void interface_look(struct xdp_plane *plane, unsigned i)
{
	struct xdp_interface *interface = &plane->interfaces[i];
	struct bpf_link_info info = { 0 };
	uint32_t length = sizeof(info);
	char name[IF_NAMESIZE];

	if (interface->lost)
		return;
	if (atomic_load(&interface->asked) == XDP_ASKED) {
		interface->left = true;
		bpf_link_detach(plane->links[i]);
		interface_end(plane, interface, interface->asked_why);
	} else if (!bpf_obj_get_info_by_fd(plane->links[i], &info, &length) && !info.xdp.ifindex) {
		interface_end(plane, interface,
		              if_indextoname(interface->ifindex, name)
		                      ? "somebody detached the program"
		                      : "the interface is gone");
	}
}

bool xdp_look(struct xdp_plane *plane)
{
	for (unsigned i = 0; i < plane->n_links; i++)
		interface_look(plane, i);
	return plane->n_lost < plane->n_links;
}

static struct xdp_interface *interface_of(struct xdp_handle *handle, unsigned child)
{
	struct xdp_plane *plane = handle->plane;

	for (unsigned i = 0; i < plane->n_links; i++)
		if (plane->interfaces[i].ifindex == handle->lane->routes[child].ifindex)
			return &plane->interfaces[i];
	return NULL;
}

void xdp_handle_heard(struct xdp_handle *handle, unsigned child)
{
	struct xdp_interface *interface = interface_of(handle, child);

	if (interface)
		atomic_store(&interface->heard, true);
}

void xdp_handle_leave(struct xdp_handle *handle, unsigned child, const char *why)
{
	struct xdp_interface *interface = interface_of(handle, child);
	int none = 0;

	if (!interface || atomic_load(&interface->heard) ||
	    !atomic_compare_exchange_strong(&interface->asked, &none, XDP_ASKING))
		return;
	snprintf(interface->asked_why, sizeof(interface->asked_why), "%s", why);
	atomic_store(&interface->asked, XDP_ASKED);
	atomic_fetch_add(&handle->plane->n_left, 1);
}

bool xdp_handle_is_cut(struct xdp_handle *handle, uint64_t children, char *why, size_t size)
{
	if (!atomic_load_explicit(&handle->plane->n_left, memory_order_relaxed))
		return false;
	for (; children; children &= children - 1) {
		const struct xdp_interface *interface =
			interface_of(handle, (unsigned)__builtin_ctzll(children));
		bool asked = interface && atomic_load(&interface->asked) == XDP_ASKED;

		if (!asked && interface)
			continue;
		snprintf(why, size, "%s",
		         asked ? interface->asked_why
		               : "packets of a child come by an interface without "
		                 "the XDP program");
		return true;
	}
	return false;
}
