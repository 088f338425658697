/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. Nobody else includes it. */
#ifndef TRIB_PLANE_XDP_XDP_INTERNAL_H
#define TRIB_PLANE_XDP_XDP_INTERNAL_H

#include "plane/xdp/xdp.h"

#include <stdatomic.h>
#include <unistd.h>

#include "plane.skel.h" /* after the structs that it uses */

struct xdp_queue;

/* The program of an engine; object NULL: not loaded. */
struct xdp_engine {
	struct bpf_object *object;
	int cells; /* the map of all lanes' cells */
};

struct xdp_plane {
	struct plane_bpf *bpf;
	struct bpf_object *tc;  /* the program at the hook tc; NULL: XDP is used */
	struct xdp_lane *lanes; /* array of all lanes, mapped */
	uint32_t payload;       /* of the longest packet that a program sums */
	uint32_t room;          /* of a cell; at tc, tribd sums longer packets in the same cells */
	int links[XDP_INTERFACES_MAX];
	struct xdp_interface interfaces[XDP_INTERFACES_MAX]; /* one per link */
	unsigned n_links;
	bool generic;            /* at least one interface is in generic mode */
	unsigned n_lost;         /* interfaces that the program is no longer on */
	_Atomic unsigned n_left; /* interfaces that lanes asked to leave */
	_Atomic unsigned pools;
	struct xdp_settings settings;
	struct xdp_engine engines[ENGINES_MAX];
	struct xdp_queue
		*queues[WIRE_LANES_MAX]; /* NULL: packets for the daemon arrive by the socket */
};

struct xdp_handle {
	struct xdp_plane *plane;
	struct xdp_lane *lane;
	uint32_t index;
	uint32_t children;
	void *cells;
	size_t bytes;
	int pool, fan;
	struct engine_pool engine;
	size_t engine_bytes;
	int engine_cells; /* its map; -1: none */
	bool started;
	struct xdp_uplink uplink; /* port 0: no parent */
	struct udp_address group;
	uint64_t hears;
	uint32_t fan_ifindex[XDP_ROUTES]; /* interface of each place of the fan; 0: empty */
};

/* frame_fronts.c */
/* Sets lengths and checksums of a route to what the program expects. */
void route_settle(struct xdp_route *route);
/* Makes the route back to the frame's sender. False: the front has another form. */
bool route_reverse(struct xdp_route *route, const struct xdp_seen *seen);
/* The frame's sender, as a socket would name it. `six`: the socket has an IPv6 address. */
bool seen_source(const struct xdp_seen *seen, bool six, struct udp_address *out);
/* Does the frame's sender have this address and port? */
bool seen_is_from(const struct xdp_seen *seen, const struct udp_address *from);
/* handle_routes.c */
/* The program takes the lane's packets if the lane is started and results can leave. */
void handle_activate(struct xdp_handle *handle);
void handle_forget_parent(struct xdp_handle *handle);
/* engine_cells.c */
/* The cells of the lane's engine. Loads its program before the first lane of it. */
trib_status handle_engine_open(struct xdp_handle *handle, const struct xdp_lane_options *options);
void handle_engine_close(struct xdp_handle *handle);
void engines_close(struct xdp_plane *plane);
/* Gives the object the plane's maps, and its settings. Gives 0, or -errno. */
int object_share_maps(struct xdp_plane *plane, struct bpf_object *object);
/* tc_hook.c */
/* Loads the program of the hook tc. Gives 0, or -errno. */
int tc_load(struct xdp_plane *plane);
int tc_program(const struct xdp_plane *plane);
/* The action of XDP that this one of tc is like. */
uint32_t tc_action(uint32_t action);
/* The map of engines' programs at that hook. */
int tc_engines(const struct xdp_plane *plane);
/* queue.c */
void queues_open(struct xdp_plane *plane, const struct xdp_options *options);
void queues_close(struct xdp_plane *plane);

static inline size_t page_up(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

#endif
