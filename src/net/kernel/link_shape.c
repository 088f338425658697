/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/link_shape.h"

#include "net/kernel/netlink.h"

#include <linux/pkt_sched.h>

/*
 * The burst that may leave at once after a pause: what a core that was busy for 4 ms would owe the
 * link. With a larger burst slow links would seem fast. A batch of 64 KB must fit, or tbf would
 * split it.
 */
#define SHAPE_BURST_S 0.004
#define SHAPE_BURST_MIN (128u * 1024)
#define SHAPE_BURST_MIN_SINGLE (32u * 1024) /* if there are no batches */
#define SHAPE_BURST_MAX (256u * 1024)
#define SHAPE_QUEUE_S 0.020 /* like a shallow switch buffer, which drops packets soon */
#define SHAPE_TICK_NS 64    /* the kernel's unit of time in tc messages */

static uint32_t burst_choose(uint64_t bytes_per_second, bool batches)
{
	double burst = (double)bytes_per_second * SHAPE_BURST_S;
	uint32_t least = batches ? SHAPE_BURST_MIN : SHAPE_BURST_MIN_SINGLE;

	return burst < least ? least : burst > SHAPE_BURST_MAX ? SHAPE_BURST_MAX : (uint32_t)burst;
}

trib_status shape_again(const struct link_end *end, uint64_t bits_per_second, bool batches,
                        uint64_t highest)
{
	struct nl_request request;
	uint64_t bytes = bits_per_second / 8;
	uint32_t burst = burst_choose(highest > bits_per_second ? highest / 8 : bytes, batches);
	double limit = (double)bytes * SHAPE_QUEUE_S + burst;
	double burst_ticks = burst * 1e9 / (double)bytes / SHAPE_TICK_NS;
	struct tcmsg message = { .tcm_ifindex = (int)link_index(end->ns, end->name),
		                 .tcm_parent = TC_H_ROOT };
	/*
	 * TC_LINKLAYER_ETHERNET and TCA_TBF_BURST make the kernel compute from the rate. Without
	 * them it needs the rate tables of kernels before 3.13.
	 */
	struct tc_tbf_qopt tbf = {
		.rate = { .linklayer = TC_LINKLAYER_ETHERNET,
		          .rate = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes },
		.limit = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit,
		.buffer = burst_ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)burst_ticks,
	};

	if (!message.tcm_ifindex)
		return TRIB_ERR_SYSTEM;
	nl_start(&request, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, &message, sizeof(message));
	nl_put_text(&request, TCA_KIND, "tbf");
	struct rtattr *options = nl_nest(&request, TCA_OPTIONS);

	nl_put(&request, TCA_TBF_PARMS, &tbf, sizeof(tbf));
	nl_put_u32(&request, TCA_TBF_BURST, burst);
	if (bytes > UINT32_MAX)
		nl_put(&request, TCA_TBF_RATE64, &bytes, sizeof(bytes));
	nl_nest_end(&request, options);
	if (nl_talk(end->ns->nl, &request) < 0)
		return status_fail_errno("cannot shape %s in %s to %.0f Mbit/s (tbf)", end->name,
		                         end->ns->name, (double)bits_per_second / 1e6);
	return TRIB_OK;
}

/* Gives `end` a queue of this kind, without options. */
static trib_status queue_set(const struct link_end *end, const char *kind)
{
	struct nl_request request;
	struct tcmsg message = { .tcm_ifindex = (int)link_index(end->ns, end->name),
		                 .tcm_parent = TC_H_ROOT };

	if (!message.tcm_ifindex)
		return TRIB_ERR_SYSTEM;
	nl_start(&request, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, &message, sizeof(message));
	nl_put_text(&request, TCA_KIND, kind);
	if (nl_talk(end->ns->nl, &request) < 0)
		return status_fail_errno("cannot give %s in %s a queue (%s)", end->name,
		                         end->ns->name, kind);
	return TRIB_OK;
}

trib_status shape_queue(const struct link_end *end)
{
	return queue_set(end, "pfifo_fast");
}

trib_status shape_none(const struct link_end *end)
{
	return queue_set(end, "noqueue");
}

trib_status shape_cut(const struct link_end *end)
{
	return queue_set(end, "blackhole");
}

trib_status shape_rate(const struct link_end *end, uint64_t bits_per_second, bool batches)
{
	return shape_again(end, bits_per_second, batches, bits_per_second);
}
