/* shares.c: see shares.h. Tests: tests/mechanism/test_cross_tables.py */
#include "mechanism/shares.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define ROUNDS     4000
#define GAP        0x1p-10 /* the objective is at most this part above the best one */
#define MULTIPLIER 0x1p15
#define LEAST      0x1p-12 /* a smaller share is not measured */

/* A table and one inside it, or itself: their numbers, and n(inner)/n(outer). */
struct pair {
  int outer, inner;
  double ratio;
};

/* All pairs, by outer table in the order of ways.h and by inner mask downward. */
struct pairs {
  struct pair *list;
  size_t count;
};

static int pairs_open(struct pairs *pairs, const struct ways *ways) {
  size_t count = 0, used = 0;
  for (int a = 0; a < ways->count; a++) {
    size_t inside = 1;
    for (unsigned mask = ways->tables[a].mask; mask; mask &= mask - 1) inside *= 2;
    count += inside;
  }
  assert(count > 0); /* every programme has the total */
  *pairs = (struct pairs){malloc(sizeof *pairs->list * count), count};
  for (int a = 0; a < ways->count && pairs->list; a++) {
    const struct cross_table *outer = &ways->tables[a];
    unsigned mask = outer->mask;
    for (int more = 1; more; more = mask != 0, mask = (mask - 1) & outer->mask) {
      const struct cross_table *inner = ways_find(ways, mask);
      double ratio = (double)inner->cells / outer->cells;
      pairs->list[used++] = (struct pair){a, (int)(inner - ways->tables), ratio};
    }
  }
  return pairs->list != 0;
}

/* Returns k_B. */
static double free_part(const struct ways *ways, int b) {
  double part = 1;
  for (int i = 0; i < ways->attributes; i++)
    if (ways->tables[b].mask >> i & 1) part *= (ways->sizes[i] - 1.0) / ways->sizes[i];
  return part;
}

static void set_zero(double *numbers, int count) {
  for (int i = 0; i < count; i++) numbers[i] = 0;
}

/* Sets p_B for the shares w. */
static void set_precisions(const struct pairs *pairs, const struct ways *ways, const double *w,
                           double *p) {
  set_zero(p, ways->count);
  for (size_t i = 0; i < pairs->count; i++) {
    const struct pair *pair = &pairs->list[i];
    p[pair->inner] += w[pair->outer] * pair->ratio;
  }
}

/* ---- the best shares for Gaussian noise ------------------------------------------------------ */

/* The objective f = sum of c_B/p_B with c_B = sum of lambda_A k_B (n(B)/n(A))^2. */
struct objective {
  const struct ways *ways;
  struct pairs pairs;
  double *c, *p, *g; /* one number for each table */
};

static void set_constants(struct objective *objective) {
  const struct ways *ways = objective->ways;
  double sum = 0;
  for (int a = 0; a < ways->count; a++) sum += ways->tables[a].weight;
  set_zero(objective->c, ways->count);
  for (size_t i = 0; i < objective->pairs.count; i++) {
    const struct pair *pair = &objective->pairs.list[i];
    double lambda = ways->tables[pair->outer].weight / sum;
    objective->c[pair->inner] +=
        lambda * free_part(ways, pair->inner) * (pair->ratio * pair->ratio);
  }
}

/* Sets p and returns f. Where c_B is 0, some attribute has one key and table B adds nothing. */
static double evaluate(struct objective *objective, const double *w) {
  double f = 0;
  set_precisions(&objective->pairs, objective->ways, w, objective->p);
  for (int b = 0; b < objective->ways->count; b++)
    if (objective->c[b] > 0) f += objective->c[b] / objective->p[b];
  return f;
}

/* Sets g after evaluate(), and returns the largest g. */
static double set_slopes(struct objective *objective) {
  double most = 0;
  set_zero(objective->g, objective->ways->count);
  for (size_t i = 0; i < objective->pairs.count; i++) {
    const struct pair *pair = &objective->pairs.list[i];
    double c = objective->c[pair->inner], p = objective->p[pair->inner];
    if (c > 0) objective->g[pair->outer] += c / (p * p) * pair->ratio;
  }
  for (int a = 0; a < objective->ways->count; a++) most = fmax(most, objective->g[a]);
  return most;
}

static void minimise(struct objective *objective, double *q) {
  int count = objective->ways->count;
  for (int a = 0; a < count; a++) q[a] = 1.0 / count;
  for (int round = 0; round < ROUNDS; round++) {
    double f = evaluate(objective, q), most = set_slopes(objective), sum = 0;
    if (most / f - 1 <= GAP) return;
    for (int a = 0; a < count; a++) {
      q[a] *= sqrt(objective->g[a] / f);
      sum += q[a];
    }
    for (int a = 0; a < count; a++) q[a] /= sum;
  }
}

/* ---- multipliers ----------------------------------------------------------------------------- */

static void round_off(const struct ways *ways, const double *parts, int *multipliers) {
  for (int a = 0; a < ways->count; a++) {
    int least = ways_is_largest(ways, &ways->tables[a]);
    multipliers[a] = (int)floor(MULTIPLIER * parts[a]);
    if (multipliers[a] < least) multipliers[a] = least;
  }
}

/* Sets parts proportional to a candidate for the sum norm. Their sum is 1. */
static void propose(const struct ways *ways, int candidate, const double *q, double *parts) {
  double sum = 0;
  for (int a = 0; a < ways->count; a++) {
    if (candidate == 0) parts[a] = q[a];
    if (candidate == 1) parts[a] = q[a] * q[a];
    if (candidate == 2) parts[a] = ways_is_largest(ways, &ways->tables[a]);
    sum += parts[a];
  }
  for (int a = 0; a < ways->count; a++) {
    parts[a] /= sum;
    if (parts[a] < LEAST) parts[a] = 0;
  }
}

/* Chooses the best candidate for the sum norm. `parts` is room for one number for each table. */
static void choose(struct objective *objective, const double *q, double *parts, int *multipliers) {
  const struct ways *ways = objective->ways;
  double least = INFINITY;
  int best = 0;
  for (int candidate = 0; candidate < 3; candidate++) {
    propose(ways, candidate, q, parts);
    round_off(ways, parts, multipliers);
    double sum = 0;
    for (int a = 0; a < ways->count; a++) sum += multipliers[a];
    for (int a = 0; a < ways->count; a++) parts[a] = multipliers[a] / sum * (multipliers[a] / sum);
    double f = evaluate(objective, parts);
    if (f < least) {
      least = f;
      best = candidate;
    }
  }
  propose(ways, best, q, parts);
  round_off(ways, parts, multipliers);
}

int shares_multipliers(const struct ways *ways, int in_sum_norm, int *multipliers) {
  size_t count = (size_t)ways->count;
  double *room = malloc(sizeof *room * 5 * count);
  struct objective objective = {.ways = ways};
  int going = pairs_open(&objective.pairs, ways) && room;
  if (going) {
    double *q = room, *parts = room + count;
    objective.c = room + 2 * count;
    objective.p = room + 3 * count;
    objective.g = room + 4 * count;
    set_constants(&objective);
    minimise(&objective, q);
    if (in_sum_norm) {
      choose(&objective, q, parts, multipliers);
    } else {
      for (size_t a = 0; a < count; a++) parts[a] = q[a] < LEAST ? 0 : sqrt(q[a]);
      round_off(ways, parts, multipliers);
    }
  }
  free(objective.pairs.list);
  free(room);
  return going;
}

/* ---- variances ------------------------------------------------------------------------------- */

int shares_variances(const struct ways *ways, int in_sum_norm, double *precisions,
                     double *variances) {
  struct pairs pairs;
  double sum = (double)ways_sum(ways), all = in_sum_norm ? sum * sum : (double)ways_square(ways);
  if (!pairs_open(&pairs, ways)) return 0;
  for (int a = 0; a < ways->count; a++) {
    double multiplier = ways->tables[a].multiplier;
    variances[a] = multiplier * multiplier / all; /* first w_A */
  }
  set_precisions(&pairs, ways, variances, precisions);
  set_zero(variances, ways->count);
  for (size_t i = 0; i < pairs.count; i++) { /* now the variances */
    const struct pair *pair = &pairs.list[i];
    variances[pair->outer] +=
        free_part(ways, pair->inner) / precisions[pair->inner] * (pair->ratio * pair->ratio);
  }
  free(pairs.list);
  return 1;
}
