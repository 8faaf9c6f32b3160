/* categories.h: the room of dp_choice, dp_response_count and dp_mix: categories and reports that a
** public Markov kernel can change. */
#ifndef DIFFUSE_CATEGORIES_CATEGORIES_H
#define DIFFUSE_CATEGORIES_CATEGORIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "ledger/ledger.h"
#include "release/release.h"

/* ---- kernels (markov_kernel.c) --------------------------------------------------------------- */

/* A public Markov kernel between categories, in its JSON form and in the exact
** form that draws and costs use.
**
** The JSON form is an array of cells [x, y, p], or {"x": x, "y": y, "p": p}. SQLite's
** json_group_array() can make such an array from a table. x is an input category (the code says
** state), and y is an output category (the code says symbol). p is the probability of y for the
** input x. The probability of a missing cell is 0. Draws and charges use the probability w/W
** instead of p. The weight w is the integer nearest to p 2^52, and W is the sum of the weights of a
** row. If the probabilities of a row add up to 1, each p differs from its w/W by at most 2^-52.
**
** A kernel may also consist of several steps of a transition matrix, written as {"steps": 3,
** "cells": [...]}. In this form every output category must also be a state. */

/* Largest number of states; the cost function tries all pairs of states. */
#define CHANNEL_MAX_STATES  64
#define CHANNEL_MAX_SYMBOLS 1024
#define CHANNEL_MAX_CELLS   (1 << 22) /* largest product of the numbers of states and symbols */

struct markov_kernel {
  char **states, **symbols; /* x and y as sorted, distinct texts */
  int state_count, symbol_count;
  uint64_t *weights; /* one for each pair of a state and a symbol */
  int64_t steps;     /* number of times that the kernel is applied */
  char *json;        /* the cells and steps in one fixed form */
};

#define CHANNEL_MAX_STEPS 1000000 /* limits the running time: each step needs a draw */

/* Reads a kernel. The caller must call markov_kernel_clear() afterwards, even after an error. */
int markov_kernel_read(struct markov_kernel *channel, struct json *json, const char *text,
                       struct error *error);
void markov_kernel_clear(struct markov_kernel *channel);

/* Sets the number of steps of a kernel that has one step so far. Returns 1, or 0 with an error. */
int channel_repeat(struct markov_kernel *channel, double steps, struct error *error);

/* Check that a kernel is small enough to be applied after a draw of a category or several times,
** and that it also has a row for each of the states. */
int channel_check_small(const struct markov_kernel *channel, struct error *error);
int channel_check_next(const struct markov_kernel *channel, char *const *states, int count,
                       struct error *error);

/* Returns the weights of a state's row, or null if there is no such state. */
const uint64_t *markov_kernel_row(const struct markov_kernel *channel, const char *state);

/* The product of several kernels: a kernel from the states of the first kernel to the symbols of
** the last kernel. Each probability is high + low, where low is smaller than the rounding error of
** high. A chain without kernels has only zeros as members. */
struct chain {
  size_t rows, columns;
  double *high, *low; /* `low` is a part of the allocation `high` */
};

/* Appends a kernel, with a row for each of the `count` states, to a chain with these columns. An
** empty chain becomes this kernel, with these rows. Returns 0 if memory runs out. */
int chain_pass(struct chain *chain, const struct markov_kernel *channel, char *const *states,
               int count);
void chain_clear(struct chain *chain);

/* Copies a chain. Returns 0 if memory runs out. The caller calls chain_clear() for the copy. */
int chain_copy(struct chain *copy, const struct chain *chain);

/* ---- categories (categories.c) --------------------------------------------------------------- */

/* Releases of one category, and the costs of categories and reports.
**
** The first category is one of the candidates. The exponential mechanism or randomized response
** draws it. It alone reads the data: for a tier further out, a public kernel draws a new category
** (mix.c). A cost is a curve over the orders of the Renyi divergence. */

/* The room: releases of one of the public categories (dp_choice), local randomisation of rows
** (dp_response_count), and the public kernels that send releases on (dp_mix). */
extern const struct room categories_room;

/* All mechanisms of the room, in the order in which messages list them, then null. */
extern const struct mechanism *const category_mechanisms[];

/* A release of categories or reports has a cost at each of symbols_order_count() orders: first the
** stored orders (math/math.h), then, for each tier, the order at which the tier enforces its
** budget. symbols_order_at() returns one of these orders. If the result is at most 1, the tier has
** no such order. */
int symbols_order_count(const struct publication *publication);
double symbols_order_at(const struct publication *publication, int index);

/* Returns the costs before any kernel, for sqlite3_free(): those of a category that is drawn at a
** tier (0 for a tier without an order), or infinity for reports, which the data make. Null: out of
** memory. */
double *symbols_costs(const struct publication *publication, int tier);

/* Lowers the costs to those behind a chain of kernels, where these are smaller: a kernel never
** raises the cost, and the cost of the worst epsilon-DP mechanism behind all kernels is another
** bound. `epsilon` is the cost before any kernel at order infinity. An audience that has also seen
** an earlier stage has already paid for it. Returns 1, or 0 with the error set. */
int symbols_lower(const struct publication *publication, const struct chain *chain, double epsilon,
                  double *costs, struct error *error);

/* symbols_pay() charges the costs, or without any reports that memory ran out, and keeps those at
** the stored orders as the publication's curve, which symbols_cost() returns as a cost.
** symbols_charge() sets the lattice of a release that counts units or rows, stores the release, and
** pays. */
int symbols_pay(struct publication *publication, const double *costs);
struct cost symbols_cost(const struct publication *publication);
int symbols_charge(struct publication *publication, const double *costs);

/* Stores a category and publishes it. `kernel` made it; null: it was drawn from the data. */
int symbols_publish(struct publication *publication, const char *symbol, const char *kernel);

/* Steps of the procedure (release/kinds.h). */
int categories_charge(struct publication *publication);
int categories_draw(struct publication *publication, const int64_t *counts);
int categories_keep(struct publication *publication);

/* ---- reports (responses.c) ------------------------------------------------------------------- */

/* Local randomisation. A public Markov kernel changes every row's key before the key
** is counted (randomised response in the sense of Table 1 of Balle et al. 2019).
**
** Exactly n reports are drawn, one for each row whose key is a state of the kernel. If there are
** fewer than n rows, reports of the public state `otherwise` replace the missing rows. If there are
** more than n rows, n rows are chosen at random. Two neighbours differ in one row, and therefore in
** the distribution of one report. The states of the two rows decide how much these distributions
** differ. The cost of the release is the cost of one report for the worst pair of states. The
** release publishes an unbiased estimate of the number of rows in each state. For a tier further
** out, another kernel changes the reports, and the tier pays for the product of all kernels
** (mix.c).
**
** The text dp_release.model of such a release is {"n":...,"otherwise":"...","kernel":[...]}. */

#define RESPONSE_MAX_ROWS 100000000 /* the largest n; each report is drawn separately */

/* The details of a request: the options that only a local randomisation has. */
struct survey_options {
  double reports; /* the number of reports, n */
  char *otherwise, *kernel;
};

/* Reads the kernel of a request from JSON, and makes its states the keys of the request. */
int responses_kernel(struct request *request, struct json *json, sqlite3_value *value,
                     struct error *error);

/* The public parameters of a local randomisation, which the ledger stores as the model. */
struct survey {
  int64_t reports;
  char *otherwise, *kernel;
  struct markov_kernel channel;
};

/* Reads the model. The caller must call survey_clear() also after an error. */
int survey_read(struct survey *survey, const struct publication *publication, struct error *error);
void survey_clear(struct survey *survey);

/* Adds `count` independent reports of a state to `reports`. Returns 0 if the host is interrupted or
** the system gives no random bytes. */
int responses_pass(struct ledger *ledger, const struct markov_kernel *channel, const char *state,
                   int64_t count, int64_t *reports);

/* Stores and publishes the reports and the estimates. At an outer tier, `kernel` made the reports
** from those of the next inner tier; otherwise it is null. */
int responses_publish(struct publication *publication, const struct survey *survey,
                      const struct chain *chain, char *const *symbols, int64_t *reports,
                      const char *kernel);

/* Steps of the procedure (release/kinds.h). */
int responses_finish(struct request *request, int by_unit, struct error *error);
void responses_clear(void *details);
void responses_prepare(const struct publication *publication, const struct request *request);
int responses_charge(struct publication *publication);
int responses_draw(struct publication *publication, const int64_t *counts);
int responses_keep(struct publication *publication);

/* ---- estimates ------------------------------------------------------------------------------- */

/* Computes the weights W = (K K^T)^-1 K, a matrix of rows x columns, by Cholesky decomposition.
** If a report y is drawn from row x of the kernel K, the mean of the weight W[x'][y] is 1 for
** x' = x and 0 for every other x'. Returns 1, or 0 with the error set. The caller frees the weights
** with sqlite3_free(). */
int response_weights(const struct chain *chain, double **weights, struct error *error);

/* Returns the estimate for a state, whose text is `key`, from `count` reports. The standard
** deviation of the estimate is the largest that any data gives. The 95% interval holds for any
** data, by Hoeffding's or Bernstein's inequality. */
struct ledger_value response_estimate(const struct chain *chain, const double *weights,
                                      const char *key, size_t state, const int64_t *reports,
                                      int64_t count);

#endif
