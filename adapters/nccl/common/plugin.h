/* SPDX-License-Identifier: Apache-2.0 */
/*
 * common owns what links and collectives share: NCCL's log and results, the device, sockets
 * (nccl_endpoint.h), what processes say to each other first (greeting.h), and NCCL's interface
 * (nccl_abi.h). It must not touch messages and requests.
 */
#ifndef TRIB_NCCL_PLUGIN_H
#define TRIB_NCCL_PLUGIN_H

#include "nccl_abi.h"

#include "path/udp.h"

/* Takes NCCL's log. The first one that is not NULL stays. */
void plugin_start(nccl_logger logger);
void plugin_log(int level, unsigned long flags, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define plugin_warn(...) plugin_log(NCCL_LOG_WARN, NCCL_LOG_NET, __VA_ARGS__)
#define plugin_info(...) plugin_log(NCCL_LOG_INFO, NCCL_LOG_INIT | NCCL_LOG_NET, __VA_ARGS__)

/* NCCL's result for a status. */
int plugin_result(trib_status status);
/* The same. An error is logged with its sentence, behind `what`. */
int plugin_report(trib_status status, const char *what);

/* TRIB_TIMEOUT in nanoseconds. */
uint64_t plugin_timeout(void);

/* For pointers that NCCL keeps, and that must not be NULL. */
extern char plugin_something;

/* device.c: the interface that messages leave by. There is one device, number 0. */
struct device {
	char name[32];              /* of the interface */
	char path[128];             /* its PCI device in /sys; "": none */
	struct udp_address address; /* port 0 */
	uint64_t guid;
	int speed; /* Mb/s */
};

/* NULL: there is no interface. */
const struct device *device_get(void);
/* True: the user has named an aggregator, trees or a controller. */
bool device_has_aggregator(void);
/* NCCL's properties of device 0, for point-to-point and collectives. */
int device_properties(int number, struct nccl_properties_v11 *properties);

#endif
