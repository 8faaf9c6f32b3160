/*
** kind.c: the kind 'sgd', its options, and the rows of a descent.
** Tests: tests/models/test_sgd.py
*/
#include "models/model.h"

#include <math.h>
#include <stdlib.h>

#include "base/sql_text.h"
#include "base/vector_text.h"
#include "functions/options.h"
#include "query/row_reader.h"

SQLITE_EXTENSION_INIT3

/* ---- the rows -------------------------------------------------------------------------------- */

/* A descent that reads rows, and its lattice. */
struct course_of_rows {
  struct design design;
  struct training *training;
  double left; /* the number of steps that belong to private rows and are not taken yet */
};

static int open_descent(struct rows *rows, const struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  struct course_of_rows *course = malloc(sizeof *course);
  if (!course) return 0;
  course->design = (struct design){release->granularity, release->shift, release->sensitivity};
  course->training = training_open(publication->definition.details, &publication->definition.layout,
                                   &course->design);
  course->left = ((const struct descent *)publication->definition.details)->rows;
  rows->state = course;
  return course->training != 0;
}

static void close_descent(struct rows *rows) {
  struct course_of_rows *course = rows->state;
  training_close(course->training);
  free(course);
}

/*
** Makes the step of a row. The row has no gradient if y is no number or the features are no vector.
** Returns 0 when out of memory.
*/
static int make_step(struct rows *rows, sqlite3_value **row) {
  const struct course_of_rows *course = rows->state;
  sqlite3_value *y = row[rows->columns.key], *features = row[rows->columns.value];
  double number = 0;
  int is_number = value_number(y, &number);
  if (is_number < 0) return 0;
  int whole = vector_text_read(features, rows->buffer, rows->question->size) && is_number;
  training_add(course->training, number, whole ? rows->buffer : 0);
  return 1;
}

/* Private rows after the n-th are ignored, so that none of them takes the step of a public row. */
static int add_private(struct rows *rows, sqlite3_value **row) {
  struct course_of_rows *course = rows->state;
  if (course->left <= 0) return 1;
  course->left--;
  return make_step(rows, row);
}

#define AHEAD 4096 /* the number of steps between two checks for an interrupt */

/* Takes the steps of private rows that have not arrived. Public rows come after them. */
static int turn_to_public(struct rows *rows, struct ledger *ledger, struct error *error) {
  struct course_of_rows *course = rows->state;
  int going = ledger_begin_computing(ledger);
  for (; going && course->left > 0; course->left--) {
    training_add(course->training, 0, 0);
    if (fmod(course->left, AHEAD) == 0) going = ledger_goes_on(ledger);
  }
  ledger_rollback(ledger);
  rows->add = make_step;
  return going || error_set(error, "%s", error_text(ledger_error(ledger)));
}

/* Takes the steps for which no rows have arrived, unless the host is interrupted. */
static int128 *finish_descent(struct rows *rows, struct ledger *ledger, struct error *error) {
  const struct course_of_rows *course = rows->state;
  int going = ledger_begin_computing(ledger);
  while (going && training_rest(course->training)) going = ledger_goes_on(ledger);
  ledger_rollback(ledger);
  int128 *totals = going ? training_totals(course->training) : 0;
  if (!going) error_set(error, "%s", error_text(ledger_error(ledger)));
  if (!totals) error_set(error, "the system gave no random bytes (the charge stays)");
  return totals;
}

static const struct own_rows rows = {open_descent, add_private, turn_to_public, finish_descent,
                                     close_descent};

/* ---- the kind -------------------------------------------------------------------------------- */

#define OPTION(type, member, ...) OWN_OPTION(type, struct model_options, member, __VA_ARGS__)

static const struct option options[] = {
    OPTION(WORD, loss, 1, "loss", 0, 0, 0, 0),
    OPTION(WORD, stop, 0, "stop", 0, 0, 0, 0),
    OPTION(WORD, schedule, 0, "schedule", 0, 0, 0, 0),
    OPTION(NUMBER, descent.decay, 0, "decay", 0, SGD_MAX_DECAY, 1, 0),
    OPTION(WHOLE_NUMBER, descent.rows, 0, "n", 1, SGD_MAX_ROWS, 0, 0),
    OPTION(NUMBER, descent.radius, 0, "radius", 0, INFINITY, 1, 1),
    OPTION(NUMBER, descent.l2, 0, "l2", 0, INFINITY, 0, 1),
    OPTION(NUMBER, descent.eta, 0, "eta", 0, INFINITY, 1, 1),
    OPTION(NUMBER, descent.bound, 0, "bound", 0, INFINITY, 1, 1),
    OPTION(NUMBER, descent.threshold, 0, "threshold", 0, INFINITY, 1, 1),
    OPTION(WHOLE_NUMBER, descent.public_rows, 0, "public_rows", 0, SGD_MAX_PUBLIC, 0, 0),
};

/*
** dp_sgd(tier, y, features, loss, options): the coefficients of a linear model; clip bounds the
** norm of the features of a row
*/
static const struct statistic_row statistic = {
    .name = "sgd",
    .family = &family_sgd,
    .form = FORM_ARRAY,
    .x = X_ALWAYS,
    .has_key = 1,
    .arguments = {P_OWN},
    .options = 1u << P_CLIP | 1u << P_DIM | 1u << P_SHARE,
    .needs_name = 1,
    .no_bound = "the coefficients of a model stay in a ball already",
    .no_keys = "a model is trained on all rows together",
    .procedure = &model_procedure,
    .own_options = options,
    .own_option_count = sizeof options / sizeof *options,
    .rows = &rows};

const struct room models_room = {.mechanisms = model_mechanisms,
                                 .statistics = &statistic,
                                 .statistic_count = 1,
                                 .functions = model_functions_register};
