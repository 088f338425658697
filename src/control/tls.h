/* SPDX-License-Identifier: Apache-2.0 */
/* The key and the certificate that a listener serves HTTPS with. */
#ifndef TRIB_CONTROL_TLS_H
#define TRIB_CONTROL_TLS_H

#include "control/endpoint.h"

#define PEM_MAX 32768

struct tls {
	char key[PEM_MAX], certificate[PEM_MAX];
	char pin[PIN_MAX]; /* of its public key; empty where an authority vouches for it */
};

/*
 * Those of TRIB_TLS_CERT and TRIB_TLS_KEY; else those in the state folder,
 * made there the first time, and clients have to know their pin.
 */
trib_status tls_load(const char *folder, struct tls *tls);

#endif
