/* SPDX-License-Identifier: Apache-2.0 */
/* trib top --paths: the rate, latency, loss and state of each path, once a second. */
#include "cli/paths/path_commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void show_path(const struct page_path *path, unsigned i)
{
	char from[PAGE_TEXT], to[PAGE_TEXT], hops[VIRTUAL_HOPS_TEXT];

	printf("  %4u  %-9s  %-22s %-22s %9.1f %9.1f %8.3f %8.3f %6.2f %% %5u  %s\n", i,
	       page_path_state(path), page_address_text(&path->from, from),
	       page_address_text(&path->to, to), (double)path->rate_bps / 1e6,
	       (double)path->carries_bps / 1e6, (double)path->rtt_ns / 1e6,
	       (double)path->least_rtt_ns / 1e6, path->loss * 100, path->left,
	       page_hops_text(path, hops));
}

static void show_page(const struct path_page *page)
{
	for (unsigned p = 0; p < page->n_peers; p++) {
		const struct page_peer *peer = &page->peers[p];
		char name[PAGE_TEXT];

		printf("job %u, rank %u of %u (process %u), %s %s:\n", page->job, page->rank,
		       page->size, page->pid, page_peer_direction(peer),
		       page_peer_name(peer, name));
		printf("  %4s  %-9s  %-22s %-22s %9s %9s %8s %8s %8s %5s  %s\n", "PATH", "STATE",
		       "FROM", "TO", "Mb/s", "CARRIES", "MS", "LEAST MS", "LOSS", "LEFT",
		       "ROUTERS");
		for (unsigned i = 0; i < peer->n; i++)
			if (page_path_exists(&peer->paths[i]))
				show_path(&peer->paths[i], i);
	}
}

static void show(const struct page_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		show_page(&list->pages[i]);
	if (!list->n)
		printf("No process of this host uses paths.\n");
}

int top_paths(double every, bool once, bool json)
{
	for (;;) {
		struct page_list list;

		if (page_list_read(&list, -1) != TRIB_OK) {
			fprintf(stderr, "trib top: %s\n", trib_last_error());
			return EXIT_FAILURE;
		}
		if (isatty(STDOUT_FILENO) && !once && !json)
			printf("\033[H\033[J");
		if (json)
			page_list_json(&list);
		else
			show(&list);
		fflush(stdout);
		free(list.pages);
		if (once || json)
			return EXIT_SUCCESS;
		usleep((useconds_t)(every * 1e6));
	}
}
