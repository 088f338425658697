/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links of nodes, judged by what they carried when they were tried with others
 * (gauge.h): XAgg's first round (§V), before there is a plan. Pure.
 *
 * A way is as slow as the slower of its two ends. So a link is slow where it carried too little in
 * all its ways, and one of those led to a node that is known to carry more.
 */
#ifndef TRIB_CONTROL_LINKS_H
#define TRIB_CONTROL_LINKS_H

#include "control/nodes.h"

#define LINKS_ENOUGH 0.7 /* of what is claimed: that is as claimed */
#define LINKS_APART 1.4  /* times as much the other end carries: then it is not what they share */
#define LINKS_TRIES 3u   /* with so many others at most */

/* The rate that both are to reach when they try each other; `guess`: of a link that claims none. */
double links_enough(const struct node *a, const struct node *b, double guess);
/* Is nothing more to be found out about it? There may still be nobody to try it with. */
bool links_settled(const struct node *node, double guess);
/*
 * With whom a node is to be tried next; NULL: with nobody. free(): may that one be, now?
 */
const struct node *links_partner(const struct nodes *nodes, const struct node *node,
                                 bool (*is_free)(void *context, const struct node *other),
                                 void *context);
/* What it carries, where that is less than it claims; else 0. */
void links_judge(const struct nodes *nodes, const struct node *node, double guess, double *out_bps,
                 double *in_bps);

#endif
