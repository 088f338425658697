/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_paths: the messages of a link over several paths (path/channel), where the user has set
 * TRIB_PATHS. A channel wants to be served also while NCCL does not call, so each has a thread.
 */
#ifndef TRIB_NCCL_LINK_PATHS_H
#define TRIB_NCCL_LINK_PATHS_H

#include "common/greeting.h"

struct paths;

/* Has the user asked for paths? */
bool paths_wanted(void);

/* Waits to be called. *handle says where, with a new cookie. */
trib_status paths_listen(struct handle *handle, struct paths **out);
/* The channel opens later; messages can be sent at once. */
trib_status paths_connect(const struct handle *handle, const char *peer, struct paths **out);
void paths_free(struct paths *paths);
/* Has the peer called? */
bool paths_is_called(struct paths *paths);

/* As those of link_stripes.h. The functions lock. */
int paths_post(struct paths *paths, void *data, uint64_t bytes);
/* An error: the peer is lost. It counts only for what is not done. */
trib_status paths_move(struct paths *paths);
bool paths_done(struct paths *paths, unsigned index);
uint64_t paths_release(struct paths *paths, unsigned index);

#endif
