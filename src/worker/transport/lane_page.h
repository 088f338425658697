/* SPDX-License-Identifier: Apache-2.0 */
/* lane_page: what other processes can read about the paths of the lanes to the aggregator. */
#ifndef TRIB_WORKER_TRANSPORT_LANE_PAGE_H
#define TRIB_WORKER_TRANSPORT_LANE_PAGE_H

#include "worker/comm/comm.h"

/* Makes a page if the lanes have several paths. No lane runs yet. */
void lane_page_open(struct trib_comm *comm);
/* No lane runs any more. */
void lane_page_close(struct trib_comm *comm);
/* Tells about the lane's path, once a second. For the lane's thread. */
void lane_page_show(struct lane *lane, uint64_t now);

#endif
