/* SPDX-License-Identifier: Apache-2.0 */
#include "base/settings.h"
#include "cli/cmd/cmd.h"
#include "options/command_table.h"
#include "options/json_writer.h"
#include "options/options.h"

#include <stdio.h>
#include <string.h>

static const char *const type_names[] = {
	[SETTING_TEXT] = "text", [SETTING_COUNT] = "count",     [SETTING_BYTES] = "bytes",
	[SETTING_RATE] = "rate", [SETTING_SECONDS] = "seconds", [SETTING_BOOL] = "bool",
};

/* The sentence that says what is wrong with a value; NULL: it is valid. */
static const char *setting_wrong(enum setting_id id)
{
	return setting_check(id) == TRIB_OK ? NULL : trib_last_error();
}

/* A secret is not printed, only that it is set. */
static const char *setting_shown(enum setting_id id, const char **origin)
{
	const char *text = setting_text(id, origin);

	if (text && setting_is_secret(id) && strcmp(*origin, "default") != 0)
		return "(set)";
	return text;
}

static void config_print_json(void)
{
	struct json_writer json = { .out = stdout };

	json_open_object(&json, NULL);
	json_put_text(&json, "version", TRIB_VERSION);
	json_open_list(&json, "settings");
	for (int i = 0; i < SETTINGS_N; i++) {
		enum setting_id id = (enum setting_id)i;
		const char *origin, *text = setting_shown(id, &origin);

		json_open_object(&json, NULL);
		json_put_text(&json, "name", settings[i].name);
		json_put_text(&json, "value", text);
		json_put_text(&json, "origin", origin);
		json_put_text(&json, "default", settings[i].fallback);
		json_put_text(&json, "type", type_names[settings[i].type]);
		json_put_text(&json, "help", settings[i].help);
		json_put_text(&json, "error", setting_wrong(id));
		json_close(&json);
	}
	json_close(&json);
	json_close(&json);
}

static void config_print(void)
{
	for (int i = 0; i < SETTINGS_N; i++) {
		enum setting_id id = (enum setting_id)i;
		const char *origin, *text = setting_shown(id, &origin), *wrong;
		char assignment[128];

		snprintf(assignment, sizeof(assignment), "%s=%s", settings[i].name,
		         text ? text : "");
		printf("%-32s # %s\n    %s\n", assignment, origin, settings[i].help);
		wrong = setting_wrong(id);
		if (wrong)
			printf("    WRONG: %s\n", wrong);
	}
	printf("\nA value comes from the environment, then from the file that TRIB_CONFIG names\n"
	       "(/etc/tributary.conf), then from mpirun, srun or torchrun, then it is the "
	       "default.\n");
}

static int any_wrong(void)
{
	for (int i = 0; i < SETTINGS_N; i++) {
		if (setting_wrong((enum setting_id)i))
			return 1;
	}
	return 0;
}

static int show_config(int argc, char **argv)
{
	bool json = false;
	const struct option_row rows[] = {
		{ "json", 0, OPTION_JSON, &json, "FILE", "print JSON, or write it to FILE", NULL },
		{ 0 },
	};
	const struct options options = {
		"trib show config [OPTION]...",
		"Shows each setting, where its value comes from, and what it is for. The exit code "
		"is 1\n"
		"if a value is malformed.",
		"TRIB_POOL=1G trib show config",
		rows,
	};
	int code, first = options_parse(&options, argc, argv, &code);

	if (first < 0)
		return code;
	if (first < argc)
		return options_fail(&options, "\"%s\" is not an option", argv[first]);
	if (json)
		config_print_json();
	else
		config_print();
	return any_wrong();
}

static const struct command commands[] = {
	{ "config", show_config, "each setting, and where its value comes from" },
	{ "paths", cli_show_paths, "the paths through the network to a host" },
	{ 0 },
};

static const struct command_table table = {
	.name = "trib show",
	.about = "Shows settings and paths.",
	.example = "TRIB_POOL=1G trib show config",
	.commands = commands,
};

int cli_show(int argc, char **argv)
{
	return command_table_run(&table, argc, argv);
}
