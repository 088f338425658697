/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

const struct model *model_find(const char *name)
{
	static const struct model *const models[] = { &model_mlp, &model_conv, NULL };

	for (const struct model *const *model = models; *model; model++)
		if (strcmp((*model)->name, name) == 0)
			return *model;
	return NULL;
}

int net_init(struct net *net, size_t count)
{
	net->count = count;
	net->weights = calloc(count, sizeof(float));
	net->gradient = calloc(count, sizeof(float));
	return net->weights && net->gradient ? 0 : -1;
}

void net_free(struct net *net)
{
	free(net->weights);
	free(net->gradient);
}
