/*
** clip.c: scales one unit's vector down until it fits (layout.h).
**
** The code computes the scale factor in floating point and truncates the scaled values towards
** zero. Privacy depends only on the exact check of the norm that follows.
** Tests: tests/sums/test_clip.c
*/
#include "sums/layout.h"

#include <math.h>

#define MOST_ROUNDS 8

/* Part of a matrix: components [first, end) of every cell. */
struct part {
  int128 *values;
  size_t cells;
  int components, first, end;
  int is_l1; /* 1: the norm is the sum of magnitudes */
};

/* Returns a number that has as many bits as the largest magnitude. */
static uint128 largest(const struct part *part) {
  uint128 bits = 0;
  for (size_t cell = 0; cell < part->cells; cell++) {
    for (int j = part->first; j < part->end; j++)
      bits |= lattice_magnitude(part->values[cell * (size_t)part->components + (size_t)j]);
  }
  return bits;
}

/*
** Divides each magnitude by 2^shift and returns the sum of the quotients, or the sum of their
** squares. Each quotient must be below 2^53, so that the sum is below 2^128.
*/
static uint128 measure(const struct part *part, int shift) {
  uint128 sum = 0;
  for (size_t cell = 0; cell < part->cells; cell++) {
    for (int j = part->first; j < part->end; j++) {
      uint128 magnitude =
          lattice_magnitude(part->values[cell * (size_t)part->components + (size_t)j]);
      uint64_t size = (uint64_t)(magnitude >> shift);
      sum += part->is_l1 ? size : (uint128)size * size;
    }
  }
  return sum;
}

/*
** Returns the least number of bits by which a magnitude must be shifted to be below 2^53. For any
** number of 128 bits this is at most 75.
*/
static int shift_of(uint128 size) {
  int shift = 0;
  for (size >>= 53; size > 0; size >>= 1) shift++;
  return shift;
}

/*
** Returns whether the sum of magnitudes is at most `reach` < 2^62. The sum cannot overflow: the
** loop ends once it exceeds `reach`, and each magnitude is at most 2^127.
*/
static int fits_l1(const struct part *part, uint128 reach) {
  uint128 sum = 0;
  for (size_t cell = 0; cell < part->cells; cell++) {
    for (int j = part->first; j < part->end; j++) {
      sum += lattice_magnitude(part->values[cell * (size_t)part->components + (size_t)j]);
      if (sum > reach) return 0;
    }
  }
  return 1;
}

/*
** Returns whether the norm is at most `reach` < 2^62. The comparison is exact. The code does not
** branch on the sign of a value. The processor cannot predict the signs of data, and mispredicted
** branches would take longer than the rest of the loop.
*/
static int fits(const struct part *part, int64_t reach) {
  if (part->is_l1) return fits_l1(part, (uint128)reach);
  uint128 limit = (uint128)reach * (uint128)reach, sum = 0;
  for (size_t cell = 0; cell < part->cells; cell++) {
    for (int j = part->first; j < part->end; j++) {
      int128 value = part->values[cell * (size_t)part->components + (size_t)j];
      int64_t narrow = (int64_t)value;
      if (narrow != value) return 0;
      sum += (uint128)((int128)narrow * narrow); /* each term is at most 2^126 */
      if (sum > limit) return 0;
    }
  }
  return 1;
}

/*
** Multiplies every value by a factor in [0, 1) and truncates the product towards zero. Rounding
** errors of norm() can make the factor slightly larger than 1. Nearly all values fit 64 bits, which
** the processor converts to and from doubles in one instruction.
*/
static void scale(const struct part *part, double factor) {
  for (size_t cell = 0; cell < part->cells; cell++) {
    for (int j = part->first; j < part->end; j++) {
      int128 *value = &part->values[cell * (size_t)part->components + (size_t)j];
      if (lattice_magnitude(*value) < (uint128)1 << 62) {
        *value = (int64_t)((double)(int64_t)*value * factor);
      } else {
        *value = (int128)((double)*value * factor);
      }
    }
  }
}

/*
** Returns the norm of a part. The result can be too small by at most a fraction 2^-41 of a
** Euclidean norm, or 2^-30 of a sum of magnitudes. It does not depend on the order of the values.
*/
static double norm(const struct part *part) {
  int shift = shift_of(largest(part));
  double size = (double)measure(part, shift);
  return ldexp(part->is_l1 ? size : sqrt(size), shift);
}

/*
** Scales `whole` down until the norm of its part `lead` is at most `reach`. Returns whether the
** norm was larger. Two rounds are normally enough. After MOST_ROUNDS rounds the loop scales by 0,
** so that it ends whatever the rounding errors are.
*/
static int shrink(const struct part *whole, const struct part *lead, int64_t reach) {
  double margin = 1;
  int round = 0;
  for (; !fits(lead, reach); round++, margin *= 1 - 0x1p-40)
    scale(whole, round < MOST_ROUNDS ? (double)reach / norm(lead) * margin : 0);
  return round > 0;
}

int clip_block(const struct layout *shape, const struct block *block, int128 *values, size_t cells,
               int components) {
  struct part whole = {values, cells, components, block->first, block->end, shape->is_l1};
  struct part lead = whole;
  lead.end = block->lead_end;
  int cut = shrink(&whole, &lead, block->lead_reach);
  if (block->lead_end < block->end || block->lead_reach > block->reach)
    cut |= shrink(&whole, &whole, block->reach);
  return cut;
}

unsigned clip_vector(const struct layout *shape, int128 *values, size_t cells, int components) {
  unsigned scaled = 0;
  for (size_t i = 0; shape->each && i < cells * (size_t)components; i++)
    values[i] = lattice_clamp(values[i], -shape->each, shape->each);
  for (int i = 0; i < shape->block_count; i++)
    scaled |= (unsigned)clip_block(shape, &shape->blocks[i], values, cells, components) << i;
  return scaled;
}

int clip_sum(int128 *values, size_t count, int64_t reach) {
  struct part part = {values, count, 1, 0, 1, 1};
  return shrink(&part, &part, reach);
}
