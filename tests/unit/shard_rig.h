/* SPDX-License-Identifier: Apache-2.0 */
/* Folders, entries and states for tests of a shard's log. */
#ifndef TRIB_TESTS_SHARD_RIG_H
#define TRIB_TESTS_SHARD_RIG_H

#include "sparse/log/sparse_log.h"

#define RIG_CLIENTS 3u

/* An endless sequence of entries of all kinds; the same one each time. */
struct rig_script {
	unsigned i; /* of the next entry */
	uint64_t sequence[RIG_CLIENTS];
	uint32_t incarnation, epoch;
	struct applied_set records[2];
	uint64_t keys[4];
	float rows[4 * 5];
};

/* The entry leads into the script, and is valid until the next one. */
/* `packet` is not beyond the window. */
void rig_packet_add(struct applied_set *set, uint64_t packet);
void rig_script_next(struct rig_script *script, struct sparse_entry *entry);

/* The state after the first `n` entries of the script. */
void rig_state(struct sparse_state *state, unsigned n);
/* Bit for bit, with heat. */
bool rig_states_equal(const struct sparse_state *a, const struct sparse_state *b);

/* A new folder, for rig_folder_remove. */
char *rig_folder(void);
void rig_folder_remove(char *path);
struct sparse_log_options rig_options(const char *folder);

/* A file of a folder as bytes, and back. */
uint8_t *rig_file_read(const char *folder, const char *name, size_t *n);
void rig_file_write(const char *folder, const char *name, const uint8_t *bytes, size_t n);
bool rig_file_exists(const char *folder, const char *name);

#define RIG_LOG_1 "log-0000000000000001"

#endif
