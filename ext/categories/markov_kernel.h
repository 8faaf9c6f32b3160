/* markov_kernel.h: a public Markov kernel between categories, in its JSON form and in the exact
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
#ifndef DIFFUSE_CATEGORIES_MARKOV_KERNEL_H
#define DIFFUSE_CATEGORIES_MARKOV_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

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

#endif
