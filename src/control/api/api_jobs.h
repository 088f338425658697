/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/jobs: making, showing, keeping and ending jobs. */
#ifndef TRIB_CONTROL_API_API_JOBS_H
#define TRIB_CONTROL_API_API_JOBS_H

#include "control/transport/http.h"

void api_get_jobs(void *context, const struct http_request *request, struct http_reply *reply);
void api_get_job(void *context, const struct http_request *request, struct http_reply *reply);
void api_post_job(void *context, const struct http_request *request, struct http_reply *reply);
void api_patch_job(void *context, const struct http_request *request, struct http_reply *reply);
void api_delete_job(void *context, const struct http_request *request, struct http_reply *reply);

#endif
