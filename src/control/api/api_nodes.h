/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/nodes: the heartbeats of agents, and what users see and change of nodes. */
#ifndef TRIB_CONTROL_API_API_NODES_H
#define TRIB_CONTROL_API_API_NODES_H

#include "control/policy/node_table.h"
#include "control/transport/http.h"

void api_get_nodes(void *context, const struct http_request *request, struct http_reply *reply);
void api_put_node(void *context, const struct http_request *request, struct http_reply *reply);
void api_patch_node(void *context, const struct http_request *request, struct http_reply *reply);
void api_delete_node(void *context, const struct http_request *request, struct http_reply *reply);
/* Frees what api_put_node has attached to a node. */
void api_forget_node(struct node *node);

#endif
