/* SPDX-License-Identifier: Apache-2.0 */
#include "path/rdma/cm_api.h"

struct cm_api cm_api;

trib_status cm_api_load(void)
{
	static const struct rdma_function functions[] = {
		{ "rdma_create_event_channel", &cm_api.create_event_channel },
		{ "rdma_destroy_event_channel", &cm_api.destroy_event_channel },
		{ "rdma_create_id", &cm_api.create_id },
		{ "rdma_destroy_id", &cm_api.destroy_id },
		{ "rdma_bind_addr", &cm_api.bind_addr },
		{ "rdma_resolve_addr", &cm_api.resolve_addr },
		{ "rdma_resolve_route", &cm_api.resolve_route },
		{ "rdma_create_qp", &cm_api.create_qp },
		{ "rdma_destroy_qp", &cm_api.destroy_qp },
		{ "rdma_connect", &cm_api.connect },
		{ "rdma_listen", &cm_api.listen },
		{ "rdma_accept", &cm_api.accept },
		{ "rdma_reject", &cm_api.reject },
		{ "rdma_disconnect", &cm_api.disconnect },
		{ "rdma_get_cm_event", &cm_api.get_cm_event },
		{ "rdma_ack_cm_event", &cm_api.ack_cm_event },
		{ "rdma_migrate_id", &cm_api.migrate_id },
	};
	trib_status status = rdma_api_load();

	return status == TRIB_OK ? rdma_functions_load("librdmacm.so.1", functions,
	                                               sizeof(functions) / sizeof(functions[0]))
	                         : status;
}
