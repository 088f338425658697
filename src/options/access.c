/* SPDX-License-Identifier: Apache-2.0 */
#include "options/access.h"

trib_status access_check(const struct udp_address *listen, uint64_t cookie, bool open)
{
	char address[64];

	if (cookie || open || udp_is_loopback(listen))
		return TRIB_OK;
	return status_fail(
		TRIB_ERR_CONFIG,
		"TRIB_COOKIE is not set, so only loopback is served, and not %s: make a "
		"cookie with trib cookie and give it to the workers too, or say --open if "
		"anyone may join",
		udp_text(listen, address, sizeof(address)));
}
