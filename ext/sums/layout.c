/* layout.c: see layout.h.
** Tests: tests/sums/test_layout.c, tests/sums/test_clip.c, tests/sums/test_vectors_input.py,
** tests/sums/test_within_neighbours.py, tests/mechanism/test_cross_tables.py */
#include "sums/layout.h"

#include <math.h>

#include "noise/noise.h"

#define RADIUS_BITS 53 /* of families that do not say it */

#define COUNT_SPREAD 1.4142135623730952 /* sqrt(2), the spread of counts (layout.h) */

/* ---- sizes ----------------------------------------------------------------------------------- */

int64_t layout_root_up(uint128 x) {
  int64_t root = (int64_t)sqrt((double)x);
  while (root > 0 && (uint128)(root - 1) * (uint128)(root - 1) >= x) root--;
  while ((uint128)root * (uint128)root < x) root++;
  return root;
}

#define BITS_OF_LEVEL 4 /* of a tree for the sum norm */

struct tree tree_make(int bits, int is_l1) {
  return (struct tree){bits, is_l1 ? (bits + BITS_OF_LEVEL - 1) / BITS_OF_LEVEL : bits};
}

int tree_level(struct tree tree, int level) {
  int first = 0;
  for (int i = 1; i < level; i++) first += 1 << tree_bits(tree, i);
  return first;
}

static int log2_of(int power) {
  int log = 0;
  while (power >> (log + 1)) log++;
  return log;
}

static int is_private(const struct contribution *question) {
  return question->keys == KEYS_PRIVATE;
}

int layout_width(const struct family *family, int size, int is_private) {
  int64_t width = family->components;
  if (family->has_vector) width += size;
  if (family->has_bins) width = size;
  if (family->is_tree) {
    struct tree tree = tree_make(log2_of(size), family->is_l1);
    width = tree_level(tree, tree.levels + 1);
  }
  width += family->counts_if_private && is_private;
  return width < LAYOUT_MAX_COORDINATES ? (int)width : 0;
}

static double height_of(const struct layout *shape) {
  if (!shape->tree.levels) return 1;
  return shape->is_l1 ? shape->tree.levels : sqrt(shape->tree.levels);
}

/* Returns the factor w of the component that counts. For a mean of d numbers in the sum norm, the
** sum of the variances of all coordinates is at worst (d + 1/w^2) times the variance of one
** coordinate. The standard deviation of the noise is proportional to 1 + w. The sum of the
** variances is therefore proportional to (1 + w)^2 (d + 1/w^2), which is least at w = d^(-1/3). The
** function rounds this w to a power of two, which is the same on every machine. */
static double count_factor_of(const struct layout *shape, const struct contribution *question) {
  const struct family *family = question->family;
  double factor = family->count_factor;
  if (family->count_in_clips) factor *= question->clip * height_of(shape);
  double size = question->size,
         bound = 8; /* at this size^2, two powers of 2 are equally near to w */
  for (; family->count_falls && size * size > bound; bound *= 64) factor /= 2;
  return factor;
}

/* The bound on the norm of a unit's vector, without the count that selects private keys. */
static double norm_of(const struct layout *shape, const struct contribution *question) {
  const struct family *family = question->family;
  double norm = question->clip * family->row_norm * height_of(shape);
  if (family->each) { /* no cell exceeds 1 */
    int cells = shape->cells ? shape->cells : shape->max_groups;
    norm = fmin(norm, shape->is_l1 ? cells : sqrt(cells));
  }
  return family->is_l1 && family->is_ratio ? norm + shape->count_factor : norm;
}

/* Returns how many coordinates one unit can change, or two units if neighbours replace a unit. */
static int touched_of(const struct layout *shape, int by_unit, int replace) {
  int64_t one = (int64_t)shape->width * (shape->cells ? shape->cells : shape->max_groups);
  if (!by_unit) { /* a row touches its own slot, or a node on each level of the tree */
    one = shape->tree.levels ? shape->tree.levels : shape->components;
    if (shape->family->has_bins) one += shape->selects;
  }
  if (replace) one *= 2;
  return shape->coordinates && one > shape->coordinates ? shape->coordinates : (int)one;
}

/* Returns how many units a household may count, or 1 if none is protected. */
static double household_size(const struct contribution *question) {
  return question->household ? (double)question->household / HOUSEHOLDS_PARTS : 1;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void add_block(struct layout *shape, int first, int end, double norm, double spread) {
  /* If the ball has no other block, this product is an integer already, by the choice of scale. */
  int64_t reach = (int64_t)ceil(norm * shape->scale);
  shape->blocks[shape->block_count++] = (struct block){first, end, end, reach, reach, spread};
}

/* The blocks of a mean of vectors in the sum norm: clip_vector() first scales count and vector by
** one factor until the count fits, and then the vector alone. The spread of the count is 1, because
** two counts between 0 and the bound are at most the bound apart. */
static void make_ratio_blocks(struct layout *shape, const struct contribution *question) {
  int64_t count = shape->count_steps, any = INT64_MAX >> 1;
  shape->blocks[shape->block_count++] = (struct block){0, 1, shape->components, count, any, 1};
  add_block(shape, 1, shape->components, question->clip, 2);
  shape->blocks[1].lead_reach = shape->blocks[1].reach += shape->components; /* covers rounding */
}

static void make_blocks(struct layout *shape, const struct contribution *question) {
  const struct family *family = question->family;
  if (family->is_l1 && family->is_ratio) {
    make_ratio_blocks(shape, question);
    return;
  }
  /* Block 0 is the count that selects keys, if there is one. The last block holds the sums. In
  ** histograms and trees this count is no component of a bin, so both blocks begin at 0. */
  if (shape->selects) add_block(shape, 0, 1, shape->count_factor, family->is_l1 ? 2 : COUNT_SPREAD);
  int first = family->has_bins ? 0 : shape->selects;
  add_block(shape, first, shape->components, norm_of(shape, question), family->spread);
  struct block *block = &shape->blocks[shape->block_count - 1];
  if (family->is_ratio) { /* clip_vector() scales the count and the sums by one factor */
    double rows = family->count_in_clips ? 1 : question->clip;
    block->lead_end = 1;
    block->lead_reach = (int64_t)(rows * (double)shape->count_steps);
    /* The norm may be irrational, and a row at the end of its range must fit after rounding. */
    block->reach += 2;
  }
  /* sqrt(levels) may be irrational too. */
  if (shape->tree.levels && !family->is_l1) block->lead_reach = block->reach += 2;
}

/* Returns the largest distance of two units of a mean of vectors in the sum norm. A unit without
** rows is 0. The count of any other unit is a multiple of w = count_steps before it is clipped to
** w. The vector of each row has at most the norm R, so only the bound of the count scales the
** count. Each round of clip_vector() multiplies the count by at least 1 - 2^-29 of what would be w,
** and truncates it, so after all rounds it is at least w (1 - 2^-25) - 8, or the whole vector is 0.
** So two units differ by at most w + R if one of them is 0, and otherwise by at most 2 R and the
** slack of the count. */
static uint64_t ratio_replaced(const struct layout *shape) {
  uint64_t count = (uint64_t)shape->count_steps, vector = (uint64_t)shape->blocks[1].lead_reach;
  uint64_t both = 2 * vector + (count >> 25) + 8;
  return both > count + vector ? both : count + vector;
}

/* Each component is in the leading part of exactly one block, so the distance in the sum norm is a
** sum over the leading parts, exactly. */
static uint64_t sum_distance_of(const struct layout *shape, int replace) {
  uint64_t sum = 0;
  if (replace && shape->family->is_l1 && shape->family->is_ratio) return ratio_replaced(shape);
  for (int i = 0; i < shape->block_count; i++) {
    const struct block *block = &shape->blocks[i];
    sum += (uint64_t)block->lead_reach * (replace ? (uint64_t)block->spread : 1);
  }
  return sum;
}

/* The root of the sum of the squared distances in the blocks, rounded up. The margins cover the
** rounding errors. */
static uint64_t distance_of(const struct layout *shape, int replace) {
  if (shape->is_l1) return sum_distance_of(shape, replace);
  double sum = 0;
  int exact = shape->block_count == 1 && (!replace || shape->coordinates == 1);
  for (int i = 0; i < shape->block_count; i++) {
    const struct block *block = &shape->blocks[i];
    double reach = (double)block->reach;
    if (exact) return (uint64_t)block->reach * (replace && block->spread == 2 ? 2 : 1);
    /* Truncation can move a vector out of its cone (layout.h), by less than `out` steps. */
    if (replace) {
      double out = 2 * sqrt(shape->touched);
      if (shape->family->rounds_off_curve) /* rounding moves each row by up to one more step */
        out += (double)block->lead_reach / (double)shape->count_steps + 1;
      reach = block->spread * (reach + out) + 2 * out;
    }
    sum += reach * reach;
  }
  return (uint64_t)ceil(sqrt(sum) * (1 + 0x1p-50)) + 1;
}

/* ---- clipped units --------------------------------------------------------------------------- */

#define DIAGNOSE_PART    (5.0 / 16) /* sqrt(1 + (5/16)^2) = 1.0477 */
#define DIAGNOSE_PART_L1 (3.0 / 64) /* 1 + 3/64 = 1.0469 */

/* Returns the largest sum of magnitudes of a unit after clipping, or 0 if the release is no total
** whose units tell their sizes. With private keys, nobody knows which rows a total has. */
static double most_of(const struct layout *shape, int by_unit) {
  const struct family *family = shape->family;
  if (!family->is_linear || shape->max_groups) return 0;
  double reach = (double)shape->blocks[0].reach;
  if (shape->ways) { /* rows in one cell of the full table are in one cell of each table */
    double least = 0;
    for (int i = 0; i < shape->ways->count; i++) {
      const struct cross_table *table = &shape->ways->tables[i];
      double multiplier = (double)table->multiplier;
      least += shape->is_l1 ? multiplier : multiplier * multiplier / table->cells;
    }
    return reach / (shape->is_l1 ? least : sqrt(least));
  }
  int touched = by_unit ? shape->coordinates : shape->components;
  double most = shape->is_l1 ? reach : reach * sqrt(touched);
  return shape->each ? fmin(most, (double)shape->each * touched) : most;
}

/* The same if households are protected, too. All coordinates may change when one unit goes, because
** those of its household are scaled by another factor. */
static void add_wide_diagnoses(struct layout *shape, const struct contribution *question,
                               double most) {
  double distance = (double)shape->distance, parts = most > 0 ? 2 : 1;
  int own = DIAGNOSES + (most > 0 ? TALLY_RUNGS : 0);
  int64_t steps = (int64_t)(distance * DIAGNOSE_PART / sqrt(parts + 2));
  double counted = ceil(sqrt(parts) * (double)steps * (1 + 0x1p-50));
  int128 shared = (int128)counted * (unsigned)question->household / HOUSEHOLDS_PARTS;
  double moved = counted + 2 * (1 + ceil(sqrt(own)));
  double sum = distance * distance + moved * moved + 2 * (double)steps * (double)steps;
  shape->diagnoses = own + DIAGNOSES;
  shape->touched += shape->diagnoses;
  shape->ladder = (struct ladder){steps, most, (int64_t)shared};
  shape->distance = (uint64_t)ceil(sqrt(sum) * (1 + 0x1p-50)) + 1;
}

/* Adds the two counts of units and the ladder to the layout (layout.h). Under 'replace', a unit can
** move from one count to the other, so that both counts change. On the ladder, a unit is at two
** rungs. */
static void add_diagnoses(struct layout *shape, const struct contribution *question, int by_unit,
                          int replace) {
  double most = most_of(shape, by_unit);
  double distance = (double)shape->distance, changes = (replace ? 2 : 1) * (most > 0 ? 2 : 1);
  if (shape->wide) {
    add_wide_diagnoses(shape, question, most);
    return;
  }
  double part = shape->is_l1 ? DIAGNOSE_PART_L1 / changes : DIAGNOSE_PART / sqrt(changes);
  shape->diagnoses = DIAGNOSES + (most > 0 ? TALLY_RUNGS : 0);
  shape->touched += (replace ? 2 : 1) * (most > 0 ? 3 : 1);
  shape->ladder = (struct ladder){(int64_t)(distance * part), most, 0};
  if (shape->is_l1) {
    shape->distance += (uint64_t)changes * (uint64_t)shape->ladder.steps;
  } else {
    double steps = (double)shape->ladder.steps;
    double sum = distance * distance + changes * steps * steps;
    shape->distance = (uint64_t)ceil(sqrt(sum) * (1 + 0x1p-50)) + 1;
  }
}

/* ---- cross tables ---------------------------------------------------------------------------- */

static uint64_t tables_spread(const struct layout *shape, int64_t reach) {
  const struct family *family = shape->family;
  uint128 square = (uint128)reach * (uint128)reach;
  if (shape->is_l1 || family->spread == 2) return 2 * (uint64_t)reach;
  if (family->is_ratio) return (uint64_t)layout_root_up((16 * square + 4) / 5);
  uint128 all = (uint128)ways_square(shape->ways),
          total = (uint128)shape->ways->tables[0].multiplier;
  uint128 part = 2 * (all - total * total);
  uint128 apart = part * (square / all) + (part * (square % all) + all - 1) / all;
  return (uint64_t)layout_root_up(apart > square ? apart : square);
}

/* The radius of a unit's vector is S times clip times the norm of a row, computed with integers:
** reach^2 is the least square that is at least `norm2` S^2 steps^2, where `steps` are those of clip
** rows and norm2 is 1, or 5/4 for means (1/2 and u). */
static void make_tables(struct layout *shape, const struct contribution *question, int by_unit,
                        int replace) {
  const struct family *family = shape->family;
  const struct ways *ways = shape->ways = question->ways;
  double size = shape->is_l1 ? (double)ways_sum(ways) : sqrt((double)ways_square(ways));
  size *= household_size(question);
  int exponent, measured = 0;
  shape->cells = shape->bins = 1;
  shape->components = family->components;
  shape->width = shape->coordinates = ways->coordinates * family->components;
  shape->counts = family->counts;
  shape->counted = family->counts ? 1 : family->shares;
  shape->count_factor = family->count_factor;
  frexp(size * question->clip * family->row_norm, &exponent);
  shape->fine_exponent = exponent - RADIUS_BITS;
  shape->scale = ldexp(1, -shape->fine_exponent);
  if (shape->counted) shape->count_steps = (int64_t)(shape->count_factor * shape->scale);
  for (int i = 0; i < ways->count; i++) measured += ways->tables[i].multiplier > 0;
  int64_t touched = by_unit ? shape->width : (int64_t)measured * shape->components;
  if (replace && touched < shape->width) touched *= 2;
  shape->touched = touched > shape->width ? shape->width : (int)touched;
  uint128 steps = (uint128)ceil(question->clip * shape->scale), square = steps * steps;
  uint128 factor = (uint128)ways_square(ways);
  struct block block = {0, shape->components, shape->components, 0, 0, family->spread};
  block.reach = shape->is_l1       ? (int64_t)(steps * (uint64_t)ways_sum(ways))
                : family->is_ratio ? layout_root_up((5 * factor * square + 3) / 4)
                                   : layout_root_up(factor * square);
  block.lead_reach = block.reach;
  if (family->is_ratio) { /* a unit counts at most clip rows in one cell */
    block.lead_end = 1;
    block.lead_reach = layout_root_up((factor * square + 3) / 4);
  }
  shape->blocks[shape->block_count++] = block;
  shape->distance = replace ? tables_spread(shape, block.reach) : (uint64_t)block.reach;
}

/* ---- households ------------------------------------------------------------------------------ */

static void add_households(struct layout *shape, const struct contribution *question, int by_unit,
                           int replace) {
  enum statistic statistic = shape->family->statistic;
  int is_number = statistic == STATISTIC_NUMBER;
  int is_short = is_number || (statistic == STATISTIC_VECTOR && shape->coordinates > 0);
  if (!by_unit || replace || shape->is_l1 || (question->in_sum_norm && !is_number) || !is_short ||
      shape->block_count != 1)
    return;
  uint64_t reach = (uint64_t)shape->blocks[0].reach;
  shape->wide = (int64_t)((uint128)reach * (unsigned)question->household / HOUSEHOLDS_PARTS);
  shape->distance = reach + 2 * (1 + (uint64_t)layout_root_up((uint128)shape->touched));
}

/* ---- shapes ---------------------------------------------------------------------------------- */

void layout_make(struct layout *shape, const struct contribution *question, int by_unit,
                 int replace) {
  const struct family *family = question->family;
  int is_l1 = family->is_l1 || (question->diagnose && question->in_sum_norm);
  *shape = (struct layout){.family = family, .is_l1 = is_l1};
  if (question->ways) {
    make_tables(shape, question, by_unit, replace);
    if (question->household) add_households(shape, question, by_unit, replace);
    if (question->diagnose) add_diagnoses(shape, question, by_unit, replace);
    return;
  }
  shape->selects = family->counts_if_private && is_private(question);
  shape->cells = !family->has_keys ? 1 : is_private(question) ? 0 : question->keys;
  shape->bins = family->has_bins ? question->size : 1;
  shape->width = layout_width(family, question->size, is_private(question));
  shape->components = family->has_bins ? 1 : shape->width;
  if (family->is_tree) shape->tree = tree_make(log2_of(question->size), family->is_l1);
  shape->max_groups = is_private(question) ? question->max_groups : 0;
  shape->coordinates = shape->cells * shape->width;
  shape->touched = touched_of(shape, by_unit, replace);
  shape->counts = !family->has_bins && (family->counts || shape->selects);
  shape->counted = shape->counts || shape->selects ? 1 : family->shares;
  shape->count_factor = count_factor_of(shape, question);
  double radius = norm_of(shape, question);
  if (shape->selects)
    radius = family->is_l1 ? radius + shape->count_factor : hypot(radius, shape->count_factor);
  int exponent;
  frexp(radius * household_size(question), &exponent);
  shape->fine_exponent = exponent - (family->radius_bits ? family->radius_bits : RADIUS_BITS);
  shape->scale = ldexp(1, -shape->fine_exponent);
  shape->count_steps = (int64_t)(shape->count_factor * shape->scale);
  if (family->has_bins)
    shape->bin_steps = (int64_t)shape->scale; /* an integer: clip is at most 1e9 */
  make_blocks(shape, question);
  if (family->each) shape->each = shape->count_steps;
  if (family->each && family->statistic != STATISTIC_VECTOR)
    shape->blocks[0].lead_reach = shape->blocks[0].reach = INT64_MAX >> 1;
  if (family->statistic == STATISTIC_NUMBER && question->nonnegative) shape->blocks[0].spread = 1;
  shape->distance = distance_of(shape, replace);
  if (question->household) add_households(shape, question, by_unit, replace);
  if (question->diagnose) add_diagnoses(shape, question, by_unit, replace);
}

void layout_narrow(struct layout *shape, double clip) {
  struct block *block = &shape->blocks[0];
  block->lead_reach = block->reach = (int64_t)ceil(clip * shape->scale);
  shape->distance = distance_of(shape, 1);
}

/* ---- values ---------------------------------------------------------------------------------- */

double layout_centred(double x, double low, double high) {
  double half = high / 2 - low / 2, middle = low / 2 + high / 2;
  double u = (x - middle) / half;
  if (u >= 1) return 1;
  return u > -1 ? u : u <= -1 ? -1 : 0;
}

/* Rounding may put a value near an edge into the bin beside its own: the edges decide. */
int layout_bin(double x, const double *edges, int bins) {
  double low = edges[0], high = edges[bins];
  double place = (x / 2 - low / 2) / (high / 2 - low / 2) * bins;
  int bin = !(place >= 1) ? 0 : place < bins ? (int)place : bins - 1;
  while (bin > 0 && x < edges[bin]) bin--;
  while (bin < bins - 1 && x >= edges[bin + 1]) bin++;
  return bin;
}

int layout_exponent_bin(double x) {
  double size = fmin(fabs(x), ldexp(1, LAYOUT_MOST_EXPONENT));
  if (!(size > ldexp(1, LAYOUT_LEAST_EXPONENT - 1))) return LAYOUT_EXPONENTS;
  int exponent;
  /* size = m 2^exponent with m in [1/2, 1); a power of two belongs to the bin below */
  if (frexp(size, &exponent) == 0.5) exponent--;
  int step = exponent - LAYOUT_LEAST_EXPONENT + 1;
  return LAYOUT_EXPONENTS + (x < 0 ? -step : step);
}

double layout_exponent_high(int bin) {
  int step = bin - LAYOUT_EXPONENTS;
  if (step == 0) return 0;
  return step > 0 ? ldexp(1, LAYOUT_LEAST_EXPONENT + step - 1)
                  : -ldexp(1, LAYOUT_LEAST_EXPONENT - step - 2);
}

double layout_exponent_low(int bin) {
  return 0 - layout_exponent_high(2 * LAYOUT_EXPONENTS - bin);
}

double layout_grid_values(double low, double high, double grid) {
  return floor((high - low) / grid * (1 + 0x1p-50)) + 1;
}

double layout_grid_share(const struct contribution *question) {
  return ceil(layout_grid_values(question->low, question->high, question->grid) / question->size);
}

int layout_leaf(const struct contribution *question, const double *edges, double x) {
  if (!(question->grid > 0)) return layout_bin(x, edges, question->size);
  double last = layout_grid_values(question->low, question->high, question->grid) - 1;
  double k = floor((x - question->low) / question->grid + 0.5);
  if (!(k >= 1)) return 0;
  return (int)(fmin(k, last) / layout_grid_share(question));
}

/* ---- clipping -------------------------------------------------------------------------------- */

/* The scale factor is computed in floating point, and scaled values are truncated towards zero.
** Privacy depends only on the exact check of the norm that follows. */

#define MOST_ROUNDS 8

/* Part of a matrix: components [first, end) of every cell. */
struct part {
  int128 *values;
  size_t cells;
  int components, first, end;
  int is_l1; /* 1: the norm is the sum of magnitudes */
};

/* A number that has as many bits as the largest magnitude. */
static uint128 largest(const struct part *part) {
  uint128 bits = 0;
  for (size_t cell = 0; cell < part->cells; cell++) {
    for (int j = part->first; j < part->end; j++)
      bits |= lattice_magnitude(part->values[cell * (size_t)part->components + (size_t)j]);
  }
  return bits;
}

/* The sum of the magnitudes, or of their squares, divided by 2^shift each. Quotients are below
** 2^53, so the sum is below 2^128. */
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

/* The bits by which a magnitude must be shifted to be below 2^53; at most 75 of 128. */
static int shift_of(uint128 size) {
  int shift = 0;
  for (size >>= 53; size > 0; size >>= 1) shift++;
  return shift;
}

/* Returns whether the sum of magnitudes is at most `reach` < 2^62. It cannot overflow: the loop
** ends once it exceeds `reach`, and each magnitude is at most 2^127. */
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

/* Returns whether the norm is at most `reach` < 2^62, exactly. There is no branch on the sign of a
** value: the processor cannot predict the signs of data, and mispredicted branches would take
** longer than the rest of the loop. */
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

/* Multiplies every value by a factor in [0, 1) (or slightly larger, by rounding errors of norm())
** and truncates towards zero. Nearly all values fit 64 bits, which the processor converts to and
** from doubles in one instruction. */
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

/* The norm of a part, too small by at most a fraction 2^-41 of a Euclidean norm, or 2^-30 of a sum
** of magnitudes. It does not depend on the order of the values. */
static double norm(const struct part *part) {
  int shift = shift_of(largest(part));
  double size = (double)measure(part, shift);
  return ldexp(part->is_l1 ? size : sqrt(size), shift);
}

/* Scales `whole` down until the norm of its part `lead` is at most `reach`. Returns whether it was
** larger. Two rounds are normally enough. After MOST_ROUNDS the loop scales by 0, so that it ends
** whatever the rounding errors are. */
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
