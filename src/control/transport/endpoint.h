/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of a controller and how it proves its identity: "HOST:PORT", then "#" and the pin of
 * its key in curl's format: 10.0.0.1:7600#sha256//BASE64. Without a pin, the certificate must be
 * from an authority. On loopback, plain HTTP is used. "http://" or "https://" in front overrides
 * this.
 */
#ifndef TRIB_CONTROL_TRANSPORT_ENDPOINT_H
#define TRIB_CONTROL_TRANSPORT_ENDPOINT_H

#include "path/udp.h"

#define ENDPOINT_MAX 320
#define PIN_MAX 64 /* "sha256//" and 44 characters of base64 */

struct endpoint {
	char host[256]; /* without brackets */
	uint16_t port;
	bool tls;
	char pin[PIN_MAX]; /* empty: trust authorities */
};

trib_status endpoint_parse(struct endpoint *endpoint, const char *text);
/* "https://[::1]:7600" */
void endpoint_url(const struct endpoint *endpoint, char *out, size_t size);
/* "10.0.0.1:7600#sha256//..." */
void endpoint_print(const struct endpoint *endpoint, char *out, size_t size);

#endif
