/* SPDX-License-Identifier: Apache-2.0 */
/* trib explain --paths: which paths jobs of this host use, and why. */
#include "cli/paths/path_commands.h"

#include <stdio.h>
#include <stdlib.h>

/* Why there are these paths. */
static const char *why_found(const struct page_peer *peer)
{
	static const char *const reasons[FOUND_END] = {
		[FOUND_OFF] = "TRIB_PATHS=off allows only one",
		[FOUND_ADDRESSES] = "TRIB_PATHS=addresses makes each pair of addresses a path",
		[FOUND_COMPUTED] = "TRIB_PATHS=xor computes them from the hash of the fabric",
		[FOUND_NO_ROUTER] = "no router is on the way that could choose another",
		[FOUND_NEAR] = "the peer is behind the first router, so there is no other",
		[FOUND_MUTE] = "no router answers probes, so each pair of addresses counts as one",
		[FOUND_SO_FAR] = "probes have found that their routers differ, and look for more",
		[FOUND_ALL] = "probes have found that their routers differ",
		[FOUND_GIVEN] = "the program has chosen them",
		[FOUND_BY_PEER] = "that rank has chosen them",
	};

	if (peer->n == 1 && peer->found == FOUND_SO_FAR)
		return "probes have found no other routers so far";
	if (peer->n == 1 && peer->found == FOUND_ALL)
		return "probes have found no other routers";
	return reasons[peer->found];
}

/* What a path is used for. */
static const char *why_used(const struct page_path *path)
{
	static const char *const uses[] = {
		[PATH_UNKNOWN] = "has not answered yet, so it gets probes only",
		[PATH_GOOD] = "is good",
		[PATH_CONGESTED] = "is congested (long queues, or loss), so it counts half",
		[PATH_DEAD] = "is dead: it does not answer, so it gets probes only",
	};

	return path->is_open ? uses[path->state] : "could not be opened; the log says why";
}

static void tell_estimates(const struct page_path *path)
{
	if (path->carries_bps)
		printf(" It carries about %.4g Mb/s.", (double)path->carries_bps / 1e6);
	if (path->rtt_ns)
		printf(" A round trip takes %.3g ms, %.3g ms at best.", (double)path->rtt_ns / 1e6,
		       (double)path->least_rtt_ns / 1e6);
	if (path->loss >= 0.0005)
		printf(" It loses %.1f %%.", path->loss * 100);
}

static void tell_path(const struct page_path *path, unsigned i)
{
	char from[PAGE_TEXT], to[PAGE_TEXT], hops[VIRTUAL_HOPS_TEXT];

	page_hops_text(path, hops);
	printf("    Path %u, %s to %s%s%s, %s.", i, page_address_text(&path->from, from),
	       page_address_text(&path->to, to), *hops ? " by " : "", hops, why_used(path));
	if (path->state != PATH_DEAD)
		tell_estimates(path);
	if (path->left)
		printf(" It was dead %u time%s.", path->left, path->left == 1 ? "" : "s");
	putchar('\n');
}

static unsigned count(const struct page_peer *peer)
{
	unsigned n = 0;

	for (unsigned i = 0; i < peer->n; i++)
		n += page_path_exists(&peer->paths[i]);
	return n;
}

static void tell_page(const struct path_page *page)
{
	printf("Job %u, rank %u of %u (process %u):\n", page->job, page->rank, page->size,
	       page->pid);
	for (unsigned p = 0; p < page->n_peers; p++) {
		const struct page_peer *peer = &page->peers[p];
		unsigned n = count(peer);
		char name[PAGE_TEXT];

		printf("  There %s %u path%s %s %s: %s.\n", n == 1 ? "is" : "are", n,
		       n == 1 ? "" : "s", page_peer_direction(peer), page_peer_name(peer, name),
		       why_found(peer));
		for (unsigned i = 0; i < peer->n; i++)
			if (page_path_exists(&peer->paths[i]))
				tell_path(&peer->paths[i], i);
	}
}

int explain_paths(const char *job, bool json)
{
	char *end = NULL;
	long number = job ? strtol(job, &end, 10) : -1;
	struct page_list list;

	if (job && (end == job || *end || number < 0 || number > UINT16_MAX)) {
		fprintf(stderr, "trib explain: %s is not a job, which is 0 to 65535\n", job);
		return EXIT_FAILURE;
	}
	if (page_list_read(&list, number) != TRIB_OK) {
		fprintf(stderr, "trib explain: %s\n", trib_last_error());
		return EXIT_FAILURE;
	}
	if (json)
		page_list_json(&list);
	else if (!list.n)
		printf("No process of this host uses paths%s%s.\n", job ? " for job " : "",
		       job ? job : "");
	else
		for (size_t i = 0; i < list.n; i++)
			tell_page(&list.pages[i]);
	free(list.pages);
	return EXIT_SUCCESS;
}
