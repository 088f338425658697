/* SPDX-License-Identifier: Apache-2.0 */
#include "control/transport/tls.h"

#include "base/log.h"
#include "base/settings.h"
#include "control/transport/state_dir.h"

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEY_FILE "key.pem"
#define CERTIFICATE_FILE "cert.pem"
#define VALID_S (20ll * 366 * 86400) /* clients check the pin, not the age */
#define CLOCKS_DIFFER_S 86400

static trib_status fail(const char *what, int code)
{
	return status_fail(TRIB_ERR_CONFIG, "cannot %s: %s", what, gnutls_strerror(code));
}

/* "sha256//" and the base64 of the key's hash: curl's format. */
static trib_status pin_print(gnutls_x509_crt_t certificate, char out[PIN_MAX])
{
	gnutls_datum_t der = { 0 }, text = { 0 };
	unsigned char hash[32];
	gnutls_datum_t digest = { hash, sizeof(hash) };
	gnutls_pubkey_t key;
	int code = gnutls_pubkey_init(&key);

	if (code < 0)
		return fail("read a public key", code);
	code = gnutls_pubkey_import_x509(key, certificate, 0);
	if (code >= 0)
		code = gnutls_pubkey_export2(key, GNUTLS_X509_FMT_DER, &der);
	if (code >= 0)
		code = gnutls_hash_fast(GNUTLS_DIG_SHA256, der.data, der.size, hash);
	if (code >= 0)
		code = gnutls_base64_encode2(&digest, &text);
	if (code >= 0)
		snprintf(out, PIN_MAX, "sha256//%.*s", (int)text.size, text.data);
	gnutls_free(der.data);
	gnutls_free(text.data);
	gnutls_pubkey_deinit(key);
	return code < 0 ? fail("make a pin", code) : TRIB_OK;
}

static trib_status pin_of(const char *pem, char out[PIN_MAX])
{
	gnutls_datum_t data = { (unsigned char *)(uintptr_t)pem, (unsigned)strlen(pem) };
	gnutls_x509_crt_t certificate;
	int code = gnutls_x509_crt_init(&certificate);
	trib_status status;

	if (code < 0)
		return fail("read a certificate", code);
	code = gnutls_x509_crt_import(certificate, &data, GNUTLS_X509_FMT_PEM);
	status = code < 0 ? fail("read a certificate", code) : pin_print(certificate, out);
	gnutls_x509_crt_deinit(certificate);
	return status;
}

static int certificate_fill(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key)
{
	unsigned char serial[16];
	char host[256] = "tributary";
	time_t now = time(NULL);
	int code;

	gethostname(host, sizeof(host) - 1);
	if ((code = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial))) < 0)
		return code;
	serial[0] = serial[0] & 0x7f ? serial[0] & 0x7f : 1; /* must be positive */
	if ((code = gnutls_x509_crt_set_version(certificate, 3)) < 0 ||
	    (code = gnutls_x509_crt_set_serial(certificate, serial, sizeof(serial))) < 0 ||
	    (code = gnutls_x509_crt_set_activation_time(certificate, now - CLOCKS_DIFFER_S)) < 0 ||
	    (code = gnutls_x509_crt_set_expiration_time(certificate, now + VALID_S)) < 0 ||
	    (code = gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, host,
	                                          (unsigned)strlen(host))) < 0 ||
	    (code = gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME, host,
	                                                 (unsigned)strlen(host), GNUTLS_FSAN_SET)) <
	            0 ||
	    (code = gnutls_x509_crt_set_key(certificate, key)) < 0)
		return code;
	return gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0);
}

static trib_status write_pem(const char *state_dir, const char *name, const gnutls_datum_t *pem,
                             mode_t mode)
{
	char text[PEM_MAX];

	snprintf(text, sizeof(text), "%.*s", (int)pem->size, pem->data);
	return state_dir_write(state_dir, name, text, mode);
}

/* The key is written first: a crash in between leaves a key that is replaced later. */
static trib_status make_files(const char *state_dir)
{
	gnutls_datum_t key_pem = { 0 }, certificate_pem = { 0 };
	gnutls_x509_crt_t certificate = NULL;
	gnutls_x509_privkey_t key = NULL;
	trib_status status = TRIB_OK;
	int code;

	if ((code = gnutls_x509_privkey_init(&key)) >= 0 &&
	    (code = gnutls_x509_crt_init(&certificate)) >= 0 &&
	    (code = gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
	                                         GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
	                                         0)) >= 0 &&
	    (code = certificate_fill(certificate, key)) >= 0 &&
	    (code = gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &key_pem)) >= 0)
		code = gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &certificate_pem);
	if (code < 0)
		status = fail("make a certificate", code);
	if (status == TRIB_OK)
		status = write_pem(state_dir, KEY_FILE, &key_pem, 0600);
	if (status == TRIB_OK)
		status = write_pem(state_dir, CERTIFICATE_FILE, &certificate_pem, 0644);
	gnutls_free(key_pem.data);
	gnutls_free(certificate_pem.data);
	if (certificate)
		gnutls_x509_crt_deinit(certificate);
	if (key)
		gnutls_x509_privkey_deinit(key);
	return status;
}

trib_status tls_load(const char *state_dir, struct tls *tls)
{
	const char *certificate = setting_text(SETTING_TLS_CERT, NULL);
	const char *key = setting_text(SETTING_TLS_KEY, NULL);
	trib_status status;

	memset(tls, 0, sizeof(*tls));
	if (!certificate != !key)
		return status_fail(TRIB_ERR_CONFIG,
		                   "TRIB_TLS_CERT and TRIB_TLS_KEY belong together: set both");
	if (certificate) {
		if ((status = state_dir_read(certificate, "", tls->certificate, PEM_MAX)))
			return status;
		return state_dir_read(key, "", tls->key, PEM_MAX);
	}
	status = state_dir_read(state_dir, CERTIFICATE_FILE, tls->certificate, PEM_MAX);
	if (status == TRIB_ERR_CONFIG) {
		if ((status = make_files(state_dir)) != TRIB_OK)
			return status;
		log_notice("created a key and a certificate in %s", state_dir);
		status = state_dir_read(state_dir, CERTIFICATE_FILE, tls->certificate, PEM_MAX);
	}
	if (status != TRIB_OK || (status = state_dir_read(state_dir, KEY_FILE, tls->key, PEM_MAX)))
		return status;
	return pin_of(tls->certificate, tls->pin);
}
