/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/transport/lane_page.h"

#include "path/page/page_folder.h"
#include "worker/transport/lane_paths.h"

#include <stdlib.h>
#include <string.h>

struct lane_page {
	struct page_file *file;
	pthread_mutex_t lock;
	struct path_page page; /* each lane writes its own path */
};

void lane_page_open(struct trib_comm *comm)
{
	const struct comm_config *config = &comm->config;
	struct lane_page *page;

	if (comm->paths.n < 2 || !(page = calloc(1, sizeof(*page))))
		return;
	page->file = page_open();
	if (!page->file) {
		free(page);
		return;
	}
	pthread_mutex_init(&page->lock, NULL);
	page->page.job = config->job;
	page->page.rank = (uint32_t)config->rank;
	page->page.size = (uint32_t)config->size;
	page->page.key = comm_key(config);
	page->page.n_peers = 1;
	page->page.peers[0].role = PAGE_AGGREGATOR;
	page->page.peers[0].found = comm->paths.found;
	comm->lane_page = page;
}

void lane_page_close(struct trib_comm *comm)
{
	struct lane_page *page = comm->lane_page;

	if (!page)
		return;
	comm->lane_page = NULL;
	page_close(page->file);
	pthread_mutex_destroy(&page->lock);
	free(page);
}

static enum path_state lane_state(const struct lane *lane, uint64_t now, double loss)
{
	if (lane_paths_is_silent(lane, now) || lane_paths_is_lost(lane))
		return PATH_DEAD;
	return loss >= MONITOR_HEAVY_LOSS ? PATH_CONGESTED : PATH_GOOD;
}

static void show_lane(const struct lane *lane, uint64_t now, struct page_path *path)
{
	const struct stream *stream = &lane->stream;
	const struct stream_stats *stats = &stream->stats;
	uint64_t lost = stats->lost * stream->payload, all = stats->judged * stream->payload;
	uint64_t judged = all - path->sent - path->lost; /* since the last time */
	const struct lane_paths *paths = &lane->comm->paths;

	if (judged)
		path->loss = (double)(lost - path->lost) / (double)judged;
	path->lost = lost;
	path->sent = all - lost;
	path->received = stats->results * stream->payload;
	path->state = (uint8_t)lane_state(lane, now, path->loss);
	path->is_open = 1;
	path->left = lane->times_left;
	path->carries_bps = lane->meter.bps;
	path->rtt_ns = stream->rtt;
	path_address_of_socket(lane->fd, &path->from, &path->to);
	memset(path->hops, 0, sizeof(path->hops));
	if (lane->path < paths->n)
		memcpy(path->hops, paths->paths[lane->path].hops, sizeof(path->hops));
}

void lane_page_show(struct lane *lane, uint64_t now)
{
	struct lane_page *page = lane->comm->lane_page;
	struct page_peer *peer;

	if (!page || lane->trunk != lane->comm->trunks || lane->index >= PATHS_MAX ||
	    now - lane->shown_at < PAGE_EVERY_NS)
		return;
	lane->shown_at = now;
	peer = &page->page.peers[0];
	pthread_mutex_lock(&page->lock);
	show_lane(lane, now, &peer->paths[lane->index]);
	if (peer->n <= lane->index)
		peer->n = lane->index + 1;
	if (!lane->index)
		page_write(page->file, &page->page, now);
	pthread_mutex_unlock(&page->lock);
}
