/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/paths/path_commands.h"
#include "path/page/page_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct reading {
	struct page_list *list;
	long job;
	bool no_memory;
};

static void take(void *context, const struct path_page *page)
{
	struct reading *reading = context;
	struct page_list *list = reading->list;
	struct path_page *more;

	if (reading->job >= 0 && page->job != (unsigned long)reading->job)
		return;
	more = realloc(list->pages, (list->n + 1) * sizeof(*more));
	if (!more) {
		reading->no_memory = true;
		return;
	}
	list->pages = more;
	more[list->n++] = *page;
}

static int by_rank(const void *a, const void *b)
{
	const struct path_page *one = a, *two = b;

	if (one->job != two->job)
		return one->job < two->job ? -1 : 1;
	if (one->key != two->key)
		return one->key < two->key ? -1 : 1;
	if (one->rank != two->rank)
		return one->rank < two->rank ? -1 : 1;
	return one->pid < two->pid ? -1 : one->pid > two->pid;
}

trib_status page_list_read(struct page_list *list, long job)
{
	struct reading reading = { list, job, false };
	trib_status status;

	*list = (struct page_list){ 0 };
	status = page_each(take, &reading);
	if (status == TRIB_OK && reading.no_memory)
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu pages", list->n);
	if (status != TRIB_OK) {
		free(list->pages);
		return status;
	}
	if (list->n)
		qsort(list->pages, list->n, sizeof(*list->pages), by_rank);
	return TRIB_OK;
}

static void path_json(const struct page_path *path, unsigned i, const char *between)
{
	char from[PAGE_TEXT], to[PAGE_TEXT], hops[VIRTUAL_HOPS_TEXT];

	printf("%s{\"path\":%u,\"state\":\"%s\",\"from\":\"%s\",\"to\":\"%s\",\"hops\":\"%s\",",
	       between, i, page_path_state(path), page_address_text(&path->from, from),
	       page_address_text(&path->to, to), page_hops_text(path, hops));
	printf("\"rate_bps\":%" PRIu64 ",\"carries_bps\":%" PRIu64 ",\"latency_ns\":%" PRIu64
	       ",\"least_latency_ns\":%" PRIu64 ",\"loss\":%.6f,",
	       path->rate_bps, path->carries_bps, path->rtt_ns, path->least_rtt_ns, path->loss);
	printf("\"sent\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"received\":%" PRIu64 ",\"left\":%u}",
	       path->sent, path->lost, path->received, path->left);
}

static void page_json(const struct path_page *page)
{
	printf("{\"job\":%u,\"key\":\"%" PRIx64 "\",\"rank\":%u,\"size\":%u,\"pid\":%u,\"peers\":[",
	       page->job, page->key, page->rank, page->size, page->pid);
	for (unsigned p = 0; p < page->n_peers; p++) {
		const struct page_peer *peer = &page->peers[p];
		const char *between = "";
		char name[PAGE_TEXT];

		printf("%s{\"direction\":\"%s\",\"peer\":\"%s\",\"found\":\"%s\",\"paths\":[",
		       p ? "," : "", page_peer_direction(peer), page_peer_name(peer, name),
		       path_found_name(peer->found));
		for (unsigned i = 0; i < peer->n; i++) {
			if (!page_path_exists(&peer->paths[i]))
				continue;
			path_json(&peer->paths[i], i, between);
			between = ",";
		}
		printf("]}");
	}
	printf("]}\n");
}

void page_list_json(const struct page_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		page_json(&list->pages[i]);
}
