/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/settings.h"
#include "tribmpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPEN_MPI
#define BUILT_FOR "Open MPI"
#define OTHER_LIBRARY "libtribmpi-mpich.so"
#else
#define BUILT_FOR "MPICH"
#define OTHER_LIBRARY "libtribmpi-openmpi.so"
#endif

/* With another MPI's handles, every call would go wrong. */
static void check_library(void)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
	int length;

	PMPI_Get_library_version(version, &length);
	if (strstr(version, BUILT_FOR))
		return;
	fprintf(stderr,
	        "tributary: this adapter is built for " BUILT_FOR
	        ", and the program runs on %.*s: preload " OTHER_LIBRARY "\n",
	        (int)strcspn(version, ",:\n"), version);
	exit(1);
}

/* What the user has named; NULL: nothing, and the ranks sum among themselves. */
static const char *place_text(void)
{
	static const enum setting_id places[] = { SETTING_TREES, SETTING_AGGREGATOR,
		                                  SETTING_CONTROLLER };

	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (setting_text(places[i], NULL))
			return setting_text(places[i], NULL);
	return NULL;
}

/* A wrong setting turns the adapter off, on all ranks: they compare what they want. */
static void read_settings(void)
{
	const char *level = setting_text(SETTING_LOG, NULL);
	char prefix[48];

	snprintf(prefix, sizeof(prefix), "tributary: MPI rank %d", adapter.rank);
	log_set_prefix(prefix);
	if (level)
		log_set_level_name(level);
	if (setting_count(SETTING_MPI, &adapter.use) != TRIB_OK ||
	    setting_count(SETTING_MPI_EXACT, &adapter.exact) != TRIB_OK ||
	    setting_seconds(SETTING_TIMEOUT, &adapter.timeout_s) != TRIB_OK) {
		log_error("%s", trib_last_error());
		adapter.use = MPI_USE_OFF;
		adapter.timeout_s = 30;
	}
	if (adapter.use == MPI_USE_AUTO && !place_text())
		adapter.least = ALONE_BYTES;
}

/* Without Tributary. If the user insists on it, the job ends. */
static void stand_aside(const char *why)
{
	adapter.is_active = false;
	if (adapter.rank == 0)
		log_line(adapter.use == MPI_USE_ON ? LOG_ERROR : LOG_WARN,
		         "MPI itself carries all collectives: %s", why);
	if (adapter.use != MPI_USE_ON)
		return;
	if (adapter.rank) /* rank 0 says why, and ends all */
		PMPI_Barrier(MPI_COMM_WORLD);
	adapter_flush();
	PMPI_Abort(MPI_COMM_WORLD, 1);
}

static void say_place(void)
{
	const char *place = place_text();

	if (adapter.rank == 0)
		log_info("collectives of %d ranks go through Tributary%s%s", adapter.size,
		         place ? ": " : "",
		         place           ? place
		         : adapter.least ? " from 512 KiB on, without an aggregator; MPI itself "
		                           "carries shorter ones"
		                         : ", without an aggregator");
}

/*
 * Joins Tributary, unless MPI carries short calls anyway: then the first long one does. A program
 * that makes none gets no threads, and no connections between ranks that do not talk to each other.
 * Open MPI looks at each of its connections whenever it waits.
 */
static void join_at_once(void)
{
	if (adapter.least || link_open(MPI_COMM_WORLD))
		say_place();
	else if (link_was_tried(MPI_COMM_WORLD))
		stand_aside("the communicator of all ranks could not be opened");
}

static void adapter_begin(void)
{
	char why[300] = "";

	PMPI_Comm_size(MPI_COMM_WORLD, &adapter.size);
	PMPI_Comm_rank(MPI_COMM_WORLD, &adapter.rank);
	PMPI_Query_thread(&adapter.level);
	if (adapter.size < 2)
		return;
	read_settings();
	if (!hello_all(why, sizeof(why))) {
		stand_aside(why);
		return;
	}
	if (adapter.use == MPI_USE_OFF)
		return;
	types_begin();
	if (links_begin() != TRIB_OK) {
		stand_aside(trib_last_error());
		return;
	}
	adapter.is_active = true;
	join_at_once();
}

int MPI_Init(int *argc, char ***argv)
{
	int code;

	check_library();
	code = PMPI_Init(argc, argv);
	if (code == MPI_SUCCESS)
		adapter_begin();
	return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int code;

	check_library();
	code = PMPI_Init_thread(argc, argv, required, provided);
	if (code == MPI_SUCCESS)
		adapter_begin();
	return code;
}

int MPI_Finalize(void)
{
	if (adapter.is_active) {
		links_end();
		nonblocking_end();
		adapter.is_active = false;
		log_info("Tributary carried %llu collectives, %llu bytes; MPI carried %llu",
		         (unsigned long long)adapter.carried, (unsigned long long)adapter.bytes,
		         (unsigned long long)adapter.passed);
	}
	return PMPI_Finalize();
}
