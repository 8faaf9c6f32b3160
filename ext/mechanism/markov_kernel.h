/*
** markov_kernel.h: a public Markov kernel between symbols, as people write it and as it is drawn.
**
** Written as a JSON array of its cells [x, y, p], or {"x": x, "y": y, "p": p}, as
** json_group_array() makes them of a table; cells that are missing are 0. The kernel that is drawn
** from and charged for has the probabilities w/W: w is p in steps of 2^-52, to nearest, and W the
** sum of a row, so that both are exact integers. p is at most 2^-52 from w/W where the row of p
** sums to 1.
**
** A channel may stand for several steps of a transition matrix, then written as {"steps": 3,
** "cells": [...]}: every symbol is a state, too.
*/
#ifndef DIFFUSE_MECHANISM_MARKOV_KERNEL_H
#define DIFFUSE_MECHANISM_MARKOV_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

#define CHANNEL_MAX_STATES  64 /* of symbols: the worst pair of them is searched for */
#define CHANNEL_MAX_SYMBOLS 1024
#define CHANNEL_MAX_CELLS   (1 << 22) /* of groups: states times symbols */

struct markov_kernel {
  char **states, **symbols; /* x and y as texts, each once, in their order */
  int state_count, symbol_count;
  uint64_t *weights; /* of states times symbols */
  int64_t steps;     /* how many times it is applied */
  char *json;        /* the same cells and steps, always in the same form */
};

#define CHANNEL_MAX_STEPS 1000000 /* each of them is drawn */

/*
** Reads a kernel. markov_kernel_clear() afterwards, after an error too.
*/
int markov_kernel_read(struct markov_kernel *channel, struct json *json, const char *text,
                       struct error *error);
void markov_kernel_clear(struct markov_kernel *channel);

/* Makes it so many steps. */
int channel_repeat(struct markov_kernel *channel, double steps, struct error *error);

/* Checks that a kernel is small enough to be applied to a symbol, or to be raised to a power. */
int channel_check_small(const struct markov_kernel *channel, struct error *error);

/* The weights of a state's row, or null where there is no such state. */
const uint64_t *markov_kernel_row(const struct markov_kernel *channel, const char *state);

/*
** What several channels, one behind the other, make of the states of the first: a kernel whose
** probabilities are high + low, low less than the rounding of high. All zero at first.
*/
struct chain {
  size_t rows, columns;
  double *high, *low; /* one allocation, high */
};

/*
** Puts a channel behind the chain, whose columns are `count` states, or starts the chain with it.
** Each of the states must have a row. Returns 1, or 0 when out of memory.
*/
int chain_pass(struct chain *chain, const struct markov_kernel *channel, char *const *states,
               int count);
void chain_clear(struct chain *chain);

/*
** Renyi divergence at these orders of the worst outputs of the chain behind an epsilon-DP mechanism
** whose symbol is one of its first states (kernel_rdp). Returns 1, or 0 when out of memory.
*/
int chain_rdp(const struct chain *chain, double epsilon, const double *orders, int order_count,
              double *rdp);

#endif
