/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses a program may serve. Without a cookie it serves this machine alone. */
#ifndef TRIB_OPTIONS_ACCESS_H
#define TRIB_OPTIONS_ACCESS_H

#include "path/udp.h"

#define ACCESS_HELP \
	"without TRIB_COOKIE, serve other machines too: anyone who reaches the port may join"

/* `open`: the user has said that everybody may come. */
trib_status access_check(const struct udp_address *listen, uint64_t cookie, bool open);

#endif
