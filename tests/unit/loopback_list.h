/* SPDX-License-Identifier: Apache-2.0 */
/* The list of networks of aggregators that tests start on loopback. */
#ifndef TRIB_TESTS_LOOPBACK_LIST_H
#define TRIB_TESTS_LOOPBACK_LIST_H

#include "path/network_list.h"

/* Loopback alone, as an initializer. */
#define NETWORK_LIST_LOOPBACK                                                  \
	{                                                                      \
		.n = 1, .all = { { .raw = { 127 }, .bytes = 4, .prefix = 8 } } \
	}

#endif
