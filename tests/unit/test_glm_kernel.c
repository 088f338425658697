/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of generalized linear models. Every set of loops that this processor has gives the same
 * bits as the sums below, which are written from the definition in glm_kernel.h.
 */
#include "glm/kernel/glm_kernel.h"

#include "short.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ROWS_MAX 40u
#define COLUMNS_MAX 10000u

static const char *const names[] = { "plain", "avx2", "avx512", "neon", "neon-dot" };

static uint64_t seed;

static uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint32_t below(uint32_t n)
{
	return n ? (uint32_t)(draw() % n) : 0;
}

/* ALIKE: all codes are the largest, and all weights and scales have one value: the largest sums. */
enum mood { MILD, HUGE_VALUES, EXTREME, ALIKE };

static uint64_t alike; /* the choice of a case */

/* A case: what the kernel sees, and the same features without any layout. */
struct bench {
	struct glm_matrix matrix;
	struct glm_weights weights;
	float *value;  /* rows x columns */
	uint8_t *code; /* rows x columns */
	uint32_t pick[ROWS_MAX], n;
	float scale_f[ROWS_MAX];
	int32_t scale_i[ROWS_MAX];
	uint32_t from, to;
	enum mood mood;
};

static void *room(size_t bytes)
{
	void *memory = aligned_alloc(64, (bytes + 64 + 63) / 64 * 64);

	assert_non_null(memory);
	memset(memory, 0, (bytes + 64 + 63) / 64 * 64);
	return memory;
}

static float float_draw(enum mood mood)
{
	union {
		uint32_t bits;
		float value;
	} any = { .bits = (uint32_t)draw() };

	if (mood == ALIKE)
		return alike & 16 ? 1.9999999f : -127.99999f;
	if (mood == MILD)
		return (float)((int32_t)below(2000001) - 1000000) / 500000.f;
	if (mood == HUGE_VALUES && below(4))
		return ldexpf((float)((int32_t)below(2001) - 1000), (int)below(60) - 40);
	if (!below(20))
		return below(2) ? 3.0e38f : -3.0e38f;
	return isfinite(any.value) ? any.value : 0;
}

static int32_t integer_draw(enum mood mood, int32_t limit)
{
	/* The values of which a byte, or 16 bits, are the least or the largest. */
	static const int32_t edges[] = {
		0x7f7f7f, 0x808080, 0x8080, 0x8000, 0x7fff, 0x80, 0x7f8000
	};

	if (mood == ALIKE && alike % 9 < 7 && edges[alike % 9] <= limit)
		return alike & 16 ? edges[alike % 9] : -edges[alike % 9];
	if (mood == ALIKE)
		return alike & 16 ? limit : -limit;
	if (mood == EXTREME && below(3))
		return below(2) ? limit : -limit;
	return (int32_t)(draw() % (2 * (uint64_t)limit + 1) - (uint64_t)limit);
}

static uint8_t code_draw(enum mood mood, uint32_t bits)
{
	uint32_t top = (1u << bits) - 1;

	if (mood == EXTREME || mood == ALIKE)
		return (uint8_t)top;
	return (uint8_t)(mood == MILD ? below(top + 1) : below(2) ? top : 0);
}

/* Sparse rows hold about a third of the features, and some rows are empty. */
static void store_sparse(struct bench *b)
{
	struct glm_matrix *m = &b->matrix;
	size_t cells = (size_t)m->rows * m->columns, entry = 0;

	m->start = room((m->rows + 1) * sizeof(*m->start));
	m->column = room(cells * sizeof(*m->column));
	m->value = m->bits ? NULL : room(cells * sizeof(*m->value));
	m->code = m->bits ? room(cells) : NULL;
	for (uint32_t r = 0; r < m->rows; r++) {
		bool empty = !below(4);

		for (uint32_t j = 0; j < m->columns; j++) {
			size_t cell = (size_t)r * m->columns + j;

			if (empty || below(3)) {
				b->value[cell] = 0;
				b->code[cell] = 0;
				continue;
			}
			m->column[entry] = j;
			if (m->bits)
				m->code[entry] = b->code[cell];
			else
				m->value[entry] = b->value[cell];
			entry++;
		}
		m->start[r + 1] = entry;
	}
}

static void store(struct bench *b)
{
	struct glm_matrix *m = &b->matrix;

	if (m->layout == GLM_SPARSE) {
		store_sparse(b);
	} else if (m->layout == GLM_DENSE) {
		m->stride = (m->columns + 15) / 16 * 16;
		m->dense = room(m->rows * m->stride * sizeof(float));
		for (uint32_t r = 0; r < m->rows; r++)
			memcpy(m->dense + r * m->stride, b->value + (size_t)r * m->columns,
			       m->columns * sizeof(float));
	} else {
		m->weave_stride = weave_row_bytes(m->columns, m->bits);
		m->weave = room(m->rows * m->weave_stride);
		for (uint32_t r = 0; r < m->rows; r++)
			weave_row(m->weave + r * m->weave_stride, b->code + (size_t)r * m->columns,
			          m->columns, m->bits);
	}
}

static uint32_t columns_draw(void)
{
	static const uint32_t some[] = { 1, 15, 16, 127, 128, 129, 255, 256, 4096, 4097, 9999 };

	return below(3) ? 1 + below(600) : some[below(sizeof(some) / sizeof(some[0]))];
}

static void bench_make(struct bench *b, enum glm_layout layout, uint32_t bits)
{
	/* Loops may leave out bytes that are 0 in all weights, or in all scales. */
	static const int32_t most[] = { GLM_WEIGHT_MAX, 0x808080, 0x7f7f7f, 0x8080, 0x7f7f, 1 };
	struct glm_matrix *m = &b->matrix;
	int32_t weight_max = most[below(6)], scale_max = most[2 + below(4)];
	size_t cells;

	memset(b, 0, sizeof(*b));
	b->mood = (enum mood)below(4);
	alike = draw();
	m->layout = layout;
	m->bits = bits;
	m->columns = columns_draw();
	m->rows = 1 + below(m->columns > 4000 ? 5 : ROWS_MAX - 1);
	cells = (size_t)m->rows * m->columns;
	b->value = room(cells * sizeof(float));
	b->code = room(cells);
	for (size_t i = 0; i < cells; i++) {
		b->value[i] = float_draw(b->mood);
		b->code[i] = bits ? code_draw(b->mood, bits) : 0;
	}
	store(b);
	b->weights.x = room(m->columns * sizeof(float));
	b->weights.u = room(m->columns * sizeof(int32_t));
	b->weights.limbs = room(kernel_limb_bytes(m->columns));
	for (uint32_t j = 0; j < m->columns; j++) {
		b->weights.x[j] = float_draw(b->mood);
		b->weights.u[j] = integer_draw(b->mood, weight_max);
	}
	b->n = below(ROWS_MAX + 1);
	for (uint32_t k = 0; k < b->n; k++) {
		b->pick[k] = below(m->rows);
		b->scale_f[k] = float_draw(b->mood);
		b->scale_i[k] = integer_draw(b->mood, below(64) ? scale_max : INT32_MAX);
	}
	b->from = below(2) ? 0 : below(m->columns);
	b->to = below(2) ? m->columns : b->from + below(m->columns - b->from + 1);
}

static void bench_free(struct bench *b)
{
	void *all[] = { b->matrix.start,  b->matrix.column, b->matrix.value, b->matrix.code,
		        b->matrix.dense,  b->matrix.weave,  b->weights.x,    b->weights.u,
		        b->weights.limbs, b->value,         b->code };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
}

static int64_t term(float product, uint64_t *saturations)
{
	if (product >= -GLM_TERM_MAX && product <= GLM_TERM_MAX)
		return llrintf(product);
	(*saturations)++;
	return product > 0 ? (int64_t)GLM_TERM_MAX : -(int64_t)GLM_TERM_MAX;
}

/* The definition. A sparse row that has no entry adds 0, which a feature 0 does too. */
static void sums_expect(const struct bench *b, int64_t *activation, int64_t *g, uint64_t *forward,
                        uint64_t *backward)
{
	for (uint32_t k = 0; k < b->n; k++) {
		for (uint32_t j = b->from; j < b->to; j++) {
			size_t cell = (size_t)b->pick[k] * b->matrix.columns + j;

			if (b->matrix.bits) {
				activation[k] += (int64_t)b->code[cell] * b->weights.u[j];
				g[j] += (int64_t)b->code[cell] * b->scale_i[k];
			} else if (b->value[cell] != 0) {
				activation[k] +=
					term(b->value[cell] * (b->weights.x[j] * 0x1p24f), forward);
				g[j] += term(b->value[cell] * (b->scale_f[k] * 0x1p20f), backward);
			}
		}
	}
}

/* inf * 0 is NaN, and the kernel counts it: dense rows only, so the test leaves it out. */
static void bench_calm_zeros(struct bench *b)
{
	for (uint32_t j = 0; j < b->matrix.columns; j++)
		if (!isfinite(b->weights.x[j] * 0x1p24f))
			b->weights.x[j] = 1;
	for (uint32_t k = 0; k < b->n; k++)
		if (!isfinite(b->scale_f[k] * 0x1p20f))
			b->scale_f[k] = -1;
}

static void bench_check(const struct bench *b, const char *name)
{
	const uint32_t columns = b->matrix.columns;
	int64_t *g = room(columns * sizeof(*g)), *expected_g = room(columns * sizeof(*g));
	int64_t activation[ROWS_MAX], expected[ROWS_MAX];
	uint64_t forward = 0, backward = 0;

	for (uint32_t k = 0; k < ROWS_MAX; k++)
		expected[k] = activation[k] = (int64_t)(draw() >> 8);
	for (uint32_t j = 0; j < columns; j++)
		expected_g[j] = g[j] = (int64_t)(draw() >> 8);
	sums_expect(b, expected, expected_g, &forward, &backward);
	kernel_prepare_limbs(&b->matrix, &b->weights, b->from, b->to);
	if (kernel_forward(&b->matrix, &b->weights, b->pick, b->n, b->from, b->to, activation) !=
	            forward ||
	    kernel_backward(&b->matrix, b->pick, b->n, b->scale_f, b->scale_i, b->from, b->to, g) !=
	            backward ||
	    memcmp(activation, expected, sizeof(expected)) != 0 ||
	    memcmp(g, expected_g, columns * sizeof(*g)) != 0)
		fail_msg("%s: layout %d, %u bits, %u rows, columns [%u, %u) of %u, mood %d", name,
		         (int)b->matrix.layout, b->matrix.bits, b->n, b->from, b->to, columns,
		         (int)b->mood);
	free(g);
	free(expected_g);
}

static void layout_check(enum glm_layout layout, uint32_t bits, uint64_t cases)
{
	uint64_t first = seed;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!kernel_use(names[i]))
			continue;
		assert_string_equal(kernel_name(), names[i]);
		seed = first;
		for (uint64_t c = 0; c < cases; c++) {
			struct bench b;

			bench_make(&b, layout, bits);
			bench_calm_zeros(&b);
			bench_check(&b, names[i]);
			bench_free(&b);
		}
	}
}

static void test_dense(void **state)
{
	(void)state;
	layout_check(GLM_DENSE, 0, test_cases("cases", 300));
}

static void test_sparse(void **state)
{
	(void)state;
	for (uint32_t bits = 0; bits <= 8; bits += 4)
		layout_check(GLM_SPARSE, bits, test_cases("cases", 150));
}

static void test_weaved(void **state)
{
	(void)state;
	for (uint32_t bits = 1; bits <= 8; bits++)
		layout_check(GLM_WEAVED, bits, test_cases("cases", 150));
}

/* NaN and infinities are clamped alike by all loops. */
static void test_strange_floats(void **state)
{
	enum { COLUMNS = 37 };
	const float strange[] = { NAN,    INFINITY, -INFINITY,  0.f,  -0.f,
		                  1e-45f, 3e38f,    127.99999f, 128.f };
	float x[COLUMNS], dense[48] = { 0 }, scale = 1;
	struct glm_matrix matrix = {
		.layout = GLM_DENSE, .rows = 1, .columns = COLUMNS, .dense = dense, .stride = 48
	};
	struct glm_weights weights = { .x = x };
	uint32_t row = 0;

	(void)state;
	for (uint32_t i = 0; i < COLUMNS; i++) {
		dense[i] = strange[i % 9];
		x[i] = strange[i / 9 % 9] == 0.f ? strange[i % 7] : 1.f;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int64_t activation = 0, expected = 0, g[COLUMNS] = { 0 };
		uint64_t saturations = 0, counted = 0;

		if (!kernel_use(names[i]))
			continue;
		for (uint32_t j = 0; j < COLUMNS; j++)
			expected += term(dense[j] * (x[j] * 0x1p24f), &saturations);
		assert_int_equal(
			kernel_forward(&matrix, &weights, &row, 1, 0, COLUMNS, &activation),
			saturations);
		assert_true(activation == expected);
		for (uint32_t j = 0; j < COLUMNS; j++)
			assert_true(term(dense[j] * 0x1p20f, &counted) < INT32_MAX);
		assert_int_equal(kernel_backward(&matrix, &row, 1, &scale, NULL, 0, COLUMNS, g),
		                 counted);
		assert_true(g[0] == -(int64_t)GLM_TERM_MAX);
		assert_true(g[1] == (int64_t)GLM_TERM_MAX);
	}
}

/* Parts that threads take add up to the whole. */
static void test_parts_of_threads(void **state)
{
	static const enum glm_layout layouts[] = { GLM_SPARSE, GLM_DENSE, GLM_WEAVED };

	(void)state;
	for (uint64_t c = 0; c < test_cases("cases", 90); c++) {
		enum glm_layout layout = layouts[c % 3];
		uint32_t bits = layout == GLM_WEAVED ? 1 + below(8) : 0, parts = 1 + below(9);
		int64_t whole[ROWS_MAX] = { 0 }, sum[ROWS_MAX] = { 0 }, *g, *g_parts;
		struct glm_index index;
		struct bench b;

		bench_make(&b, layout, bits);
		g = room(b.matrix.columns * sizeof(*g));
		g_parts = room(b.matrix.columns * sizeof(*g));
		assert_true(kernel_index_build(&index, &b.matrix, parts));
		kernel_prepare_limbs(&b.matrix, &b.weights, 0, b.matrix.columns);
		kernel_forward(&b.matrix, &b.weights, b.pick, b.n, 0, b.matrix.columns, whole);
		kernel_backward(&b.matrix, b.pick, b.n, b.scale_f, b.scale_i, 0, b.matrix.columns,
		                g);
		memset(b.weights.limbs, 0x55, kernel_limb_bytes(b.matrix.columns));
		for (uint32_t t = 0; t < parts; t++) {
			kernel_prepare_limbs(&b.matrix, &b.weights,
			                     kernel_bound(&b.matrix, t, parts),
			                     kernel_bound(&b.matrix, t + 1, parts));
			kernel_forward_part(&b.matrix, &b.weights, b.pick, b.n, &index, t, sum);
			kernel_backward_part(&b.matrix, b.pick, b.n, b.scale_f, b.scale_i, &index,
			                     t, g_parts);
		}
		assert_memory_equal(whole, sum, sizeof(sum));
		assert_memory_equal(g, g_parts, b.matrix.columns * sizeof(*g));
		kernel_index_free(&index);
		bench_free(&b);
		free(g);
		free(g_parts);
	}
}

static void test_prepare(void **state)
{
	float x[5] = { 1.f, -0.5f, 1e30f, -1e30f, 3.f * 0x1p-26f }, step[5] = { 0.5f, 1, 1, 1, 1 };
	struct glm_matrix matrix = { .layout = GLM_SPARSE, .columns = 5, .bits = 4 };
	int32_t u[5] = { 7, 7, 7, 7, 7 };
	struct glm_weights weights = { .x = x, .u = u };

	(void)state;
	assert_int_equal(kernel_prepare(&matrix, step, &weights, 1, 5), 2);
	assert_int_equal(u[0], 7); /* outside of the range */
	assert_int_equal(u[1], -(1 << 23));
	assert_int_equal(u[2], GLM_WEIGHT_MAX);
	assert_int_equal(u[3], -GLM_WEIGHT_MAX);
	assert_int_equal(u[4], 1); /* 0.75 */
	assert_int_equal(kernel_prepare(&matrix, step, &weights, 0, 1), 0);
	assert_int_equal(u[0], 1 << 23);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dense),
		cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_weaved),
		cmocka_unit_test(test_strange_floats),
		cmocka_unit_test(test_parts_of_threads),
		cmocka_unit_test(test_prepare),
	};
	const char *asked = getenv("TRIB_SEED");

	seed = asked ? strtoull(asked, NULL, 0) : 0x9e3779b97f4a7c15ull;
	printf("seed %llu (TRIB_SEED), loops: %s\n", (unsigned long long)seed, kernel_name());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
