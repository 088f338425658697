/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links of nodes, judged by what they carried when they were tried with others
 * (gauge.h): XAgg's first round (§V), before there is a plan. Pure.
 *
 * A way is as slow as the slower of its two ends. So a link is slow where it carried too little in
 * all its ways, and the other end of one of those is known to carry more, and had room for it then.
 */
#ifndef TRIB_CONTROL_LINKS_H
#define TRIB_CONTROL_LINKS_H

#include "control/nodes.h"

#define LINKS_ENOUGH 0.7 /* of what is claimed: that is as claimed */
#define LINKS_APART 1.4  /* times as much the other end carries: then it is not what they share */
#define LINKS_TRIES 3u   /* with so many others at most, of those that claim as much */

/* What is known of one direction. */
enum link { LINK_UNKNOWN, LINK_AS_CLAIMED, LINK_SLOW };

/* An agent's ways, the newest first, and another one. */
void links_keep(struct node_way ways[NODE_WAYS], unsigned *n, const struct node_way *way);
/* What is told again, a little later or earlier for the time that it was under way, is the same. */
void links_steady(struct node_way *ways, unsigned n, const struct node_way *before, unsigned m);
/* The rate that both are to reach when they try each other; `guess`: of a link that claims none. */
double links_enough(const struct node *a, const struct node *b, double guess);
/* Is nothing more to be found out about it? There may still be nobody to try it with. */
bool links_settled(const struct nodes *nodes, const struct node *node, double guess);
/* Has it been tried, and nothing come of it at all? */
bool links_failed(const struct node *node);
/* May it be tried with that one, and has not been? */
bool links_may_try(const struct nodes *nodes, const struct node *node, const struct node *other,
                   double guess);
/* With whom it is to be tried next, of those that are free; NULL: with nobody. */
const struct node *links_partner(const struct nodes *nodes, const struct node *node, double guess,
                                 bool (*is_free)(void *context, const struct node *other),
                                 void *context);
/* *bps: what it carries, where it is slow; where that is unknown, what it carries at least. */
enum link links_judge(const struct nodes *nodes, const struct node *node, double guess,
                      bool outward, double *bps);

#endif
