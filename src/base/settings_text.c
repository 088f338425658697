/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a setting: from the environment, the file, a launcher, or its default. */
#include "base/settings.h"
#include "base/byte_order_mark.h"
#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_DEFAULT "/etc/tributary.conf"

/* ---- the file ---- */

/* Read once and never freed: returned values point into it. */
struct config_file {
	struct config_file *next;
	char *path;
	char *values[SETTINGS_N];
	char *origins[SETTINGS_N]; /* "path:line" */
};

static char *text_trim(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	for (size_t n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--)
		text[n - 1] = '\0';
	return text;
}

static void config_take_line(struct config_file *file, char *line, unsigned number)
{
	char *name = text_trim(line), *value = strchr(name, '=');

	if (*name == '#' || *name == '\0')
		return;
	if (!value) {
		log_warn("%s:%u: \"%s\" is ignored; expected NAME=value", file->path, number, name);
		return;
	}
	*value++ = '\0';
	for (char *p = value; *p; p++) {
		if (*p == '#' && (p == value || isspace((unsigned char)p[-1])))
			*p = '\0';
	}
	name = text_trim(name);
	value = text_trim(value);
	for (int i = 0; i < SETTINGS_N; i++) {
		if (strcmp(name, settings[i].name) != 0)
			continue;
		/* The last line wins, as it would in a shell. */
		free(file->values[i]);
		free(file->origins[i]);
		file->values[i] = strdup(value);
		if (asprintf(&file->origins[i], "%s:%u", file->path, number) < 0)
			file->origins[i] = NULL;
		return;
	}
	log_warn("%s:%u: %s is not a setting; `trib show config` lists them", file->path, number,
	         name);
}

static struct config_file *config_read(const char *path, bool must_exist)
{
	struct config_file *file = calloc(1, sizeof(*file));
	char *line = NULL;
	size_t room = 0;
	FILE *in;

	if (!file || !(file->path = strdup(path))) {
		free(file);
		return NULL;
	}
	in = fopen(path, "re");
	if (!in) {
		if (must_exist || errno != ENOENT)
			log_warn("cannot read the settings in %s: %s", path, strerror(errno));
		return file;
	}
	for (unsigned number = 1; getline(&line, &room, in) >= 0; number++)
		config_take_line(file, line + (number == 1 ? byte_order_mark(line) : 0), number);
	if (ferror(in))
		log_warn("cannot read all settings in %s: %s", path, strerror(errno));
	free(line);
	fclose(in);
	return file;
}

static const struct config_file *config_find(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct config_file *files;
	const char *named = getenv("TRIB_CONFIG");
	const char *path = named && *named ? named : CONFIG_DEFAULT;
	struct config_file *file;

	pthread_mutex_lock(&lock);
	for (file = files; file && strcmp(file->path, path) != 0; file = file->next)
		;
	if (!file && (file = config_read(path, path == named))) {
		file->next = files;
		files = file;
	}
	pthread_mutex_unlock(&lock);
	return file;
}

/* ---- looking up ---- */

/* An empty variable counts as unset, so that `TRIB_RATE= cmd` unsets one. */
static const char *env_get(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static const char *setting_own(enum setting_id id, const char **origin)
{
	const char *value = env_get(settings[id].name);
	const struct config_file *file;

	*origin = "environment";
	if (value)
		return value;
	file = config_find();
	if (!file || !file->values[id] || !*file->values[id])
		return NULL;
	*origin = file->origins[id] ? file->origins[id] : file->path;
	return file->values[id];
}

bool setting_word_next(const char **list, char *word, size_t room)
{
	size_t n;

	*list += strspn(*list, " ");
	n = strcspn(*list, " ");
	snprintf(word, room, "%.*s", (int)n, *list);
	*list += n;
	return n > 0;
}

/* The rank of one launcher with the size of another would hang a job: take both or neither. */
static const char *setting_launched(enum setting_id id, const char **origin)
{
	static _Thread_local char name[64];
	enum setting_id mate = id == SETTING_RANK ? SETTING_SIZE : SETTING_RANK;
	const char *list = settings[id].elsewhere, *mates = settings[mate].elsewhere, *value, *from;
	bool mate_is_given = setting_own(mate, &from) != NULL;
	char other[64];

	while (setting_word_next(&list, name, sizeof(name)) &&
	       setting_word_next(&mates, other, sizeof(other))) {
		value = env_get(name);
		if (value && (mate_is_given || env_get(other))) {
			*origin = name;
			return value;
		}
	}
	return NULL;
}

bool setting_is_secret(enum setting_id id)
{
	return id == SETTING_COOKIE || id == SETTING_TOKEN;
}

const char *setting_text(enum setting_id id, const char **origin)
{
	const char *where, *value = setting_own(id, &where);

	if (!value && settings[id].elsewhere)
		value = setting_launched(id, &where);
	if (!value) {
		value = settings[id].fallback;
		where = value ? "default" : "not set";
	}
	if (origin)
		*origin = where;
	return value;
}
