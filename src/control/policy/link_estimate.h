/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates what the links of nodes carry from probes between pairs of nodes (agent/link_probe.h).
 * This is XAgg's first round (§V), done before there is a plan. Pure.
 *
 * A probe is limited by the slower of its two ends. So a link counts as slow only under two
 * conditions: all its probes were slow, and the other end of one of them is known to carry more and
 * had room for it at that time.
 *
 * `guess` is the rate assumed for a link whose agent claims none.
 */
#ifndef TRIB_CONTROL_POLICY_LINK_ESTIMATE_H
#define TRIB_CONTROL_POLICY_LINK_ESTIMATE_H

#include "control/policy/node_table.h"

#define LINK_ENOUGH 0.7 /* a link that carries this part of its claimed rate is as claimed */
/* If the other end carries this many times as much, it was not the limit. */
#define LINK_APART 1.4
#define LINK_TRIES 3u /* probes per node at most, with nodes that claim as much */

/* What is known of one direction. */
enum link { LINK_UNKNOWN, LINK_AS_CLAIMED, LINK_SLOW };

/* Adds a sample to an agent's list; the newest is first. */
void link_estimate_keep(struct link_sample samples[LINK_SAMPLES_MAX], unsigned *n,
                        const struct link_sample *sample);
/*
 * Gives samples that were reported before their old time again: the age in a report varies by the
 * time that the report was on its way.
 */
void link_estimate_steady(struct link_sample *samples, unsigned n, const struct link_sample *before,
                          unsigned m);
/* The rate at which a probe between a and b can stop. */
double link_estimate_enough(const struct node *a, const struct node *b, double guess);
/* True: further probes would tell nothing new about the node's link. */
bool link_estimate_settled(const struct nodes *nodes, const struct node *node, double guess);
/* True: the link was probed, and no probe carried anything. */
bool link_estimate_failed(const struct node *node);
/* True: a probe between the two is possible and would be new. */
bool link_estimate_may_probe(const struct nodes *nodes, const struct node *node,
                             const struct node *other, double guess);
/* The best partner for the next probe, of those that are free; NULL: none. */
const struct node *link_estimate_partner(const struct nodes *nodes, const struct node *node,
                                         double guess,
                                         bool (*is_free)(void *context, const struct node *other),
                                         void *context);
/* *bps: for LINK_SLOW the rate; for LINK_UNKNOWN a lower bound. */
enum link link_estimate_judge(const struct nodes *nodes, const struct node *node, double guess,
                              bool outward, double *bps);

#endif
