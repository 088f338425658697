/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page owns what a process tells other processes of its host about its paths: the layout of a page
 * (path_page.h), and the folder with the pages of all processes (page_folder.h). It must not touch
 * channels or lanes: they fill pages, and commands and metrics read them.
 *
 * A page is read on the host that wrote it, so it has the byte order of the host. If the layout
 * changes, so does PAGE_VERSION.
 */
#ifndef TRIB_PATH_PAGE_PATH_PAGE_H
#define TRIB_PATH_PAGE_PATH_PAGE_H

#include "path/balance/monitor.h"
#include "path/virtual/discovery.h"
#include "wire/path_packet.h"

#include <stddef.h>

#define PAGE_MAGIC 0x6567617062697274ull /* "tribpage" */
#define PAGE_VERSION 1u
#define PAGE_PEERS 2u

struct page_path {
	struct path_address from, to; /* both of one family; size 0: unknown */
	struct path_hop hops[VIRTUAL_HOPS];
	uint8_t state;   /* enum path_state */
	uint8_t is_open; /* 0: it could not be opened, and is not used */
	uint16_t unused;
	uint32_t left;        /* times that it was left because it was dead */
	uint64_t sent;        /* bytes of data that have arrived at the peer */
	uint64_t lost;        /* bytes of data that were sent and did not arrive */
	uint64_t received;    /* bytes of data */
	uint64_t rate_bps;    /* sent and received since the page before; page_write computes it */
	uint64_t carries_bps; /* estimate of what the path carries; 0: unknown */
	uint64_t rtt_ns, least_rtt_ns; /* 0: unknown */
	double loss;                   /* share of the bytes, 0 to 1 */
};

enum page_role { PAGE_NEXT_RANK, PAGE_PREVIOUS_RANK, PAGE_AGGREGATOR, PAGE_ROLES };

struct page_peer {
	uint32_t role;  /* enum page_role */
	uint32_t rank;  /* 0 for an aggregator */
	uint32_t found; /* enum path_found: why there are these paths */
	uint32_t n;
	struct page_path paths[PATHS_MAX];
};

struct path_page {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;   /* as the process sees it */
	uint64_t check; /* over the page with this field 0 */
	uint64_t at;    /* when it was written, CLOCK_MONOTONIC in ns */
	uint32_t job, rank, size;
	uint32_t n_peers;
	uint64_t key; /* of the communicator */
	struct page_peer peers[PAGE_PEERS];
};

struct path_address path_address_of(const struct udp_address *address);
/* Both ends of a connected socket. If they are unknown, their sizes are 0. */
void path_address_of_socket(int fd, struct path_address *from, struct path_address *to);

/* Completes a page: magic, version, checksum. */
void path_page_seal(struct path_page *page);
/* Is this a page of this version, with values that can be used? It may be hostile. */
bool path_page_is_good(const struct path_page *page, size_t bytes);

/* Is it a path? The side that is called may have gaps: paths on which it was not called. */
bool page_path_exists(const struct page_path *path);
/* "good", "unused", ... */
const char *page_path_state(const struct page_path *path);
/* "to" the next rank or an aggregator, or "from" the previous rank. */
const char *page_peer_direction(const struct page_peer *peer);

#define PAGE_TEXT 64u
/* "rank 3" or "the aggregator" */
const char *page_peer_name(const struct page_peer *peer, char out[PAGE_TEXT]);
const char *page_address_text(const struct path_address *address, char out[PAGE_TEXT]);
/* The known routers, with blanks between. */
const char *page_hops_text(const struct page_path *path, char out[VIRTUAL_HOPS_TEXT]);

#endif
