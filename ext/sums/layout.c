/* layout.c: see layout.h. */
#include "sums/layout.h"

#include <math.h>

#define RADIUS_BITS 53

/* Counts beside sums: of a mean, and of the units of a private key (half the reach of the sums). */
#define HALF 0.5

/* What the families are, but for their sizes. */
struct traits {
  int counts;          /* component 0 counts rows */
  double count_factor; /* times clip where sums have a unit */
  double row_norm; /* largest norm of a row's (count, values), where they are clipped together */
  double spread;   /* two vectors are at most so many times their largest norm apart (layout.h) */
};

#define SLANT        1.1180339887498949 /* sqrt(1/4 + 1) */
#define ROOT_3       1.7320508075688773
#define COUNT_SPREAD 1.4142135623730952
#define MEAN_SPREAD  1.7888543819998320
#define CURVE_SPREAD 1.3095310000000000

static const struct traits traits[] = {
    [FAMILY_SUM] = {0, 0, 1, 2},
    [FAMILY_MEAN] = {1, HALF, SLANT, MEAN_SPREAD},
    [FAMILY_SPREAD] = {1, 1, ROOT_3, CURVE_SPREAD},
    [FAMILY_VECTOR] = {0, 0, 1, 2},
    [FAMILY_VECTOR_MEAN] = {1, HALF, SLANT, MEAN_SPREAD},
    [FAMILY_BINS] = {1, 1, 1, COUNT_SPREAD},
    [FAMILY_TREE] = {1, 1, 1, COUNT_SPREAD},
    [FAMILY_KEY_COUNT] = {1, 1, 1, COUNT_SPREAD},
    [FAMILY_KEY_SUM] = {0, HALF, 1, 2},
    [FAMILY_KEY_MEAN] = {1, HALF, SLANT, MEAN_SPREAD},
    [FAMILY_CHOICE] = {1, 1, 1, COUNT_SPREAD},
    [FAMILY_RESPONSE] = {1, 1, 1, COUNT_SPREAD},
    [FAMILY_SGD] = {0, 0, 1, 2},
};

static int is_mean(enum family family) {
  return family == FAMILY_MEAN || family == FAMILY_SPREAD || family == FAMILY_VECTOR_MEAN ||
         family == FAMILY_KEY_MEAN;
}

static int has_keys(enum family family) {
  return family == FAMILY_KEY_COUNT || family == FAMILY_KEY_SUM || family == FAMILY_KEY_MEAN ||
         family == FAMILY_CHOICE || family == FAMILY_RESPONSE;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static int log2_of(int power) {
  int log = 0;
  while (power >> (log + 1)) log++;
  return log;
}

static int components_of(const struct contribution *question, int is_private) {
  switch (question->family) {
  case FAMILY_MEAN:
  case FAMILY_KEY_MEAN: return 2;
  case FAMILY_SPREAD: return 3;
  case FAMILY_VECTOR:
  case FAMILY_SGD: return question->size;
  case FAMILY_VECTOR_MEAN: return 1 + question->size;
  case FAMILY_KEY_SUM: return 1 + is_private;
  default: return 1;
  }
}

static int cells_of(const struct contribution *question) {
  if (has_keys(question->family)) return question->keys == KEYS_PRIVATE ? 0 : question->keys;
  return question->family == FAMILY_BINS || question->family == FAMILY_TREE ? question->size : 1;
}

/* Coordinates that one unit can touch: of neighbours that replace one, two units together. */
static int touched_of(const struct layout *shape, int by_unit, int replace) {
  int64_t one = shape->components; /* of one cell */
  if (shape->levels) {
    one = by_unit ? shape->coordinates : shape->levels;
  } else if (by_unit) {
    one *= shape->cells ? shape->cells : shape->max_groups;
  }
  if (replace) one *= 2;
  return shape->coordinates && one > shape->coordinates ? shape->coordinates : (int)one;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void add_block(struct layout *shape, int first, int end, double norm, double spread) {
  int64_t reach = (int64_t)ceil(norm * shape->scale); /* exact where norm is the clip */
  shape->blocks[shape->block_count++] = (struct block){first, end, end, reach, reach, spread};
}

static void make_blocks(struct layout *shape, const struct contribution *question) {
  const struct traits *family = &traits[question->family];
  if (family->counts || shape->components == 1 || !has_keys(question->family)) {
    double norm = question->clip * family->row_norm;
    if (shape->levels) norm *= sqrt(shape->levels);
    add_block(shape, 0, shape->components, norm, family->spread);
  } else { /* sums, and before them the counts that select private keys */
    add_block(shape, 0, 1, shape->count_factor, COUNT_SPREAD);
    add_block(shape, 1, shape->components, question->clip, family->spread);
  }
  if (is_mean(question->family)) { /* a unit counts for so many rows, and scales its sums alike */
    struct block *block = &shape->blocks[0];
    double rows = question->family == FAMILY_VECTOR_MEAN ? 1 : question->clip;
    block->lead_end = 1;
    block->lead_reach = (int64_t)(rows * (double)shape->count_steps);
    block->reach += 2; /* irrational factors: so that a row at the end of its range fits */
  }
  if (shape->levels) shape->blocks[0].lead_reach = shape->blocks[0].reach += 2; /* the same */
}

/* sqrt of a sum of squares of integers below 2^54, rounded up; the margins are for rounding. */
static uint64_t distance_of(const struct layout *shape, int replace) {
  double sum = 0;
  int exact = shape->block_count == 1 && (!replace || shape->coordinates == 1);
  for (int i = 0; i < shape->block_count; i++) {
    const struct block *block = &shape->blocks[i];
    double reach = (double)block->reach;
    if (exact) return (uint64_t)block->reach * (replace && block->spread == 2 ? 2 : 1);
    if (replace) { /* rounding moves a vector by less than `out` steps, maybe out of its cone */
      double out = 2 * sqrt(shape->touched);
      if (shape->family == FAMILY_SPREAD) /* u and 2u^2 - 1 of each row that counts */
        out += (double)block->lead_reach / (double)shape->count_steps + 1;
      reach = block->spread * (reach + out) + 2 * out;
    }
    sum += reach * reach;
  }
  return (uint64_t)ceil(sqrt(sum) * (1 + 0x1p-50)) + 1;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

void layout_make(struct layout *shape, const struct contribution *question, int by_unit,
                 int replace) {
  const struct traits *family = &traits[question->family];
  int is_private = question->keys == KEYS_PRIVATE;
  *shape = (struct layout){.family = question->family};
  shape->cells = cells_of(question);
  shape->components = components_of(question, is_private);
  shape->levels = question->family == FAMILY_TREE ? log2_of(question->size) : 0;
  shape->max_groups = is_private ? question->max_groups : 0;
  shape->coordinates = shape->levels ? 2 * question->size - 2 : shape->cells * shape->components;
  shape->touched = touched_of(shape, by_unit, replace);
  int is_key_sum = question->family == FAMILY_KEY_SUM;
  shape->counts = family->counts || (is_key_sum && is_private);
  shape->count_factor = family->count_factor;
  if (is_key_sum || question->family == FAMILY_VECTOR_MEAN) shape->count_factor *= question->clip;
  double radius = question->clip * family->row_norm;
  if (shape->levels) radius *= sqrt(shape->levels);
  if (is_key_sum && is_private) radius = hypot(radius, shape->count_factor);
  int exponent;
  frexp(radius, &exponent);
  shape->fine_exponent = exponent - RADIUS_BITS;
  shape->scale = ldexp(1, -shape->fine_exponent);
  shape->count_steps = (int64_t)(shape->count_factor * shape->scale);
  make_blocks(shape, question);
  if (question->family == FAMILY_CHOICE ||
      question->family ==
          FAMILY_RESPONSE) { /* each count is protected by itself, whatever the others */
    shape->each = shape->count_steps;
    shape->blocks[0].lead_reach = shape->blocks[0].reach = INT64_MAX >> 1;
  }
  if (question->family == FAMILY_SUM && question->nonnegative) shape->blocks[0].spread = 1;
  shape->distance = distance_of(shape, replace);
}

void shape_narrow(struct layout *shape, double clip) {
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

int layout_bin(double x, double low, double high, int bins) {
  double place = (x / 2 - low / 2) / (high / 2 - low / 2) * bins;
  if (!(place >= 1)) return 0;
  return place < bins ? (int)place : bins - 1;
}
