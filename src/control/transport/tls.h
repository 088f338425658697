/* SPDX-License-Identifier: Apache-2.0 */
/* The key and the certificate of an HTTPS listener. */
#ifndef TRIB_CONTROL_TRANSPORT_TLS_H
#define TRIB_CONTROL_TRANSPORT_TLS_H

#include "control/transport/endpoint.h"

#define PEM_MAX 32768

struct tls {
	char key[PEM_MAX], certificate[PEM_MAX];
	char pin[PIN_MAX]; /* of the public key; empty: an authority signed the certificate */
};

/*
 * Loads TRIB_TLS_CERT and TRIB_TLS_KEY. If they are not set, loads both from the state folder,
 * where they are made at first use; clients then need the pin.
 */
trib_status tls_load(const char *state_dir, struct tls *tls);

#endif
