/* SPDX-License-Identifier: Apache-2.0 */
/* Engines in the kernel: their programs are loaded beside the plane's, and share its maps. */
#include "number/float_table.h"
#include "plane/xdp/xdp_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "slot.skel.h"
#include "slot_tc.skel.h"
#include "sparse.skel.h"

static const void *slot_program(uint64_t *bytes)
{
	size_t size;
	const void *elf = slot_bpf__elf_bytes(&size);

	*bytes = size;
	return elf;
}

static const void *sparse_program(uint64_t *bytes)
{
	size_t size;
	const void *elf = sparse_bpf__elf_bytes(&size);

	*bytes = size;
	return elf;
}

static const void *slot_tc_program(uint64_t *bytes)
{
	size_t size;
	const void *elf = slot_tc_bpf__elf_bytes(&size);

	*bytes = size;
	return elf;
}

/* The programs that come with this plane. An engine that is added later brings its own. */
static const void *program_of(const struct xdp_plane *plane, const struct engine *engine,
                              uint64_t *bytes)
{
	if (plane->tc)
		return engine->number == ENGINE_SLOT ? slot_tc_program(bytes) : NULL;
	if (engine->program)
		return engine->program(bytes);
	if (engine->number == ENGINE_SLOT)
		return slot_program(bytes);
	return engine->number == ENGINE_SPARSE ? sparse_program(bytes) : NULL;
}

int object_share_maps(struct xdp_plane *plane, struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		const char *name = bpf_map__name(map);
		int fd = bpf_object__find_map_fd_by_name(plane->bpf->obj, name), error = 0;

		if (strstr(name, ".rodata"))
			error = bpf_map__set_initial_value(map, &plane->settings,
			                                   sizeof(plane->settings));
		else if (!strcmp(name, "cells"))
			error = bpf_map__set_value_size(bpf_map__inner_map(map),
			                                (uint32_t)engine_cell_bytes(plane->room));
		else if (fd >= 0 && !strchr(name, '.'))
			error = bpf_map__reuse_fd(map, fd);
		if (error)
			return error;
	}
	return 0;
}

/* The tables by which floats are added, if the program has them. */
static int fill_tables(struct bpf_object *object)
{
	int map = bpf_object__find_map_fd_by_name(object, "float_tables"), error;
	struct float_tables *tables;
	uint32_t key = 0;

	if (map < 0)
		return 0;
	tables = malloc(sizeof(*tables));
	if (!tables)
		return -ENOMEM;
	float_tables_build(tables);
	error = bpf_map_update_elem(map, &key, tables, 0) ? -errno : 0;
	free(tables);
	return error;
}

/* Loads the program and gives it to the plane's. */
static int load_object(struct xdp_plane *plane, const struct engine *engine,
                       struct bpf_object *object)
{
	struct xdp_engine *loaded = &plane->engines[engine->number];
	int table = plane->tc ? tc_engines(plane) : bpf_map__fd(plane->bpf->maps.engines);
	int error, program;
	uint32_t number = engine->number;

	error = object_share_maps(plane, object);
	if (!error)
		error = bpf_object__load(object);
	if (!error)
		error = fill_tables(object);
	if (error)
		return error;
	program = bpf_program__fd(bpf_object__next_program(object, NULL));
	loaded->cells = bpf_object__find_map_fd_by_name(object, "cells");
	if (loaded->cells < 0)
		return -ENOENT;
	return bpf_map_update_elem(table, &number, &program, 0) ? -errno : 0;
}

static trib_status load_engine(struct xdp_plane *plane, const struct engine *engine)
{
	struct xdp_engine *loaded = &plane->engines[engine->number];
	uint64_t bytes = 0;
	const void *elf = program_of(plane, engine, &bytes);
	struct bpf_object *object;
	int error;

	if (loaded->object)
		return TRIB_OK;
	if (!elf)
		return status_fail(TRIB_ERR_SYSTEM, "engine %s has no program for the kernel",
		                   engine->name);
	object = bpf_object__open_mem(elf, bytes, NULL);
	error = object ? load_object(plane, engine, object) : -errno;
	if (error) {
		bpf_object__close(object);
		return status_fail(TRIB_ERR_SYSTEM,
		                   "the kernel refuses the program of engine %s: %s", engine->name,
		                   strerror(-error));
	}
	loaded->object = object;
	return TRIB_OK;
}

static trib_status open_cells(struct xdp_handle *handle, const struct xdp_lane_options *options)
{
	uint32_t value = (uint32_t)engine_cell_bytes(handle->plane->room);
	LIBBPF_OPTS(bpf_map_create_opts, flags, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	int all = handle->plane->engines[options->engine->number].cells;
	void *cells;

	handle->engine_cells = bpf_map_create(BPF_MAP_TYPE_ARRAY, "trib_cells", sizeof(uint32_t),
	                                      value, options->engine_cells, &flags);
	if (handle->engine_cells < 0)
		return status_fail_errno("no %u cells in the kernel", options->engine_cells);
	handle->engine_bytes = page_up((size_t)value * options->engine_cells);
	cells = mmap(NULL, handle->engine_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
	             handle->engine_cells, 0);
	if (cells == MAP_FAILED)
		return status_fail_errno("cannot map the cells");
	handle->engine =
		(struct engine_pool){ .lane = &handle->lane->state, .cells = cells, .step = value };
	if (bpf_map_update_elem(all, &handle->index, &handle->engine_cells, 0))
		return status_fail_errno("cannot hand the cells to the program");
	handle->lane->engine = options->engine->number;
	return TRIB_OK;
}

trib_status handle_engine_open(struct xdp_handle *handle, const struct xdp_lane_options *options)
{
	trib_status status = load_engine(handle->plane, options->engine);

	return status == TRIB_OK ? open_cells(handle, options) : status;
}

void handle_engine_close(struct xdp_handle *handle)
{
	uint32_t number = (uint32_t)handle->lane->engine;

	if (number)
		bpf_map_delete_elem(handle->plane->engines[number].cells, &handle->index);
	handle->lane->engine = 0;
	if (handle->engine.cells)
		munmap(handle->engine.cells, handle->engine_bytes);
	if (handle->engine_cells >= 0)
		close(handle->engine_cells);
}

void engines_close(struct xdp_plane *plane)
{
	for (unsigned i = 0; i < ENGINES_MAX; i++)
		bpf_object__close(plane->engines[i].object);
}
