/* SPDX-License-Identifier: Apache-2.0 */
#include "control/token.h"

#include "base/log.h"
#include "base/settings.h"
#include "control/folder.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define TOKEN_MIN 8
#define RANDOM_BYTES 32

/* It goes into a header line: what would end it, or what a shell adds, must not be in it. */
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
		return status_fail(TRIB_ERR_CONFIG,
		                   "the token from %s is too short: it takes %d characters", origin,
		                   TOKEN_MIN);
	return TRIB_OK;
}

/* What is in the first line of a file. */
static trib_status take_line(char *text, const char *name)
{
	text[strcspn(text, "\r\n")] = '\0';
	return check(text, name);
}

static trib_status take_file(const char *folder, const char *name, char out[TOKEN_MAX])
{
	trib_status status = folder_read(folder, name, out, TOKEN_MAX);

	return status == TRIB_OK ? take_line(out, *name ? name : folder) : status;
}

/* Empty: there is none in the settings. */
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

trib_status token_read(const char *folder, char out[TOKEN_MAX])
{
	trib_status status = take_setting(out);

	if (status != TRIB_OK || out[0])
		return status;
	if (take_file(folder, FOLDER_TOKEN, out) != TRIB_OK)
		out[0] = '\0';
	return TRIB_OK;
}

trib_status token_find(const char *folder, char out[TOKEN_MAX])
{
	trib_status status = take_setting(out);

	if (status != TRIB_OK || out[0] || !folder)
		return status;
	status = folder_read(folder, FOLDER_TOKEN, out, TOKEN_MAX);
	if (status == TRIB_OK)
		return take_line(out, FOLDER_TOKEN);
	out[0] = '\0';
	return status == TRIB_ERR_CONFIG ? TRIB_OK : status;
}

trib_status token_make(const char *folder, char out[TOKEN_MAX])
{
	trib_status status = token_read(folder, out);
	uint8_t random[RANDOM_BYTES];
	char line[TOKEN_MAX + 1];

	if (status != TRIB_OK || out[0])
		return status;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return status_fail_errno("no random numbers");
	for (unsigned i = 0; i < RANDOM_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", random[i]);
	snprintf(line, sizeof(line), "%s\n", out);
	status = folder_write(folder, FOLDER_TOKEN, line, 0600);
	if (status == TRIB_OK)
		log_notice("a token was made: %s/%s; agents and trib need it as TRIB_TOKEN_FILE",
		           folder, FOLDER_TOKEN);
	return status;
}
