/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An epoch's border. The old communicator is left, whatever state it is in, and
 * the controller is asked for the next plan: it says who is in, and everyone's
 * rank. The new one has another key, so that a rank which does not know of the
 * border yet cannot meet those that do.
 */
#include "worker/comm.h"

#include "base/log.h"

trib_status trib_regroup(trib_comm **comm)
{
	struct comm_config config;
	struct trib_comm *before;
	trib_status status;

	if (!comm || !*comm)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_regroup: no communicator");
	before = *comm;
	if (!before->config.controller.length)
		return status_fail(TRIB_ERR_CONFIG,
		                   "trib_regroup: there is no controller to say who is in; set "
		                   "TRIB_CONTROLLER instead of TRIB_AGGREGATOR");
	if (before->config.key)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "trib_regroup: for the communicator of trib_init; one of "
		                   "trib_split is made anew from that");
	/* That a rank is gone is why we may be here. */
	if (comm_close(before) != TRIB_OK)
		log_info("regrouping after: %s", trib_last_error());
	*comm = NULL;
	config = before->config;
	config.trees = NULL;
	config.epoch = 0;
	status = comm_open(&config, before, comm);
	comm_free(before);
	return status;
}
