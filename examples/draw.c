/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw: digits as written by a shaky hand. Strokes have wandering ends and are slanted, stretched,
 * turned and shifted. The pen has any width, and the paper is dirty.
 */
#include "digits.h"
#include "random.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARKS_MAX = 4, ARC_PIECES = 14 };

/*
 * A digit occupies x -0.6..0.6 and y -1..1, y downwards. An arc has the center (x, y), the radii
 * (a, b), and goes from angle `from` to `to` in degrees: 0 is right, 90 is down. A line goes from
 * (x, y) to (a, b).
 */
struct mark {
	bool arc;
	float x, y, a, b, from, to;
	float chance; /* probability of being drawn; 0: an unused entry */
};

#define LINE(x0, y0, x1, y1, chance)                \
	{                                           \
		false, x0, y0, x1, y1, 0, 0, chance \
	}
#define ARC(cx, cy, rx, ry, from, to)             \
	{                                         \
		true, cx, cy, rx, ry, from, to, 1 \
	}

static const struct mark digit_marks[DIGITS_CLASSES][MARKS_MAX] = {
	{ ARC(0, 0, 0.6f, 1, 0, 360) },
	{ LINE(0, -1, 0, 1, 1), LINE(-0.35f, -0.6f, 0, -1, 0.5f), LINE(-0.4f, 1, 0.4f, 1, 0.3f) },
	{ ARC(0, -0.5f, 0.55f, 0.5f, 180, 400), LINE(0.42f, -0.18f, -0.55f, 1, 1),
	  LINE(-0.55f, 1, 0.6f, 1, 1) },
	{ ARC(0, -0.5f, 0.5f, 0.5f, 200, 450), ARC(0, 0.5f, 0.58f, 0.5f, 270, 520) },
	{ LINE(0.15f, -1, -0.6f, 0.3f, 1), LINE(-0.6f, 0.3f, 0.6f, 0.3f, 1),
	  LINE(0.25f, -0.2f, 0.2f, 1, 1), LINE(0.15f, -1, 0.25f, -0.2f, 0.6f) },
	{ LINE(0.5f, -1, -0.4f, -1, 1), LINE(-0.4f, -1, -0.4f, -0.1f, 1),
	  ARC(0, 0.35f, 0.55f, 0.62f, 230, 505) },
	{ ARC(0, 0.45f, 0.52f, 0.55f, 0, 360), ARC(0.45f, 0.35f, 0.97f, 1.35f, 180, 270) },
	{ LINE(-0.55f, -1, 0.55f, -1, 1), LINE(0.55f, -1, -0.15f, 1, 1),
	  LINE(-0.25f, 0.05f, 0.5f, 0.05f, 0.3f) },
	{ ARC(0, -0.5f, 0.45f, 0.5f, 0, 360), ARC(0, 0.5f, 0.55f, 0.5f, 0, 360) },
	{ ARC(0, -0.45f, 0.52f, 0.55f, 0, 360), ARC(-0.45f, -0.35f, 0.97f, 1.35f, 0, 90) },
};

/* Maps a digit's coordinates to pixels. Also has the pen's radius, in pixels. */
struct hand {
	float xx, xy, yx, yy, x, y;
	float wave, wave_rate, wave_phase;
	float pen, ink;
};

static struct hand hand_choose(struct random *r)
{
	float wide = random_between(r, 6, 11), high = random_between(r, 6.5f, 10);
	float turn = random_between(r, -0.25f, 0.25f), slant = random_between(r, -0.45f, 0.25f);
	float c = cosf(turn), s = sinf(turn);
	struct hand h = { 0 };

	h.xx = c * wide;
	h.xy = -s * high - c * slant * high;
	h.yx = s * wide;
	h.yy = c * high - s * slant * high;
	h.x = (DIGITS_SIDE - 1) / 2.0f + random_between(r, -2, 2);
	h.y = (DIGITS_SIDE - 1) / 2.0f + random_between(r, -2, 2);
	h.wave = random_between(r, 0, 0.12f);
	h.wave_rate = random_between(r, 1, 4);
	h.wave_phase = random_between(r, 0, 6.3f);
	h.pen = random_between(r, 0.5f, 1.7f);
	h.ink = random_between(r, 0.6f, 1);
	return h;
}

static void hand_move(const struct hand *h, float *x, float *y)
{
	float u = *x + h->wave * sinf(h->wave_rate * *y + h->wave_phase), v = *y;

	*x = h->xx * u + h->xy * v + h->x;
	*y = h->yx * u + h->yy * v + h->y;
}

static int pixel_clamp(float at)
{
	return at < 0 ? 0 : at > DIGITS_SIDE - 1 ? DIGITS_SIDE - 1 : (int)at;
}

/* Draws a segment. Each pixel keeps the darkest ink of all strokes. */
static void segment_draw(float *paper, const struct hand *h, float x0, float y0, float x1, float y1)
{
	float reach = h->pen + 1, dx = x1 - x0, dy = y1 - y0;
	float length2 = dx * dx + dy * dy + 1e-9f;
	int left = pixel_clamp(fminf(x0, x1) - reach), right = pixel_clamp(fmaxf(x0, x1) + reach);
	int top = pixel_clamp(fminf(y0, y1) - reach), bottom = pixel_clamp(fmaxf(y0, y1) + reach);

	for (int y = top; y <= bottom; y++)
		for (int x = left; x <= right; x++) {
			float px = (float)x - x0, py = (float)y - y0;
			float along = fminf(fmaxf((px * dx + py * dy) / length2, 0), 1);
			float ex = px - along * dx, ey = py - along * dy;
			float away = sqrtf(ex * ex + ey * ey);
			float ink = h->ink * fminf(fmaxf(h->pen + 0.5f - away, 0), 1);
			float *pixel = &paper[y * DIGITS_SIDE + x];

			*pixel = fmaxf(*pixel, ink);
		}
}

static void mark_draw(float *paper, const struct hand *h, const struct mark *m, struct random *r)
{
	const float shake = 0.09f, degree = 0.01745329252f;
	float x = m->x + random_between(r, -shake, shake);
	float y = m->y + random_between(r, -shake, shake);
	float a = m->a + random_between(r, -shake, shake);
	float b = m->b + random_between(r, -shake, shake);
	float from = (m->from + random_between(r, -12, 12)) * degree;
	float to = (m->to + random_between(r, -12, 12)) * degree;
	int pieces = m->arc ? ARC_PIECES : 4;
	float x0 = 0, y0 = 0;

	for (int i = 0; i <= pieces; i++) {
		float part = (float)i / (float)pieces, angle = from + (to - from) * part;
		float x1 = m->arc ? x + a * cosf(angle) : x + (a - x) * part;
		float y1 = m->arc ? y + b * sinf(angle) : y + (b - y) * part;

		hand_move(h, &x1, &y1);
		if (i > 0)
			segment_draw(paper, h, x0, y0, x1, y1);
		x0 = x1;
		y0 = y1;
	}
}

/* Adds a scratch, sometimes a blot that hides a part, and grain everywhere. */
static void paper_soil(float *paper, const struct hand *h, struct random *r)
{
	const float side = DIGITS_SIDE - 1;
	float grain = random_between(r, 0, 0.18f);

	if (random_chance(r, 0.3f)) {
		float x = random_between(r, 0, side), y = random_between(r, 0, side);

		segment_draw(paper, h, x, y, x + random_between(r, -6, 6),
		             y + random_between(r, -6, 6));
	}
	if (random_chance(r, 0.3f)) {
		int x = (int)random_between(r, 5, 19), y = (int)random_between(r, 5, 19);

		for (int i = 0; i < 4; i++)
			memset(&paper[(y + i) * DIGITS_SIDE + x], 0, 4 * sizeof(*paper));
	}
	for (int i = 0; i < DIGITS_PIXELS; i++)
		paper[i] += grain * random_normal(r);
}

static void digit_draw(uint8_t *pixels, int digit, struct random *r)
{
	float paper[DIGITS_PIXELS] = { 0 };
	struct hand h = hand_choose(r);

	for (int i = 0; i < MARKS_MAX; i++) {
		const struct mark *m = &digit_marks[digit][i];

		if (random_chance(r, m->chance))
			mark_draw(paper, &h, m, r);
	}
	paper_soil(paper, &h, r);
	for (int i = 0; i < DIGITS_PIXELS; i++)
		pixels[i] = (uint8_t)(fminf(fmaxf(paper[i], 0), 1) * 255);
}

int digits_draw(struct digits *set, size_t count, uint64_t seed, char *why)
{
	*set = (struct digits){ 0 };
	set->pixels = calloc(count ? count : 1, DIGITS_PIXELS);
	set->labels = calloc(count ? count : 1, 1);
	if (!set->pixels || !set->labels) {
		snprintf(why, DIGITS_WHY, "no memory for %zu drawn digits: %s", count,
		         strerror(errno));
		digits_free(set);
		return -1;
	}
	for (size_t i = 0; i < count; i++) {
		struct random r = random_of(seed, i);

		set->labels[i] = (uint8_t)(random_next(&r) % DIGITS_CLASSES);
		digit_draw(set->pixels + i * DIGITS_PIXELS, set->labels[i], &r);
	}
	set->count = count;
	return 0;
}
