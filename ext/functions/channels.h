/*
** channels.h: a public Markov kernel between symbols, as people write it and as it is drawn.
**
** Written as a JSON array of its cells [x, y, p], or {"x": x, "y": y, "p": p}, as
** json_group_array() makes them of a table; cells that are missing are 0. The kernel that is drawn
** from and charged for has the probabilities w/W: w is p in steps of 2^-52, to nearest, and W the
** sum of a row, so that both are exact integers. p is at most 2^-52 from w/W where the row of p
** sums to 1.
*/
#ifndef DIFFUSE_FUNCTIONS_CHANNELS_H
#define DIFFUSE_FUNCTIONS_CHANNELS_H

#include <stdint.h>

#include "ledger/ledger.h"
#include "math/renyi.h"

#define CHANNEL_MAX_STATES  64 /* the worst pair of them is searched for */
#define CHANNEL_MAX_SYMBOLS 1024

struct channel {
  char **states, **symbols; /* x and y as texts, each once, in their order */
  int state_count, symbol_count;
  uint64_t *weights; /* of states times symbols */
  char *json;        /* the same cells, always in the same form */
};

/*
** Reads a channel. Returns null, or one sentence to be freed; channel_clear() afterwards either
** way.
*/
char *channel_read(struct channel *channel, struct ledger *ledger, const char *json);
void channel_clear(struct channel *channel);

/* The weights of a state's row, or null where there is no such state. */
const uint64_t *channel_row(const struct channel *channel, const char *state);

/*
** Renyi divergence at these orders of the worst outputs of the channel behind an epsilon-DP
** mechanism whose symbol is one of these states (kernel_rdp). Each of them must have a row. Returns
** 0, or -1 when out of memory.
*/
int channel_rdp(const struct channel *channel, char *const *states, int count, double epsilon,
                const double *orders, int order_count, double *rdp);

#endif
