/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/core/aggregator_state.h"

#include "base/clock.h"

#include <unistd.h>

void thread_send(struct thread *thread, const void *packet, uint32_t bytes,
                 const struct udp_address *to)
{
	thread->aggregator->carrier->send(thread, packet, bytes, to);
}

void thread_answer(struct thread *thread, void *packet, uint32_t bytes,
                   const struct udp_address *to)
{
	thread->aggregator->carrier->answer(thread, packet, bytes, to);
}

void thread_wake(const struct thread *thread)
{
	uint64_t one = 1;

	if (write(thread->wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: the thread is awake */
}

void thread_awake(const struct thread *thread)
{
	uint64_t count;

	if (read(thread->wake_fd, &count, sizeof(count)) < 0)
		return; /* there was no wake-up */
}

int thread_patience(const struct thread *thread)
{
	uint64_t now = clock_now(), ns = TICK_NS;

	if (thread->rates_at < now + ns)
		ns = thread->rates_at > now ? thread->rates_at - now : 0;
	return (int)((ns + 999999) / 1000000);
}
