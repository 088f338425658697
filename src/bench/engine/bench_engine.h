/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench engine: what one packet costs where it is summed, in CPU time. This room
 * times the engine and the XDP program alone: no sockets, no network, no cluster.
 */
#ifndef TRIB_BENCH_ENGINE_BENCH_ENGINE_H
#define TRIB_BENCH_ENGINE_BENCH_ENGINE_H

int bench_engine_run(int argc, char **argv);

#endif
