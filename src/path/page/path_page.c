/* SPDX-License-Identifier: Apache-2.0 */
#include "path/page/path_page.h"

#include "base/random_bits.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

_Static_assert(sizeof(struct path_page) % 8 == 0, "the checksum is over words");

struct path_address path_address_of(const struct udp_address *address)
{
	struct path_address wire = { .port = udp_port(address) };
	size_t size;
	const void *raw = udp_raw(address, &size);

	memcpy(wire.raw, raw, size);
	wire.size = (uint8_t)size;
	return wire;
}

void path_address_of_socket(int fd, struct path_address *from, struct path_address *to)
{
	struct udp_address own = { .length = sizeof(own.storage) }, peer = own;

	*from = *to = (struct path_address){ 0 };
	if (getsockname(fd, (void *)&own.storage, &own.length) ||
	    getpeername(fd, (void *)&peer.storage, &peer.length))
		return;
	*from = path_address_of(&own);
	*to = path_address_of(&peer);
}

static uint64_t page_check(const struct path_page *page)
{
	uint64_t sum = 0, word;

	for (size_t at = 0; at < sizeof(*page); at += sizeof(word)) {
		if (at == offsetof(struct path_page, check))
			continue;
		memcpy(&word, (const uint8_t *)page + at, sizeof(word));
		sum = bits_mix((sum + RANDOM_STEP) ^ word);
	}
	return sum;
}

void path_page_seal(struct path_page *page)
{
	page->magic = PAGE_MAGIC;
	page->version = PAGE_VERSION;
	page->check = page_check(page);
}

static bool path_is_good(const struct page_path *path)
{
	unsigned size = path->from.size;

	return (size == 0 || size == 4 || size == 16) && path->to.size == size &&
	       path->state <= PATH_DEAD && path->is_open <= 1 && path->loss >= 0 && path->loss <= 1;
}

static bool peer_is_good(const struct page_peer *peer)
{
	if (peer->role >= PAGE_ROLES || peer->found >= FOUND_END || peer->n > PATHS_MAX)
		return false;
	for (unsigned i = 0; i < peer->n; i++)
		if (!path_is_good(&peer->paths[i]))
			return false;
	return true;
}

bool path_page_is_good(const struct path_page *page, size_t bytes)
{
	if (bytes != sizeof(*page) || page->magic != PAGE_MAGIC || page->version != PAGE_VERSION ||
	    page->check != page_check(page) || page->n_peers > PAGE_PEERS)
		return false;
	for (unsigned i = 0; i < page->n_peers; i++)
		if (!peer_is_good(&page->peers[i]))
			return false;
	return true;
}

bool page_path_exists(const struct page_path *path)
{
	return path->from.size != 0;
}

const char *page_path_state(const struct page_path *path)
{
	return path->is_open ? path_state_name(path->state) : "unused";
}

const char *page_peer_direction(const struct page_peer *peer)
{
	return peer->role == PAGE_PREVIOUS_RANK ? "from" : "to";
}

const char *page_peer_name(const struct page_peer *peer, char out[PAGE_TEXT])
{
	if (peer->role == PAGE_AGGREGATOR)
		return strcpy(out, "the aggregator");
	snprintf(out, PAGE_TEXT, "rank %u", peer->rank);
	return out;
}

const char *page_address_text(const struct path_address *address, char out[PAGE_TEXT])
{
	struct udp_address full;

	udp_from_raw(address->raw, address->size, address->port, &full);
	return udp_text(&full, out, PAGE_TEXT);
}

const char *page_hops_text(const struct page_path *path, char out[VIRTUAL_HOPS_TEXT])
{
	struct virtual_path full;

	udp_from_raw(path->from.raw, path->from.size, path->from.port, &full.from);
	memcpy(full.hops, path->hops, sizeof(full.hops));
	return virtual_path_hops(&full, out);
}
