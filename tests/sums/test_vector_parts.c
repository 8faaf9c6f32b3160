/* test_vector_parts.c: adds up vectors on several threads (sums.h), and compares the totals
** with those of one vector that has all rows, which test_vector_sum.c compares with a reference.
** Built with -fsanitize=thread, the test shows that the threads share nothing. */
#include "check.h"

#include <stdatomic.h>

#include "families.h"
#include "os/os.h"
#include "sums/sums.h"
#include "tables.h"

enum { MOST = 4, KEYS = 40 };

/* ---- threads --------------------------------------------------------------------------------- */

struct crew {
  struct vector_parts *parts;
  int count;
  atomic_int failed;
  unsigned tasks;
  atomic_uint next;
  int is_adding;
};

struct worker {
  struct crew *crew;
  int number;
  struct thread thread;
};

static void work(void *pointer) {
  struct worker *worker = pointer;
  struct crew *crew = worker->crew;
  unsigned task;
  while ((task = atomic_fetch_add(&crew->next, 1)) < crew->tasks) {
    int done = crew->is_adding ? vector_parts_add(crew->parts, worker->number, task)
                               : vector_parts_prepare(crew->parts, (int)task);
    if (!done) atomic_store(&crew->failed, 1);
  }
}

static void do_all(struct crew *crew, unsigned tasks, int is_adding) {
  struct worker workers[MOST];
  crew->tasks = tasks;
  crew->is_adding = is_adding;
  atomic_store(&crew->next, 0);
  for (int i = 0; i < crew->count; i++) {
    workers[i] = (struct worker){.crew = crew, .number = i};
    CHECK(thread_start(&workers[i].thread, work, &workers[i]), "thread %d", i);
  }
  for (int i = 0; i < crew->count; i++) thread_join(&workers[i].thread);
}

/* ---- rows_join(), for vectors ---------------------------------------------------------------- */

struct joining {
  struct vector_sum *vectors;
  int *cells;
};

static int join_record(void *context, struct identity unit, uint32_t slot, const int128 *values) {
  const struct joining *joining = context;
  uint32_t bins = (uint32_t)vector_sum_shape(joining->vectors)->bins;
  if (joining->cells) slot = (uint32_t)joining->cells[slot / bins] * bins + slot % bins;
  return vector_sum_add_record(joining->vectors, unit, slot, values);
}

static int join(struct vector_sum *vectors, struct vector_sum *other) {
  struct joining joining = {vectors, 0};
  int joined = vector_sum_map(vectors, other, &joining.cells) &&
               vector_sum_records(other, join_record, &joining) &&
               vector_sum_join_tally(vectors, other);
  free(joining.cells);
  return joined;
}

/* ---- the comparison -------------------------------------------------------------------------- */

/* How the parts ended. */
enum end { IN_PARTS, NO_PARTS, GIVEN_UP };

/* Gives each row to one of `threads` vectors, adds them up on as many threads, and compares the
** totals with those of one vector. Returns how the parts ended. */
static enum end compare(const struct release *release, const struct row *rows, int count,
                        int threads, const char *what) {
  struct vector_sum *list[MOST], *whole = vectors_start(release);
  struct crew crew = {.count = threads};
  enum end end = NO_PARTS;
  unsigned parts = 0;
  int going = whole != 0;
  for (int i = 0; i < threads; i++) going &= (list[i] = vectors_start(release)) != 0;
  for (int i = 0; i < count && going; i++)
    going = vectors_add(release, whole, &rows[i]) &&
            vectors_add(release, list[below(threads)], &rows[i]);
  if (going) going = (crew.parts = vector_parts_open(list, threads)) != 0;
  if (going) do_all(&crew, (unsigned)threads, 0);
  if (going) going = !atomic_load(&crew.failed) && vector_parts_find(crew.parts, &parts);
  CHECK(going, "%s", what);
  if (going && parts) {
    do_all(&crew, parts, 1);
    CHECK(!atomic_load(&crew.failed), "%s", what);
    end = vector_parts_end(crew.parts) ? IN_PARTS : GIVEN_UP;
  }
  for (int i = 1; i < threads && going && end != IN_PARTS; i++)
    CHECK(join(list[0], list[i]), "%s: vector %d", what, i);
  int128 *want = going ? totals_now(release, whole, KEY_END) : 0;
  int128 *got = going ? totals_now(release, list[0], KEY_END) : 0;
  size_t wrong = 0, size = totals_count(release, KEY_END), empty = 1;
  for (size_t i = 0; i < size && want && got; i++) {
    wrong += want[i] != got[i];
    empty &= want[i] == 0;
  }
  CHECK(want && got && !wrong && !empty, "%s: %zu of %zu totals are wrong", what, wrong, size);
  struct tally first = vector_sum_tally(whole), second = vector_sum_tally(list[0]);
  CHECK(first.clipped == second.clipped && first.whole == second.whole, "%s", what);
  free(want);
  free(got);
  vector_parts_close(crew.parts);
  vector_sum_close(whole);
  for (int i = threads - 1; i >= 0; i--) vector_sum_close(list[i]);
  return end;
}

/* Random rows of `units` units of all sorts. Some units and keys are frequent, and values tie. */
static struct row *random_rows(int count, int units, int keys, double size) {
  struct row *rows = malloc(sizeof *rows * (size_t)count);
  static double v[4] = {0.25, -1, 3, 0};
  for (int i = 0; i < count; i++) {
    double unit = below(units) / (1 + below(3));
    rows[i] = (struct row){.who = (enum who)below(5), .key = below(keys), .v = v};
    rows[i].unit = rows[i].who == WHO_REAL ? unit + 0.5 * below(2) : floor(unit);
    if (rows[i].who == WHO_INTEGER && below(4) == 0) rows[i].unit *= 0x1p33;
    rows[i].x = size * (below(9) - 4);
  }
  return rows;
}

static struct contribution question_of(enum number family, int is_private, int diagnose) {
  struct contribution question = {.family = families[family],
                                  .clip = 2.5,
                                  .low = -2,
                                  .high = 3,
                                  .size = 4,
                                  .diagnose = diagnose};
  if (family >= KEY_COUNT) question.keys = is_private ? KEYS_PRIVATE : KEYS;
  if (is_private) question.max_groups = 3;
  return question;
}

static void like_one_vector(void) {
  for (int family = MEAN; family <= KEY_TREE; family++) {
    for (int flags = 0; flags < 4; flags++) {
      int is_private = flags & 1, diagnose = flags >> 1;
      if (is_private && (family < KEY_COUNT || diagnose)) continue;
      struct contribution question = question_of((enum number)family, is_private, diagnose);
      struct release release = release_of(&question, 1, 0);
      entropy_seed = random_bits();
      int count = below(2000) + 10;
      struct row *rows = random_rows(count, 300, KEYS, 0.5);
      char what[80];
      snprintf(what, sizeof what, "family %d, private %d, diagnose %d", family, is_private,
               diagnose);
      CHECK(compare(&release, rows, count, 2 + below(MOST - 1), what) == IN_PARTS, "%s", what);
      free(rows);
    }
  }
}

/* Vectors whose buckets are split differently: each has units that the others hardly have. */
static void many_units(void) {
  for (int is_private = 0; is_private < 2; is_private++) {
    enum { ROWS = 200000 };
    struct contribution question = question_of(KEY_SUM, is_private, 0);
    struct release release = release_of(&question, 1, 0);
    struct row *rows = random_rows(ROWS, 150000, KEYS, 0.5);
    for (int threads = 2; threads <= 3; threads++)
      CHECK(compare(&release, rows, ROWS, threads, "many units") == IN_PARTS, "%d", threads);
    free(rows);
  }
}

/* A unit with very many rows fills its bucket, which cannot be split. */
static void one_large_unit(void) {
  enum { ROWS = 100000 };
  struct contribution question = question_of(KEY_MEAN, 0, 0);
  struct release release = release_of(&question, 1, 0);
  struct row *rows = random_rows(ROWS, 1000, KEYS, 0.5);
  for (int i = 0; i < ROWS / 2; i++) {
    rows[i].who = WHO_INTEGER;
    rows[i].unit = 7;
  }
  CHECK(compare(&release, rows, ROWS, 2, "a large unit") == IN_PARTS, "parts");
  free(rows);
}

/* Sums of more than 2^61 steps. Either one row has so many, or two rows that are in different
** vectors together. */
static void sums_of_128_bits(void) {
  struct contribution question = question_of(KEY_SUM, 0, 0);
  struct release release = release_of(&question, 1, 0);
  double most = 0x1p61 / release.shape.scale;
  int ends[3] = {0};
  for (int run = 0; run < 40; run++) {
    int count = below(1000) + 100, large = below(2);
    struct row *rows = random_rows(count, 100, KEYS, 0.5);
    for (int i = 0; i < 5; i++) {
      struct row *row = &rows[below(count)];
      *row = rows[0];
      row->x = most * (large ? 1e6 : 0.9);
    }
    ends[compare(&release, rows, count, 2, large ? "a large row" : "large sums")]++;
    free(rows);
  }
  CHECK(ends[NO_PARTS] && ends[GIVEN_UP], "ends %d, %d, %d", ends[0], ends[1], ends[2]);
}

int main(void) {
  RUN(like_one_vector);
  RUN(many_units);
  RUN(one_large_unit);
  RUN(sums_of_128_bits);
  FINISH();
}
