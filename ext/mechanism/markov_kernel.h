/*
** markov_kernel.h: a public Markov kernel between categories, in its JSON form and in the exact
** form that draws and costs use.
**
** The JSON form is an array of cells [x, y, p], or {"x": x, "y": y, "p": p}, which
** json_group_array() can make from a table. Missing cells are 0. x is an input category (a state),
** y an output category (a symbol in the code). Draws and charges use the probabilities w/W: w is p
** in steps of 2^-52, rounded to nearest, and W is the sum of a row, so both are exact integers. p
** is at most 2^-52 from w/W if the row of p sums to 1.
**
** A kernel may stand for several steps of a transition matrix, written as {"steps": 3, "cells":
** [...]}. Then every output category is also a state.
*/
#ifndef DIFFUSE_MECHANISM_MARKOV_KERNEL_H
#define DIFFUSE_MECHANISM_MARKOV_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

#define CHANNEL_MAX_STATES  64 /* input categories; the cost searches all pairs */
#define CHANNEL_MAX_SYMBOLS 1024
#define CHANNEL_MAX_CELLS   (1 << 22) /* of groups: states times outputs */

struct markov_kernel {
  char **states, **symbols; /* x and y as sorted, distinct texts */
  int state_count, symbol_count;
  uint64_t *weights; /* one for each state and output category */
  int64_t steps;     /* how many times the kernel is applied */
  char *json;        /* the cells and steps in one fixed form */
};

#define CHANNEL_MAX_STEPS 1000000 /* each step is drawn */

/* Reads a kernel. The caller must call markov_kernel_clear() afterwards, even after an error. */
int markov_kernel_read(struct markov_kernel *channel, struct json *json, const char *text,
                       struct error *error);
void markov_kernel_clear(struct markov_kernel *channel);

/* Applies the kernel `steps` times in a row. */
int channel_repeat(struct markov_kernel *channel, double steps, struct error *error);

/* Checks that a kernel is small enough to be applied to a category, or to be raised to a power. */
int channel_check_small(const struct markov_kernel *channel, struct error *error);

/* Returns the weights of a state's row, or null if there is no such state. */
const uint64_t *markov_kernel_row(const struct markov_kernel *channel, const char *state);

/*
** The product of several kernels: a kernel from the states of the first to the outputs of the last.
** Its probabilities are high + low, where low is less than the rounding of high. An empty chain is
** all zero.
*/
struct chain {
  size_t rows, columns;
  double *high, *low; /* one allocation, high */
};

/*
** Appends a kernel to the chain, whose columns are the `count` states, or starts the chain with it.
** The kernel must have a row for each of the states. Returns 1, or 0 when out of memory.
*/
int chain_pass(struct chain *chain, const struct markov_kernel *channel, char *const *states,
               int count);
void chain_clear(struct chain *chain);

/*
** Computes Renyi divergences at these orders. An epsilon-DP mechanism draws one of the chain's
** first states, and the chain follows; the result is for the worst outputs (kernel_rdp). Returns 1,
** or 0 when out of memory.
*/
int chain_rdp(const struct chain *chain, double epsilon, const double *orders, int order_count,
              double *rdp);

#endif
