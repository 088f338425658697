/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of a controller, as typed by users or read from files: any text is parsed, or refused
 * with a message. A parsed address is the same after it was printed and parsed again.
 */
#include "control/transport/endpoint.h"
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), printed[2 * ENDPOINT_MAX], url[2 * ENDPOINT_MAX];
	struct endpoint endpoint, again;

	demand(text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (endpoint_parse(&endpoint, text) != TRIB_OK) {
		demand(*trib_last_error());
		free(text);
		return 0;
	}
	demand(endpoint.port && *endpoint.host);
	endpoint_print(&endpoint, printed, sizeof(printed));
	demand(strlen(printed) < sizeof(printed) - 1);
	demand(endpoint_parse(&again, printed) == TRIB_OK);
	demand(!strcmp(again.host, endpoint.host) && !strcmp(again.pin, endpoint.pin));
	demand(again.port == endpoint.port && again.tls == endpoint.tls);
	endpoint_url(&endpoint, url, sizeof(url));
	demand(!strncmp(url, endpoint.tls ? "https://" : "http://", endpoint.tls ? 8 : 7));
	free(text);
	return 0;
}
