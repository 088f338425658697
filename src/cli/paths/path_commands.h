/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths owns what trib shows of the paths that processes of this host use. It reads their pages
 * (path/page) and prints. It must not touch the processes.
 */
#ifndef TRIB_CLI_PATHS_PATH_COMMANDS_H
#define TRIB_CLI_PATHS_PATH_COMMANDS_H

#include "path/page/path_page.h"

/* trib top --paths, and trib explain --paths [JOB]; exit codes. `job` NULL: all. */
int top_paths(double every, bool once, bool json);
int explain_paths(const char *job, bool json);

struct page_list {
	struct path_page *pages; /* by job, key and rank; free them */
	size_t n;
};

/* The pages of this host, those of one job if `job` is not -1. */
trib_status page_list_read(struct page_list *list, long job);
/* As JSON, one page a line. */
void page_list_json(const struct page_list *list);

#endif
