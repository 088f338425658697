/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check: `trib check` tries what Tributary needs and says what to fix. check.c has
 * the list of checks. check_machine.c checks this machine, check_xdp.c whether the
 * kernel can sum, check_route.c the path to an aggregator, check_launcher.c what the
 * launcher's environment says, check_nccl.c the plugin for
 * NCCL. finding.c prints what they find.
 *
 * This room only looks: it must leave nothing changed on the machine.
 */
#ifndef TRIB_CLI_CHECK_FINDING_H
#define TRIB_CLI_CHECK_FINDING_H

#include <stdbool.h>

enum check_level { CHECK_OK, CHECK_WARN, CHECK_FAIL };

struct check {
	bool json;
	unsigned counts[3]; /* by level */
};

/* Prints one finding. `fix` is what to do about it; NULL: nothing to do. */
void check_tell(struct check *check, enum check_level level, const char *name, const char *fix,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

void check_machine(struct check *check);
/* Rank, size, and where ranks meet that have no aggregator. */
void check_launcher(struct check *check);
/* Is XDP possible, and on which interfaces? */
void check_xdp(struct check *check);
/* Would NCCL sum with the plugin? Programs without a dynamic linker cannot load it: NULL there. */
extern void check_nccl(struct check *check) __attribute__((weak));
/* `text` is "host:port". */
void check_route(struct check *check, const char *text);

#endif
