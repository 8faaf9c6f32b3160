/* layout.h: the vector of one privacy unit: the families of kinds, cross tables, the
** ladder of what clipping cuts off, the layout of the vector and its bounds. */
#ifndef DIFFUSE_SUMS_LAYOUT_H
#define DIFFUSE_SUMS_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "noise/noise.h"

struct identity;         /* sums.h */
struct partitioned_sums; /* internal.h */

/* ---- cross tables (cross_sums.c) ------------------------------------------------------------- */

/* The ways of a release of cross tables: its tables of several attributes.
**
** A table is a set of attributes, written as a bit mask: bit i stands for attribute i. Attribute i
** has sizes[i] public keys. A table has one cell for each combination of keys of its attributes, in
** the order of an array whose last attribute varies fastest. The empty table has one cell, the
** total. A release that has a table also has every table inside it (with fewer attributes), so
** that every table has its margins. The tables are sorted by their number of attributes, then by
** mask.
**
** The release measures some of the tables, all by one vector: coordinate c of table A is the
** multiplier of A times the sum of the rows in this cell, plus noise. All coordinates have the same
** noise, so the multipliers divide one charge between the tables (mechanism/mechanism.h). The
** coordinates of the measured tables follow each other in the order of the tables.
**
** Every row lies in one cell of the full table of all attributes. The full table need not be in the
** release, and it may have up to 2^62 cells; nothing here has its size. */

#define WAYS_MAX_ATTRIBUTES 16
#define WAYS_MAX_TABLES     1024
#define WAYS_MAX_CELLS      (1 << 20) /* of all tables together */
#define WAYS_MAX_MEASURED   (1 << 22) /* coordinates */
#define WAYS_MAX_FULL       ((int64_t)1 << 62)
#define WAYS_NONE           (-1)

struct cross_table {
  unsigned mask;
  double weight;        /* the importance of its error (mechanism/mechanism.h) */
  int multiplier;       /* 0: the table is not measured */
  int cells;            /* number of its cells */
  int first;            /* its first cell among the cells of all tables */
  int first_coordinate; /* its first coordinate; WAYS_NONE if it is not measured */
};

struct ways {
  int attributes;
  int sizes[WAYS_MAX_ATTRIBUTES];
  uint64_t inverses[WAYS_MAX_ATTRIBUTES]; /* 2^64 / size, rounded up, for fast division */
  int count;                              /* number of tables */
  int cells;                              /* number of cells of all tables */
  int coordinates;
  struct cross_table *tables;
  int16_t *index; /* the number of the table of a mask, or WAYS_NONE */
};

/* What ways_open() may refuse. */
enum ways_limit { WAYS_FIT, WAYS_MANY_TABLES, WAYS_MANY_CELLS, WAYS_MANY_KEYS, WAYS_NO_MEMORY };

/* Makes the ways of the `count` different tables `masks` with these weights, and of all tables
** inside them, whose weight is 1. No table is measured yet. Sets *cells to the number of cells of
** all tables, as far as it was counted. Returns WAYS_FIT, or the limit that they exceed;
** `ways` is then empty. ways_close() is allowed in both cases. */
enum ways_limit ways_open(struct ways *ways, int attributes, const int *sizes,
                          const unsigned *masks, const double *weights, int count, double *cells);
void ways_close(struct ways *ways);

int ways_copy(struct ways *to, const struct ways *from); /* 0: out of memory */

/* Sets the multipliers, one for each table, and numbers the coordinates. Returns whether the
** multipliers are possible: not negative, with a sum of squares of at most 2^30, above 0 for each
** table that is inside no other table, and with at most WAYS_MAX_MEASURED coordinates. */
int ways_measure(struct ways *ways, const int *multipliers);

/* The sum of the squares of the multipliers (S^2), or their sum. */
int64_t ways_square(const struct ways *ways);
int64_t ways_sum(const struct ways *ways);

/* Returns the table of a mask, or null. */
const struct cross_table *ways_find(const struct ways *ways, unsigned mask);

/* Returns whether the table is inside no other table of the release. */
int ways_is_largest(const struct ways *ways, const struct cross_table *table);

int64_t ways_full(const struct ways *ways); /* the number of cells of the full table */

/* Sets the keys of a cell of the full table: keys[i] is the number of a key of attribute i. The
** cell is (keys[0] * sizes[1] + keys[1]) * sizes[2] + keys[2] ... */
void ways_full_keys(const struct ways *ways, int64_t cell, int *keys);

/* Moves `keys` to the next cell of the full table, as an odometer does. */
void ways_next(const struct ways *ways, int *keys);

/* Sets the keys of the attributes of a table from one of its cells. */
void ways_keys(const struct ways *ways, const struct cross_table *table, int cell, int *keys);

/* ---- what clipping does (households.c) ------------------------------------------------------- */

/* What clipping did to the units of a release (the option diagnose): how many were
** clipped, and how much was cut off.
**
** Every unit adds w steps to one of two counts. If the release is a total, a unit also tells how
** large it was. Let `before` and `after` be the sums of the magnitudes of its numbers before and
** after clipping, and `most` the largest possible `after`. The unit adds the part
** p = w after / most to a ladder of sizes 1, 2, 4, ... 2^(TALLY_RUNGS - 1), at the place
** r = before / after. A place between two rungs is divided between them as r lies between them. So
** if N_i is the sum of all units at rung i, then
**
**   sum of N_i 2^i        is w / most times the total before clipping,
**   sum of N_i (2^i - 1)  is w / most times what was cut off,
**
** whatever the sizes between the rungs are. A unit beyond the last rung counts as if it were there.
** The parts of a unit are not negative and add up to at most w, so in either norm a unit adds at
** most w to the ladder, and replacing it moves the ladder by at most w sqrt(2), or 2 w in the sum
** norm.
**
** If the ledger protects households, too (sums.h), what the units of one of them add to the
** ladder and the counts is bounded together, as their sums are: the vector of all these coordinates
** is at most `shared` long. And each household adds w to one of two further counts: of those whose
** sums were moved to what a household may count, and of the others. A unit alone is a household. */

#define TALLY_RUNGS  11
#define TALLY_COUNTS 2 /* clipped and whole */
#define TALLY_OWN    (TALLY_RUNGS + TALLY_COUNTS)

struct ladder {
  int64_t steps;  /* w; 0: nothing is diagnosed */
  double most;    /* in fine steps; 0: only the units are counted */
  int64_t shared; /* the bound on a household; 0: none is protected, or nothing is diagnosed */
};

/* The units, or the rows that are units, and the steps at each rung of the ladder. */
struct tally {
  int64_t clipped, whole;
  int128 rungs[TALLY_RUNGS];
  int64_t households_clipped, households_whole;
  int128 shared[TALLY_OWN]; /* the bounded sums of households: steps at each rung and count */
};

/* Adds a unit. `before` and `after` are not negative. */
void tally_add(struct tally *tally, const struct ladder *ladder, int clipped, double before,
               double after);

/* Adds the units of another tally. */
void tally_join(struct tally *tally, const struct tally *others);

/* tally_note() adds a unit to the sums of its household in `shared`, records of one value, or to
** the tally if it is a household of its own (HOUSEHOLD_NONE). tally_bound() then bounds the sums
** of all households, and counts these. Both return 0 if memory has run out. */
int tally_note(struct tally *tally, struct partitioned_sums *shared, int64_t household,
               const struct ladder *ladder, int clipped, double before, double after);
int tally_bound(struct tally *tally, struct partitioned_sums *shared, const struct ladder *ladder);

/* Writes the steps of a release with this number of coordinates of diagnose. */
void tally_write(const struct tally *tally, const struct ladder *ladder, int coordinates,
                 int128 *totals);

/* ---- layouts (layout.c) ---------------------------------------------------------------------- */

/* The families of kinds, the layout of one privacy unit's vector, and the bounds that the
** vector must meet.
**
** A release is a vector of coordinates. Each row belongs to one cell: a group key, or the only
** cell. A cell of a histogram is divided into bins, and a cell of a tree into leaves. Each row then
** belongs to one slot: slot = cell * bins + bin. In all other families a slot is a cell. Each slot
** has components: a count, sums, or both. A row adds a number to each component of its slot. The
** rows of a unit thus add up to a sparse matrix of exact integers, with slots times components
** entries.
** Before the matrices of all units are added up, each matrix is scaled down to fit a ball. The
** radius of the ball bounds the sensitivity of the sum. The layout depends only on the public
** parameters.
**
** Each cell has `width` consecutive coordinates: its components, its bins, or the nodes of its tree
** level by level (struct tree). Private keys of histograms and trees have one more coordinate, the
** first: each unit adds 1 to this count for every key that it keeps (`selects`).
**
** Component j of a row is the integer round(value * factor_j * scale), a number of fine steps.
** `scale` is a power of two for which the radius of the ball is an integer of 53 bits, or of
** radius_bits of the family. factor_j is 1, except for a count that is released together with sums.
** There factor_j decides how the noise is divided between the count and the sums. */

/* ---- families of kinds ----------------------------------------------------------------------- */

/* A kind is what one aggregate function computes, such as dp_avg. A family says how a row is added
** to its cell, how a unit's vector is bounded, and how estimates are made from a noisy point. It is
** one constant struct of functions and of properties that do not depend on the data
** (mechanism/families.c). Kinds of one family, such as dp_avg and dp_ou_avg, differ only in their
** arguments and their noise. Other code never asks which family it is. */

/* The statistic that a kind computes from the rows, which decides about the mechanisms that can
** release it. Each value is one bit, so that an integer can hold a set. */
enum statistic {
  STATISTIC_NUMBER = 1,   /* one sum (sums/sums.h) */
  STATISTIC_VECTOR = 2,   /* several sums (sums/sums.h) */
  STATISTIC_CATEGORY = 4, /* one of the public categories */
  STATISTIC_REPORTS = 8,  /* one report for each row */
  STATISTIC_MODEL = 16,   /* coefficients of a model (models/models.h) */
  STATISTIC_LEAF = 32     /* the leaf of one quantile (mechanism/mechanism.h) */
};

struct vector_sum;
struct reading;
struct estimate;

/* Adds a row of `unit`, in `cell` (0 without keys), with the value x. Returns 0 if memory runs
** out. */
typedef int add_to_cell(struct vector_sum *vectors, struct identity unit, int cell, double x);

/* Computes estimates from the values of a point (mechanism/mechanism.h). Returns their number,
** or -1 if memory runs out. */
typedef int estimate_values(struct reading *reading, const int64_t *values,
                            struct estimate *estimates);

/* Returns the standard deviation of the noise, from public parameters (estimate_total_stddev()). */
typedef double total_stddev(const struct reading *reading);

/* Returns the range of the numbers of the family, whatever the rows are: with `root`, of standard
** deviations instead of variances. */
struct contribution;
struct range {
  double least, most;
};
typedef struct range value_range(const struct contribution *question, int root);

struct family {
  enum statistic statistic;

  /* The family for the same statistic with vectors that are bounded in the sum norm (the sum of
  ** magnitudes), for Laplace noise: for the least noise in this norm, a vector needs different
  ** components (math/README.md). Null: there is none, or this one is it. is_l1 is 1 if all norms
  ** below are sums of magnitudes, not Euclidean norms. */
  const struct family *l1;
  int is_l1;
  /* The family of a mechanism that draws one of the bins instead of adding noise; null: none. */
  const struct family *drawn;
  int radius_bits; /* binary digits of the size of a unit in fine steps; 0: the usual number */

  /* A unit's vector has one cell for each key, or a single cell. With has_bins, each cell has one
  ** bin for each part of [low, high]. */
  int has_keys;
  int has_tables; /* cells can be those of cross tables instead */
  int has_bins;
  int is_tree; /* the bins are leaves of a tree, and the tree's inner nodes are coordinates too */
  /* The bins are those of layout_exponent_bin(). The estimates are the ends of the range in which
  ** bins show rows; there is none if no bin does, and no interval around an end. */
  int by_exponent;

  /* The components of a cell. */
  int components;
  int has_vector;        /* a cell has one more component for each number of the row's vector */
  int counts;            /* component 0 counts rows */
  int counts_if_private; /* with private keys, a further component counts units and comes first */
  int shares;            /* number of components whose sum is the count; 0: see `counts` */
  double count_factor;   /* the factor of the component that counts */
  /* 1: count_factor is multiplied by clip, because clip bounds a norm, not a number of rows */
  int count_in_clips;
  int count_falls; /* the factor falls with the size of the vector (layout.c) */
  /* The estimate divides sums by the count, so sums and count are clipped together. */
  int is_ratio;
  /* Each cell of a unit is bounded on its own, whatever the unit's other cells hold. */
  int each;
  double row_norm; /* the largest norm of a row's components if clip is 1 */
  /* Largest distance between two clipped vectors, divided by the largest norm (layout_make()). */
  double spread;
  int rounds_off_curve; /* rounding may move a row away from the curve that `spread` assumes */

  add_to_cell *add; /* null: rows are vectors, or sums.h is not used */

  /* Properties of the publication. */
  /* The published value is linear in the sums, so its noise does not depend on the data. */
  int is_linear;
  int shrinks_average; /* the Ornstein-Uhlenbeck kinds shrink averages of x to mid-range */
  int has_states;      /* rows can be added up in parts (dp_partial) */
  /* The columns that dp_release() expects of a query; null: key, x and unit, as the kind uses
  ** them. */
  const char *columns;
  estimate_values *estimate; /* null: the kind publishes no point of a lattice */
  estimate_values *inside;   /* of the statistics inside this one; or null */
  total_stddev *stddev;
  value_range *range; /* null: every number is possible */
};

/* The number of parts of 1 in which a ledger declares how many persons a household may count. */
#define HOUSEHOLDS_PARTS 64
#define HOUSEHOLDS_MOST  1000 /* persons */

/* ---- layouts --------------------------------------------------------------------------------- */

/* The public parameters of a release that determine the layout of its vector. */
struct contribution {
  const struct family *family;
  int nonnegative; /* for a single sum only: contributions are in [0, clip] */
  /* The largest norm of a unit's vector, in the unit of x, or, for other families, the largest
  ** number of rows of a unit that are counted. */
  double clip;
  double low, high; /* range of x, for means, spreads, bins and trees */
  int size;         /* dimension of vectors, number of bins or leaves */
  int keys;         /* number of public keys, or KEYS_PRIVATE, or 0 without keys */
  int max_groups;   /* number of private keys that a unit may have */
  double grid;      /* for trees: the values are low + k * grid; 0: all numbers in the range */
  int diagnose;     /* count the units that are clipped, and those that are not */
  int in_sum_norm;  /* the noise is charged for the sum norm; matters for `diagnose` only */
  const struct ways *ways; /* cross tables instead of keys; null: none. Measured */
  /* The parts (1/HOUSEHOLDS_PARTS) of a unit that a household may count; 0: none is protected. */
  int household;
};
#define KEYS_PRIVATE (-1)

/* Bounds on parameters, for the range of doubles, or for the memory of a release. */
#define LAYOUT_MAX_RANGE     1e100 /* limit of |low| and |high|, whose squares must be finite */
#define LAYOUT_MIN_ROWS      0.01  /* least clip, where clip is a number of rows */
#define LAYOUT_MAX_ROWS      1e9
#define LAYOUT_MIN_CLIP      1e-150
#define LAYOUT_MAX_CLIP      1e150
#define LAYOUT_MAX_SIZE      4096   /* dimension of a vector */
#define LAYOUT_MAX_BINS      65536  /* bins of a histogram, or leaves of a tree */
#define LAYOUT_MAX_GRID      0x1p40 /* most values of a grid; such doubles are exact to 2^-12 */
#define LAYOUT_MAX_QUANTILES 1000
#define LAYOUT_MAX_GROUPS    1024 /* largest number of private keys of a unit */
#define LAYOUT_MAX_KEYS      (1 << 20)
/* Limit of the number of coordinates: those of all public keys, or of one unit's private keys. */
#define LAYOUT_MAX_COORDINATES (1 << 22)

/* Consecutive components that are clipped together, in the norm of the family: the whole block is
** scaled down until the norm of its leading components is at most lead_reach, and then until the
** norm of the whole block is at most reach. */
struct block {
  /* The block is [first, end); its leading components are [first, lead_end). */
  int first, lead_end, end;
  int64_t lead_reach, reach;
  double spread; /* two clipped vectors are at most spread * reach apart */
};

/* The shape of a tree with 2^bits leaves, 1 <= levels <= bits <= TREE_MOST_LEVELS. If levels is 0,
** there is no tree. The counts of its nodes are stored level by level, from level 1 to the leaves,
** without the root. All nodes of a level have the same number of children, a power of two. */
#define TREE_MOST_LEVELS 16
struct tree {
  int bits, levels;
};

/* Returns a tree with 2^bits leaves, of as many levels as make the error in rank small.
**
** A row counts in one node of each level. In the Euclidean norm these counts have the norm
** sqrt(levels), and a binary tree is best. In the sum norm they have the norm `levels`, so fewer
** levels are better, although the counts of more nodes then add up to a rank. The tree for the sum
** norm has one level for each four bits, rounded up, so a node has at most 16 children. No other
** number of levels makes the error in rank (root mean square over all places) smaller by more than
** 6% (tests/mechanism/test_tree.c). */
struct tree tree_make(int bits, int is_l1);

/* Returns the logarithm of the number of nodes of a level, which is 0 for the root. */
static inline int tree_bits(struct tree tree, int level) {
  return level * tree.bits / tree.levels;
}

/* Returns the index of the first node of a level. tree_level(levels + 1) is the number of nodes. */
int tree_level(struct tree tree, int level);

struct layout {
  const struct family *family;
  int is_l1;        /* norms are sums of magnitudes */
  int cells;        /* 0 with private keys, which are unknown until rows are read */
  int components;   /* number of components of each cell, or of each bin */
  int bins;         /* number of bins of each cell; 1 for families without bins */
  int selects;      /* coordinate 0 of each cell is a count that only selects private keys */
  int width;        /* number of coordinates of each cell */
  int coordinates;  /* number of coordinates of the release; 0 with private keys */
  int counts;       /* component 0 counts rows */
  int counted;      /* the first `counted` coordinates of a cell add up to a count; 0: no count */
  int touched;      /* the largest number of coordinates in which two neighbours differ */
  int max_groups;   /* largest number of cells that a unit may have; 0: no limit */
  int64_t each;     /* largest number of steps that a unit adds to a cell; 0: no limit */
  struct tree tree; /* the tree of each cell, whose leaves are the bins of the cell */
  double count_factor; /* the factor of a count */
  double scale;
  int fine_exponent;   /* scale = 2^-fine_exponent */
  int64_t count_steps; /* number of steps that stand for 1 in a count */
  int64_t bin_steps;   /* number of steps that one row adds to its bin */
  uint64_t distance;   /* largest distance of the sums of two neighbours, in fine steps */
  /* The number of periods of a series (mechanism/mechanism.h), and the distance of neighbours
  ** in one release with the same clip, from which the lattice is made; 0 for one release. */
  int periods;
  uint64_t once;
  int block_count;
  struct block blocks[2];
  /* The number of coordinates after those of all cells: 0, or with the option diagnose
  ** the counts of clipped and of other households, if there are any, then the ladder, if the
  ** release is a total that has one, and then DIAGNOSES counts, of the units that were clipped and
  ** of the other units. Each unit adds ladder.steps to one count. */
  int diagnoses;
  struct ladder ladder;
  const struct ways *ways; /* cross tables; null: none */
  int64_t wide; /* the norm of what a household may count; 0: no household is protected */
};
#define DIAGNOSES 2

/* Fills a layout. `by_unit`: the release protects units, otherwise rows. `replace`: neighbouring
** data sets differ by the replacement of one unit, otherwise by adding or removing one unit.
**
** The function sets shape->distance as follows. Adding or removing a unit moves the sum by the
** unit's vector, whose norm is at most a radius R. Replacing a unit moves the sum by the difference
** of two such vectors, whose norm is at most `spread` times R. `spread` depends on the family:
**   sums     2
**   counts   sqrt(2): no component is negative, so the angle of two vectors is at most 90 degrees
**   means    4/sqrt(5): (1/2, u) lies in a cone of half angle arctan 2. A product of such cones
**            has the same spread.
**   spreads  1.30953: a row is on the curve (1, u, 2u^2 - 1), and a clipped vector is a mean of
**            such rows times n <= clip. Two clipped vectors are at most 2.26818 clip apart (at
**            u = 1 and u = (sqrt(1/2) - 1)/2), which is 1.30953 times R = sqrt(3) clip.
**   spreads by key
**            1.41734: let n and m be the counts of the two vectors in a key. The sums of n^2 and
**            of m^2 over all keys are at most clip^2. Let D(n, m) be the largest squared distance
**            in a key, and L the maximum of D(n, m) on n^2 + m^2 = 1. The squared distance over
**            all keys is at most 2 L clip^2. Two keys with the counts (n, m) and (m, n) attain
**            this bound. L is the largest eigenvalue of the matrix with the rows (p.p, -p.q) and
**            (-p.q, q.q), over all points p and q of the curve: 3.01330, at u = -1 and 0.23399.
** Truncation may move a clipped vector out of its cone, by less than one step for each coordinate.
** For spreads, the rounding of a row can do so, too. For means it cannot, because |u| <= 1 implies
** round(|u| scale) <= scale. The distance includes a margin for both effects.
**
** With the option diagnose, a unit also adds w = ladder.steps to one of two counts, and at most as
** much to a ladder. With these k = 1 or 2 parts, a distance D of neighbours becomes
** sqrt(D^2 + k w^2), or sqrt(D^2 + 2 k w^2) if a unit is replaced; in the sum norm D + k w or
** D + 2 k w. w is chosen so that the distance grows by less than 5%, and with it the noise. With
** households, these k parts are bounded like a unit's vector: with b = sqrt(k) w and n coordinates,
** a unit moves them by at most b + 2 (1 + sqrt(n)), and a household by at most b f. A unit also
** moves one household from one count to the other, which is w sqrt(2).
**
** Cross tables are one cell whose components repeat for every coordinate of the
** release. A row adds its components, times the multiplier of each measured table A, to one
** coordinate of A. With S^2 the sum of the squared multipliers, a unit's vector is at most clip S
** long, in rows. Clipping scales a unit's rows, not its coordinates, so that what is added stays a
** table with its margins, and no margin for truncation is needed. Under 'replace', the squared
** distance of counts is the larger of R^2 and 2 R^2 (1 - m^2/S^2), for the multiplier m of the
** total (math/README.md).
**
** If households are protected, too (sums.h), a unit's vector moves its household's point by
** at most B + 2 (1 + sqrt(d)), where B is the norm of the unit's vector and d the number of
** coordinates. This is the distance. `wide` is the norm of a household's point, floor(B f) for f
** units, and `scale` leaves 53 bits for it. Only vectors of one block in the Euclidean norm, with
** public keys, or single numbers, can be bounded in this way. For all others `wide` is 0 although
** question->household is not, and the caller must refuse the release.
**
** Families for the sum norm (is_l1) have distances in this norm: R, or 2 R if neighbours replace a
** unit. For a mean of vectors of norm R with a count w, the distance for 'replace' is the larger of
** w + R and 2 R, because units with rows have the same count. Truncation never moves a vector out
** of its ball, so these distances are exact. */
void layout_make(struct layout *shape, const struct contribution *question, int by_unit,
                 int replace);

/* Returns the number of coordinates of one cell, or 0 if it is LAYOUT_MAX_COORDINATES or more.
** `size` is the number of bins or the dimension of vectors. */
int layout_width(const struct family *family, int size, int is_private);

/* Sets the reach and the distance of a model's layout to those of a smaller clip, on the same
** lattice. Neighbours replace one row. */
void layout_narrow(struct layout *shape, double clip);

/* Returns the least integer whose square is at least x < 2^124. */
int64_t layout_root_up(uint128 x);

/* Maps x in [low, high] to u in [-1, 1], a value outside the range as the nearer end, and NaN to
** 0. */
double layout_centred(double x, double low, double high);

/* Returns the index of the bin of x. Bin k has the values in [edges[k], edges[k + 1])
** (decimal_edges() in base/number.h). The first and the last bin also have all values beyond. */
int layout_bin(double x, const double *edges, int bins);

/* Bins by sign and binary exponent, in the order of their values. The middle bin holds 0 and the
** numbers of magnitude at most 2^(LAYOUT_LEAST_EXPONENT - 1). The bins beside it hold the
** magnitudes in (2^(e-1), 2^e] for e = LAYOUT_LEAST_EXPONENT, ..., LAYOUT_MOST_EXPONENT. A larger
** magnitude belongs to the outermost bin of its sign. These are the exponents of binary32
** numbers. */
#define LAYOUT_LEAST_EXPONENT (-127)
#define LAYOUT_MOST_EXPONENT  128
#define LAYOUT_EXPONENTS      (LAYOUT_MOST_EXPONENT - LAYOUT_LEAST_EXPONENT + 1)
#define LAYOUT_EXPONENT_BINS  (2 * LAYOUT_EXPONENTS + 1)

/* Returns the index of the bin of x. NaN belongs to the middle bin. */
int layout_exponent_bin(double x);

/* Returns the lower end and the upper end of a bin: 0, or a power of two with a sign. */
double layout_exponent_low(int bin);
double layout_exponent_high(int bin);

/* Returns the number of values low + k * grid in [low, high], k = 0, 1, ... A value that exceeds
** high only by rounding errors counts. grid is above 0. The result may exceed LAYOUT_MAX_GRID. */
double layout_grid_values(double low, double high, double grid);

/* Returns how many consecutive values of the question's grid share a leaf of its tree. */
double layout_grid_share(const struct contribution *question);

/* Returns the index of the leaf of x in the question's tree or bins. With a grid, x counts as the
** nearest grid value, of two the larger. Without one, `edges` has the edges of the bins. */
int layout_leaf(const struct contribution *question, const double *edges, double x);

/* ---- clipping -------------------------------------------------------------------------------- */

/* Scales a matrix of `cells` times `components` integers down, in place and in exact integers,
** until it fits; the result does not depend on their order. Their absolute values are below 2^126,
** and cells * components < 2^22. Afterwards each is at most shape->each (unless that is 0), the
** norm of every block at most its `reach`, and that of its leading part at most its `lead_reach`.
** Returns the set of the blocks that had to be scaled, as bits 1 << block. */
unsigned clip_vector(const struct layout *shape, int128 *values, size_t cells, int components);

/* The same for one block. Returns whether it was scaled down. */
int clip_block(const struct layout *shape, const struct block *block, int128 *values, size_t cells,
               int components);

/* The same until the sum of magnitudes is at most `reach`. Returns whether it was larger. */
int clip_sum(int128 *values, size_t count, int64_t reach);

#endif
