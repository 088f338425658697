/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that other processes have written. If a page counts as good, all of it can be printed. */
#include "fuzz.h"
#include "path/page/path_page.h"

#include <string.h>

static void print(const struct page_path *path)
{
	char text[VIRTUAL_HOPS_TEXT];

	demand(strlen(page_path_state(path)) > 0);
	if (!page_path_exists(path))
		return;
	demand(strlen(page_address_text(&path->from, text)) < PAGE_TEXT);
	demand(strlen(page_address_text(&path->to, text)) < PAGE_TEXT);
	demand(strlen(page_hops_text(path, text)) < VIRTUAL_HOPS_TEXT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct path_page page = { 0 };

	memcpy(&page, data, size < sizeof(page) ? size : sizeof(page));
	path_page_is_good(&page, size);
	path_page_seal(&page); /* or hardly any would pass the checksum */
	if (!path_page_is_good(&page, sizeof(page)))
		return 0;
	for (unsigned p = 0; p < page.n_peers; p++) {
		demand(strlen(page_peer_direction(&page.peers[p])) > 0);
		demand(strlen(path_found_name(page.peers[p].found)) > 0);
		for (unsigned i = 0; i < page.peers[p].n; i++)
			print(&page.peers[p].paths[i]);
	}
	return 0;
}
