/* SPDX-License-Identifier: Apache-2.0 */
#include "path/rdma/rdma_api.h"

#include <dlfcn.h>

struct rdma_api rdma_api;

trib_status rdma_functions_load(const char *library, const struct rdma_function *functions,
                                unsigned n)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return status_fail(TRIB_ERR_SYSTEM, "%s", dlerror());
	for (unsigned i = 0; i < n; i++) {
		void *symbol = dlsym(handle, functions[i].name);

		if (!symbol)
			return status_fail(TRIB_ERR_SYSTEM, "%s has no %s", library,
			                   functions[i].name);
		*(void **)functions[i].pointer = symbol;
	}
	return TRIB_OK;
}

trib_status rdma_api_load(void)
{
	static const struct rdma_function functions[] = {
		{ "ibv_get_device_list", &rdma_api.get_device_list },
		{ "ibv_free_device_list", &rdma_api.free_device_list },
		{ "ibv_get_device_name", &rdma_api.get_device_name },
		{ "ibv_open_device", &rdma_api.open_device },
		{ "ibv_close_device", &rdma_api.close_device },
		{ "_ibv_query_gid_ex", &rdma_api.query_gid_ex },
		{ "ibv_alloc_pd", &rdma_api.alloc_pd },
		{ "ibv_reg_mr", &rdma_api.reg_mr },
		{ "ibv_dereg_mr", &rdma_api.dereg_mr },
		{ "ibv_create_comp_channel", &rdma_api.create_comp_channel },
		{ "ibv_destroy_comp_channel", &rdma_api.destroy_comp_channel },
		{ "ibv_get_cq_event", &rdma_api.get_cq_event },
		{ "ibv_ack_cq_events", &rdma_api.ack_cq_events },
		{ "ibv_create_cq", &rdma_api.create_cq },
		{ "ibv_destroy_cq", &rdma_api.destroy_cq },
		{ "ibv_create_qp", &rdma_api.create_qp },
		{ "ibv_modify_qp", &rdma_api.modify_qp },
		{ "ibv_destroy_qp", &rdma_api.destroy_qp },
		{ "ibv_wc_status_str", &rdma_api.wc_status_str },
	};

	return rdma_functions_load("libibverbs.so.1", functions,
	                           sizeof(functions) / sizeof(functions[0]));
}
