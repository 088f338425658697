/* SPDX-License-Identifier: Apache-2.0 */
#include "control/transport/token.h"

#include "base/log.h"
#include "base/settings.h"
#include "control/transport/state_dir.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define TOKEN_MIN 8
#define RANDOM_BYTES 32

/* The token goes into a header line, so it must not have line ends or blanks. */
static trib_status check(const char *token, const char *origin)
{
	size_t length = strlen(token);

	for (const char *p = token; *p; p++)
		if (*p <= ' ' || *p > '~')
			return status_fail(TRIB_ERR_CONFIG,
			                   "the token from %s has a blank or a byte beyond ASCII "
			                   "in it",
			                   origin);
	if (length < TOKEN_MIN)
		return status_fail(
			TRIB_ERR_CONFIG,
			"the token from %s is too short: it needs at least %d characters", origin,
			TOKEN_MIN);
	return TRIB_OK;
}

/* Reads the first line of a file. */
static trib_status take_line(char *text, const char *name)
{
	text[strcspn(text, "\r\n")] = '\0';
	return check(text, name);
}

static trib_status take_file(const char *state_dir, const char *name, char out[TOKEN_MAX])
{
	trib_status status = state_dir_read(state_dir, name, out, TOKEN_MAX);

	return status == TRIB_OK ? take_line(out, *name ? name : state_dir) : status;
}

/* Empty: the settings have none. */
static trib_status take_setting(char out[TOKEN_MAX])
{
	const char *token = setting_text(SETTING_TOKEN, NULL);
	const char *file = setting_text(SETTING_TOKEN_FILE, NULL);

	out[0] = '\0';
	if (token) {
		if (strlen(token) >= TOKEN_MAX)
			return status_fail(TRIB_ERR_CONFIG, "TRIB_TOKEN is longer than %d bytes",
			                   TOKEN_MAX - 1);
		snprintf(out, TOKEN_MAX, "%s", token);
		return check(out, "TRIB_TOKEN");
	}
	return file ? take_file(file, "", out) : TRIB_OK;
}

trib_status token_read(const char *state_dir, char out[TOKEN_MAX])
{
	trib_status status = take_setting(out);

	if (status != TRIB_OK || out[0])
		return status;
	if (take_file(state_dir, STATE_DIR_TOKEN, out) != TRIB_OK)
		out[0] = '\0';
	return TRIB_OK;
}

trib_status token_find(const char *state_dir, char out[TOKEN_MAX])
{
	trib_status status = take_setting(out);

	if (status != TRIB_OK || out[0] || !state_dir)
		return status;
	status = state_dir_read(state_dir, STATE_DIR_TOKEN, out, TOKEN_MAX);
	if (status == TRIB_OK)
		return take_line(out, STATE_DIR_TOKEN);
	out[0] = '\0';
	return status == TRIB_ERR_CONFIG ? TRIB_OK : status;
}

static void token_tell(const char *state_dir)
{
	log_notice("the token is in %s/%s: copy it to agents and to hosts that make jobs, and set "
	           "TRIB_TOKEN_FILE there to the copy",
	           state_dir, STATE_DIR_TOKEN);
}

trib_status token_make(const char *state_dir, char out[TOKEN_MAX])
{
	trib_status status = token_read(state_dir, out);
	uint8_t random[RANDOM_BYTES];
	char line[TOKEN_MAX + 1];

	if (status == TRIB_OK && out[0] && !setting_text(SETTING_TOKEN, NULL) &&
	    !setting_text(SETTING_TOKEN_FILE, NULL))
		token_tell(state_dir);
	if (status != TRIB_OK || out[0])
		return status;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return status_fail_errno("cannot get random numbers");
	for (unsigned i = 0; i < RANDOM_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", random[i]);
	snprintf(line, sizeof(line), "%s\n", out);
	status = state_dir_write(state_dir, STATE_DIR_TOKEN, line, 0600);
	if (status == TRIB_OK)
		token_tell(state_dir);
	return status;
}
