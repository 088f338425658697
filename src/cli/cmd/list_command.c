/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cmd/list_command.h"

#include "options/options.h"
#include "query/remote.h"

#include <stdio.h>

static void print_table(const struct list_command *command, const json_t *list)
{
	if (json_array_size(list))
		command->print_head();
	else
		printf("%s\n", command->none);
	for (size_t i = 0; i < json_array_size(list); i++)
		command->print_row(json_array_get(list, i));
}

static int print_list(const struct list_command *command, struct client *client, bool json)
{
	json_t *answer;

	if (remote_get(client, command->path, &answer) != TRIB_OK)
		return remote_fail(command->name);
	if (json)
		remote_dump(answer);
	else
		print_table(command, json_object_get(answer, command->field));
	json_decref(answer);
	return 0;
}

int list_command_run(const struct list_command *command, int argc, char **argv)
{
	const char *controller = NULL;
	bool json = false;
	const struct option_row rows[] = {
		REMOTE_ROW(&controller),
		{ "json", 'j', OPTION_JSON, &json, "FILE", "print JSON, or write it to FILE",
		  NULL },
		{ 0 },
	};
	const struct options options = { command->usage, command->about, command->example, rows };
	struct client *client;
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	if (client_find(controller, &client) != TRIB_OK)
		return remote_fail(command->name);
	code = print_list(command, client, json);
	client_free(client);
	return code;
}
