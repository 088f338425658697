/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of paths: what is written is read; hostile files, links and ended processes are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/page/page_folder.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND 1000000000ull

static char folder[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_path_page.XXXXXX");
	return !mkdtemp(folder) || setenv("TRIB_PAGES", folder, 1);
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static struct path_page some_page(void)
{
	struct path_page page = { .job = 7, .rank = 2, .size = 3, .key = 5, .n_peers = 2 };
	struct page_path *path = &page.peers[0].paths[0];

	page.peers[1].role = PAGE_PREVIOUS_RANK;
	page.peers[0].n = 1;
	*path = (struct page_path){ .is_open = 1, .state = PATH_GOOD, .sent = 1000, .loss = 0.5 };
	path->from = path->to = (struct path_address){ .raw = { 10, 1, 2, 3 }, .size = 4 };
	path->to.port = 7700;
	path->hops[1].raw[0] = 9;
	return page;
}

struct seen {
	unsigned n;
	struct path_page last;
};

static void see(void *context, const struct path_page *page)
{
	struct seen *seen = context;

	seen->n++;
	seen->last = *page;
}

static struct seen look(void)
{
	struct seen seen = { 0 };

	assert_int_equal(page_each(see, &seen), TRIB_OK);
	return seen;
}

static void in_folder(char out[128], const char *name)
{
	snprintf(out, 128, "%s/%s", folder, name);
}

static void put(const char *name, const void *data, size_t bytes)
{
	char path[128];
	FILE *file;

	in_folder(path, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

static bool exists(const char *name)
{
	char path[128];
	struct stat about;

	in_folder(path, name);
	return lstat(path, &about) == 0;
}

static void test_written_and_read(void **state)
{
	struct path_page page = some_page();
	struct page_file *file = page_open();
	char text[VIRTUAL_HOPS_TEXT];
	struct seen seen;

	(void)state;
	assert_non_null(file);
	assert_int_equal(look().n, 0); /* it is empty */
	page_write(file, &page, SECOND);
	seen = look();
	assert_int_equal(seen.n, 1);
	assert_memory_equal(&seen.last, &page, sizeof(page));
	assert_int_equal(seen.last.pid, getpid());
	assert_int_equal(seen.last.peers[0].paths[0].rate_bps, 0);
	assert_string_equal(page_address_text(&page.peers[0].paths[0].to, text), "10.1.2.3:7700");
	assert_string_equal(page_hops_text(&page.peers[0].paths[0], text), "9.0.0.0");
	page.peers[0].paths[0].sent += 500;
	page.peers[0].paths[0].received += 500;
	page_write(file, &page, 3 * SECOND);
	assert_int_equal(look().last.peers[0].paths[0].rate_bps, 4000);
	page_close(file);
	assert_int_equal(look().n, 0);
}

/* A process that ends without closing leaves its page; the first reader removes it. */
static void test_ended_process(void **state)
{
	int told[2], wait_status;
	struct path_page page = some_page();
	pid_t child;
	char byte;

	(void)state;
	assert_int_equal(pipe(told), 0);
	child = fork();
	if (child == 0) {
		struct page_file *file = page_open();

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* if a check fails, nobody else ends it */
		if (file)
			page_write(file, &page, SECOND);
		(void)!write(told[1], "x", 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(told[0], &byte, 1), 1);
	assert_int_equal(look().n, 1);
	kill(child, SIGKILL);
	waitpid(child, &wait_status, 0);
	assert_int_equal(look().n, 0);
	assert_int_equal(rmdir(folder), 0); /* nothing is left in it */
	assert_int_equal(mkdir(folder, 0700), 0);
	close(told[0]);
	close(told[1]);
}

/* Files that are no pages are neither shown nor removed. */
static void test_hostile_files(void **state)
{
	struct path_page page = some_page();
	char path[128], other[128];

	(void)state;
	path_page_seal(&page);
	put("empty", "", 0);
	put("short", &page.magic, 4);
	page.magic++;
	put("foreign", &page, sizeof(page));
	in_folder(other, "folder");
	assert_int_equal(mkdir(other, 0700), 0);
	in_folder(other, "pipe");
	assert_int_equal(mkfifo(other, 0600), 0);
	/* A link to a page of a process that has ended: the page must not be followed to. */
	page.magic--;
	put(".page", &page, sizeof(page));
	in_folder(other, ".page");
	in_folder(path, "link");
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(look().n, 0);
	assert_true(exists("empty") && exists("short") && exists("foreign") && exists("folder") &&
	            exists("pipe") && exists("link") && exists(".page"));
}

/* Others could put pages there, or remove ours. */
static void test_unsafe_folders(void **state)
{
	char real[128], link[128];

	(void)state;
	assert_int_equal(chmod(folder, 0777), 0);
	assert_null(page_open());
	assert_int_equal(chmod(folder, 0700), 0);
	in_folder(real, "real");
	in_folder(link, "link");
	assert_int_equal(mkdir(real, 0700), 0);
	assert_int_equal(symlink(real, link), 0);
	setenv("TRIB_PAGES", link, 1);
	assert_null(page_open());
	setenv("TRIB_PAGES", "/proc/none", 1);
	assert_null(page_open());
	assert_int_equal(look().n, 0);
	setenv("TRIB_PAGES", "off", 1);
	assert_null(page_open());
	assert_int_equal(page_each(see, NULL), TRIB_ERR_ARGUMENT);
}

static bool good(struct path_page page)
{
	path_page_seal(&page);
	return path_page_is_good(&page, sizeof(page));
}

static void test_values(void **state)
{
	struct path_page page = some_page(), bad = page;

	(void)state;
	assert_true(good(page));
	path_page_seal(&page);
	assert_false(path_page_is_good(&page, sizeof(page) - 1));
	for (size_t i = 0; i < sizeof(page); i += 3) { /* each byte counts */
		((uint8_t *)&page)[i] ^= 0x40;
		assert_false(path_page_is_good(&page, sizeof(page)));
		((uint8_t *)&page)[i] ^= 0x40;
	}
	bad.n_peers = PAGE_PEERS + 1;
	assert_false(good(bad));
	bad = page;
	bad.peers[1].n = PATHS_MAX + 1;
	assert_false(good(bad));
	bad = page;
	bad.peers[0].role = PAGE_ROLES;
	assert_false(good(bad));
	bad = page;
	bad.peers[0].found = FOUND_END;
	assert_false(good(bad));
	bad = page;
	bad.peers[0].paths[0].state = PATH_DEAD + 1;
	assert_false(good(bad));
	bad = page;
	bad.peers[0].paths[0].from.size = 17;
	assert_false(good(bad));
	bad = page;
	bad.peers[0].paths[0].to.size = 16;
	assert_false(good(bad));
	bad = page;
	bad.peers[0].paths[0].loss = NAN;
	assert_false(good(bad));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_written_and_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ended_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unsafe_folders, set_up, tear_down),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
