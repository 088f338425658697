/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trib_regroup ends one epoch and begins the next. It leaves the old communicator, whatever its
 * state, and asks the controller for the next plan: which processes are in, and their ranks. The
 * new communicator has another key. So ranks that have regrouped cannot meet ranks that have not.
 */
#include "worker/api/api.h"

#include "base/log.h"

trib_status trib_regroup(trib_comm **comm)
{
	struct comm_config config;
	struct trib_comm *before;
	trib_status status;

	if (!comm || !*comm)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_regroup: no communicator");
	before = *comm;
	status = forked_check(before, "trib_regroup");
	if (status != TRIB_OK)
		return status;
	if (!before->config.controller.length)
		return status_fail(TRIB_ERR_CONFIG,
		                   "trib_regroup: there is no controller to choose the ranks; set "
		                   "TRIB_CONTROLLER instead of TRIB_AGGREGATOR");
	if (before->config.key)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "trib_regroup: for the communicator of trib_init; one of "
		                   "trib_split is made anew from that");
	/* A failure is no obstacle: a dead rank may be the reason for regrouping. */
	if (comm_close(before) != TRIB_OK)
		log_info("regrouping after: %s", trib_last_error());
	*comm = NULL;
	config = before->config;
	config.trees = NULL;
	config.ring_listener = NULL;
	config.ring_seats = NULL;
	config.epoch = 0;
	status = comm_open(&config, before, comm);
	comm_free(before);
	return status;
}
