/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics: the controller's metrics; docs/metrics.md lists the names. */
#ifndef TRIB_CONTROL_API_API_METRICS_H
#define TRIB_CONTROL_API_API_METRICS_H

#include "control/transport/http.h"

void api_get_metrics(void *context, const struct http_request *request, struct http_reply *reply);

#endif
