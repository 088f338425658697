/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_folder: the files of pages. The folder is TRIB_PAGES, by default /run/tributary/paths for
 * root and /tmp/tributary-UID for others. Only its owner may use it.
 *
 * A process holds a lock on its file as long as it lives. If a reader gets the lock, the process
 * has ended, and the reader removes the file. A write is one call; if a reader comes in between,
 * the checksum is wrong, and it reads again.
 */
#ifndef TRIB_PATH_PAGE_PAGE_FOLDER_H
#define TRIB_PATH_PAGE_PAGE_FOLDER_H

#include "base/status.h"
#include "path/page/path_page.h"

#define PAGE_EVERY_NS 1000000000ull /* 1 s between two writes of a page */

struct page_file;

/* NULL: there are no pages, and the log says why. Work goes on without. */
struct page_file *page_open(void);
/* Fills in the process, the time and the rates, and writes the page. */
void page_write(struct page_file *file, struct path_page *page, uint64_t now);
/* Removes the file. */
void page_close(struct page_file *file);

/*
 * Calls `visit` for the page of each process that lives. Root reads those of all users, unless
 * TRIB_PAGES names one folder. TRIB_ERR_ARGUMENT: TRIB_PAGES is off.
 */
trib_status page_each(void (*visit)(void *context, const struct path_page *page), void *context);

#endif
