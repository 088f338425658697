/* SPDX-License-Identifier: Apache-2.0 */
#include "path/rdma/rdma.h"

#include "base/log.h"
#include "base/settings.h"
#include "path/tcp.h"

#include <pthread.h>

#ifdef HAVE_VERBS
#include "path/rdma/rdma_link.h"
#include "path/rdma/rdma_stream.h"

static const struct channel_carrier *find(const struct udp_address *local)
{
	return rdma_device_open(local) ? &rdma_link_carrier : NULL;
}

static trib_status find_streams(const struct tcp_other **found)
{
	struct rdma_event_channel *probe;
	trib_status status = cm_api_load();

	if (status != TRIB_OK)
		return status;
	probe = cm_api.create_event_channel();
	if (!probe)
		return status_fail_errno("no connections by RDMA");
	cm_api.destroy_event_channel(probe);
	*found = &rdma_streams;
	return TRIB_OK;
}
#else
static const struct channel_carrier *find(const struct udp_address *local)
{
	(void)local;
	status_fail(TRIB_ERR_SYSTEM, "this build is without libibverbs");
	return NULL;
}

static trib_status find_streams(const struct tcp_other **found)
{
	*found = NULL;
	return status_fail(TRIB_ERR_SYSTEM, "this build is without libibverbs");
}
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_wanted(void)
{
	uint64_t transport;

	return setting_count(SETTING_TRANSPORT, &transport) == TRIB_OK &&
	       transport == TRANSPORT_VERBS;
}

const struct channel_carrier *rdma_carrier(const struct udp_address *local)
{
	static const struct channel_carrier *carrier;
	static bool looked;

	if (!is_wanted())
		return NULL;
	pthread_mutex_lock(&lock);
	if (!looked && !(carrier = find(local)))
		log_notice("no RDMA, so messages travel by UDP: %s", trib_last_error());
	looked = true;
	pthread_mutex_unlock(&lock);
	return carrier;
}

void rdma_streams_start(void)
{
	static bool looked;
	const struct tcp_other *found = NULL;

	if (!is_wanted())
		return;
	pthread_mutex_lock(&lock);
	if (!looked && find_streams(&found) != TRIB_OK)
		log_notice("no RDMA, so connections are by TCP: %s", trib_last_error());
	if (found)
		tcp_use(found);
	looked = true;
	pthread_mutex_unlock(&lock);
}
