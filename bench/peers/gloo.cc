// SPDX-License-Identifier: Apache-2.0
// gloo: Gloo's collectives over its TCP transport. Rank and size come from TRIB_RANK and
// TRIB_SIZE, this rank's address from GLOO_ADDRESS. Ranks find each other through files in the
// folder GLOO_STORE. --algorithm of an allreduce: ring (default), bcube, ring_chunked,
// halving_doubling.
#include "peer.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

struct World {
	std::shared_ptr<gloo::rendezvous::Context> context;
	std::string algorithm;
	// The older algorithms are objects bound to a buffer. The warm-up creates this one.
	std::unique_ptr<gloo::Algorithm> bound;
	uint32_t tag = 0;
};

template <typename T> void sum_plain(void *to, const void *a, const void *b, size_t n)
{
	gloo::sum<T>(to, a, b, n);
}

// As PyTorch does it, with a sum for each type.
template <peer_type type> void sum_half(void *to, const void *a, const void *b, size_t n)
{
	if (to != a)
		std::memcpy(to, a, n * peer_type_size(type));
	peer_add(type, to, b, n);
}

template <typename T> void bound_run(World &world, void *data, size_t count)
{
	std::vector<T *> buffers = { static_cast<T *>(data) };

	if (!world.bound && world.algorithm == "ring_chunked")
		world.bound = std::make_unique<gloo::AllreduceRingChunked<T>>(
			world.context, buffers, static_cast<int>(count));
	else if (!world.bound && world.algorithm == "halving_doubling")
		world.bound = std::make_unique<gloo::AllreduceHalvingDoubling<T>>(
			world.context, buffers, static_cast<int>(count));
	else if (!world.bound)
		throw std::invalid_argument("no algorithm '" + world.algorithm + "'");
	world.bound->run();
}

void allreduce_run(World &world, void *data, size_t count, peer_type type)
{
	using Algorithm = gloo::AllreduceOptions::Algorithm;
	gloo::AllreduceOptions options(world.context);

	if (world.algorithm != "ring" && world.algorithm != "bcube") {
		if (type == PEER_F32)
			return bound_run<float>(world, data, count);
		if (type == PEER_I32)
			return bound_run<int32_t>(world, data, count);
		throw std::invalid_argument("'" + world.algorithm +
		                            "' sums f32 and i32 alone here");
	}
	options.setAlgorithm(world.algorithm == "ring" ? Algorithm::RING : Algorithm::BCUBE);
	if (type == PEER_F32)
		options.setOutput(static_cast<float *>(data), count);
	else if (type == PEER_I32)
		options.setOutput(static_cast<int32_t *>(data), count);
	else
		options.setOutput(static_cast<uint16_t *>(data), count);
	options.setReduceFunction(type == PEER_F32   ? sum_plain<float>
	                          : type == PEER_I32 ? sum_plain<int32_t>
	                          : type == PEER_F16 ? sum_half<PEER_F16>
	                                             : sum_half<PEER_BF16>);
	options.setTag(world.tag++);
	gloo::allreduce(options);
}

// The algorithm sums in the buffer that it is bound to, and leaves this rank's share at its start.
template <typename T> void scatter_run(World &world, void *in, void *out, size_t count)
{
	size_t ranks = static_cast<size_t>(world.context->size);
	std::vector<T *> buffers = { static_cast<T *>(in) };
	std::vector<int> shares(ranks, static_cast<int>(count));

	if (!world.bound)
		world.bound = std::make_unique<gloo::ReduceScatterHalvingDoubling<T>>(
			world.context, buffers, static_cast<int>(count * ranks), shares);
	world.bound->run();
	std::memcpy(out, in, count * sizeof(T));
}

void reduce_scatter_run(World &world, void *in, void *out, size_t count, peer_type type)
{
	if (type == PEER_F32)
		return scatter_run<float>(world, in, out, count);
	if (type == PEER_I32)
		return scatter_run<int32_t>(world, in, out, count);
	throw std::invalid_argument("a reduce-scatter sums f32 and i32 alone here");
}

void allgather_run(World &world, const void *in, void *out, size_t count, peer_type type)
{
	gloo::AllgatherOptions options(world.context);
	size_t bytes = count * peer_type_size(type);

	options.setInput(static_cast<char *>(const_cast<void *>(in)), bytes);
	options.setOutput(static_cast<char *>(out),
	                  bytes * static_cast<size_t>(world.context->size));
	options.setTag(world.tag++);
	gloo::allgather(options);
}

// Exceptions must not cross peer_measure, which is C.
template <typename F> int guarded(F &&body)
{
	try {
		body();
		return 0;
	} catch (const std::exception &e) {
		std::fprintf(stderr, "gloo: %s\n", e.what());
		return -1;
	}
}

int world_barrier(void *context)
{
	auto &world = *static_cast<World *>(context);

	return guarded([&] {
		gloo::BarrierOptions options(world.context);

		options.setTag(world.tag++);
		gloo::barrier(options);
	});
}

int world_allreduce(void *context, void *data, size_t count, peer_type type)
{
	auto &world = *static_cast<World *>(context);

	return guarded([&] { allreduce_run(world, data, count, type); });
}

int world_reduce_scatter(void *context, void *in, void *out, size_t count, peer_type type)
{
	auto &world = *static_cast<World *>(context);

	return guarded([&] { reduce_scatter_run(world, in, out, count, type); });
}

int world_allgather(void *context, const void *in, void *out, size_t count, peer_type type)
{
	auto &world = *static_cast<World *>(context);

	return guarded([&] { allgather_run(world, in, out, count, type); });
}

} // namespace

int main(int argc, char **argv)
{
	const char *address = std::getenv("GLOO_ADDRESS"), *store = std::getenv("GLOO_STORE");
	peer_options options;
	peer self = {};
	World world;

	peer_parse(argc, argv, &options);
	peer_rank_from_env(&self.rank, &self.size);
	if (!address || !store) {
		std::fprintf(stderr, "gloo: GLOO_ADDRESS and GLOO_STORE must be set\n");
		return 2;
	}
	// The objects of these two are bound to one buffer.
	if (options.many > 1 && options.algorithm && std::strcmp(options.algorithm, "ring") != 0 &&
	    std::strcmp(options.algorithm, "bcube") != 0) {
		std::fprintf(stderr, "gloo: --many is for ring and bcube\n");
		return 2;
	}
	world.algorithm = options.algorithm ? options.algorithm : "ring";
	self.context = &world;
	self.barrier = world_barrier;
	self.allreduce = world_allreduce;
	self.reduce_scatter = world_reduce_scatter;
	self.allgather = world_allgather;

	std::vector<double> samples(options.iterations);
	if (guarded([&] {
		    gloo::rendezvous::FileStore files(store);
		    auto device = gloo::transport::tcp::CreateDevice(address);

		    world.context =
			    std::make_shared<gloo::rendezvous::Context>(self.rank, self.size);
		    world.context->connectFullMesh(files, device);
	    }))
		return 1;
	if (peer_measure(&self, &options, samples.data()))
		return 1;
	peer_print(self.rank, samples.data(), options.iterations);
	// A rank that exits early would cut off the last acknowledgements to the others.
	return world_barrier(&world) ? 1 : 0;
}
