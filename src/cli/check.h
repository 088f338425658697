/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `trib check` tries things and says what to fix. check.c owns the list and
 * how it is told, check_machine.c what is tried on this machine, check_xdp.c
 * whether the kernel could sum, check_route.c what is tried towards an aggregator.
 */
#ifndef TRIB_CLI_CHECK_H
#define TRIB_CLI_CHECK_H

#include <stdbool.h>

enum check_level { CHECK_OK, CHECK_WARN, CHECK_FAIL };

struct check {
	bool json;
	unsigned counts[3]; /* by level */
};

/* One finding. `fix` is what to do about it, NULL where there is nothing to do. */
void check_tell(struct check *check, enum check_level level, const char *name, const char *fix,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

void check_machine(struct check *check);
/* Whether XDP is possible, and on which interfaces. */
void check_xdp(struct check *check);
/* `text` is "host:port". */
void check_route(struct check *check, const char *text);

#endif
