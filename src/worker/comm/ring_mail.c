/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/ring_mail.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct ring_mail *ring_mail_new(void)
{
	struct ring_mail *mail = calloc(1, sizeof(*mail));

	if (!mail)
		return NULL;
	mail->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (mail->wake_fd < 0) {
		free(mail);
		return NULL;
	}
	mail->posted_end = &mail->posted;
	pthread_mutex_init(&mail->lock, NULL);
	return mail;
}

void ring_mail_free(struct ring_mail *mail)
{
	if (!mail)
		return;
	while (mail->posted) { /* after the thread had ended */
		struct round *round = mail->posted;

		mail->posted = round->next;
		round_free(round);
	}
	close(mail->wake_fd);
	pthread_mutex_destroy(&mail->lock);
	free(mail);
}

void ring_mail_wake(struct ring_mail *mail)
{
	uint64_t one = 1;

	if (write(mail->wake_fd, &one, sizeof(one)) < 0)
		log_debug("eventfd: %s", strerror(errno)); /* full: the thread is awake */
}

void ring_mail_post(struct ring_mail *mail, struct round *round)
{
	pthread_mutex_lock(&mail->lock);
	round->next = NULL;
	*mail->posted_end = round;
	mail->posted_end = &round->next;
	pthread_mutex_unlock(&mail->lock);
	ring_mail_wake(mail);
}

struct round *ring_mail_take(struct ring_mail *mail)
{
	struct round *rounds;

	pthread_mutex_lock(&mail->lock);
	rounds = mail->posted;
	mail->posted = NULL;
	mail->posted_end = &mail->posted;
	pthread_mutex_unlock(&mail->lock);
	return rounds;
}
