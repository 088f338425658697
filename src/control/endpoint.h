/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a controller is and how it proves itself: "HOST:PORT", then "#" and
 * the pin of its key, as curl has it: 10.0.0.1:7600#sha256//BASE64. Without a
 * pin its certificate has to be from an authority; on loopback it is plain
 * HTTP. "http://" or "https://" in front says which, whatever the rest.
 */
#ifndef TRIB_CONTROL_ENDPOINT_H
#define TRIB_CONTROL_ENDPOINT_H

#include "path/udp.h"

#define ENDPOINT_MAX 320
#define PIN_MAX 64 /* "sha256//" and 44 characters of base64 */

struct endpoint {
	char host[256]; /* without brackets */
	uint16_t port;
	bool tls;
	char pin[PIN_MAX]; /* empty: authorities */
};

trib_status endpoint_parse(struct endpoint *endpoint, const char *text);
/* "https://[::1]:7600" */
void endpoint_url(const struct endpoint *endpoint, char *out, size_t size);
/* "10.0.0.1:7600#sha256//..." */
void endpoint_print(const struct endpoint *endpoint, char *out, size_t size);
/* Is it on this machine, so that nobody else hears it? */
bool endpoint_is_loopback(const struct udp_address *address);

#endif
