/*
** divergences.c: see divergences.h.
** Tests: tests/math/test_mechanisms_accuracy.py, tests/categories/test_long_kernels.py
*/
#include "categories/divergences.h"

#include <string.h>

#include "math/mixing.h"
#include "release/deferred.h"

SQLITE_EXTENSION_INIT3

/* The divergences of one kernel. */
struct divergence {
  struct computation computation;
  struct chain chain; /* a copy */
  double epsilon;
  int count;
  double *orders, *rdp; /* rdp is set when the computation is done */
};

/* A computation with at most this many terms takes a few milliseconds, and is never deferred. */
#define FEW_TERMS 100000

/*
** Computes the divergences of a chain. Checks for an interrupt after each row of the chain.
*/
static int compute(struct ledger *ledger, const struct chain *chain, double epsilon,
                   const double *orders, int count, double *rdp, struct error *error) {
  struct kernel kernel = {chain->high, chain->rows, chain->columns};
  for (int i = 0; i < count; i++) rdp[i] = 0;
  for (size_t row = 0; row < chain->rows; row++) {
    if (!kernel_rdp(&kernel, chain->low, epsilon, row, orders, count, rdp))
      return error_set_memory(error);
    if (!ledger_goes_on(ledger)) return error_set(error, "%s", error_text(ledger_error(ledger)));
  }
  return 1;
}

static int divergence_compute(struct session *session, struct computation *computation) {
  struct divergence *divergence = (struct divergence *)computation;
  return compute(session->ledger, &divergence->chain, divergence->epsilon, divergence->orders,
                 divergence->count, divergence->rdp, &session->error);
}

static void divergence_free(struct computation *computation) {
  struct divergence *divergence = (struct divergence *)computation;
  chain_clear(&divergence->chain);
  sqlite3_free(divergence->orders);
  sqlite3_free(divergence);
}

/* Adds a kernel with the orders that are to be computed. Returns 0 if memory runs out. */
static int add(struct deferred *deferred, const struct chain *chain, double epsilon,
               const double *orders, int count) {
  struct divergence *added = sqlite3_malloc64(sizeof *added);
  if (!added) return 0;
  *added = (struct divergence){
      {deferred->list, 0, divergence_compute, divergence_free}, .epsilon = epsilon, .count = count};
  added->orders = sqlite3_malloc64(2 * sizeof *orders * (sqlite3_uint64)count);
  if (!added->orders || !chain_copy(&added->chain, chain)) {
    divergence_free(&added->computation);
    return 0;
  }
  memcpy(added->orders, orders, sizeof *orders * (size_t)count);
  added->rdp = added->orders + count;
  deferred->list = &added->computation;
  return 1;
}

/*
** Copies those divergences of the chain that the list has to rdp. Moves the orders that the list
** lacks to the front of `missing`, and sets places[i] to the place of missing[i] in rdp. Returns
** the number of these orders.
*/
static int take_listed(const struct deferred *deferred, const struct chain *chain, double epsilon,
                       double *missing, int *places, int count, double *rdp) {
  for (const struct computation *next = deferred->list; next && count; next = next->next) {
    const struct divergence *at = (const struct divergence *)next;
    size_t size = 2 * sizeof *chain->high * chain->rows * chain->columns;
    if (!next->done || at->epsilon != epsilon || at->chain.rows != chain->rows ||
        at->chain.columns != chain->columns || memcmp(at->chain.high, chain->high, size) != 0)
      continue;
    int left = 0;
    for (int i = 0; i < count; i++) {
      int k = 0;
      while (k < at->count && at->orders[k] != missing[i]) k++;
      if (k < at->count) {
        rdp[places[i]] = at->rdp[k];
      } else {
        missing[left] = missing[i];
        places[left++] = places[i];
      }
    }
    count = left;
  }
  return count;
}

int divergences_find(struct session *session, const struct chain *chain, double epsilon,
                     const double *orders, int count, double *rdp, struct error *error) {
  struct deferred *deferred = &session->deferred;
  double *missing = sqlite3_malloc64(2 * sizeof *missing * (sqlite3_uint64)count);
  int *places = sqlite3_malloc64(sizeof *places * (sqlite3_uint64)count), found = 0;
  for (int i = 0; missing && places && i < count; i++) {
    missing[i] = orders[i];
    places[i] = i;
  }
  double terms = (double)chain->rows * (double)chain->rows * (double)chain->columns;
  int left =
      missing && places ? take_listed(deferred, chain, epsilon, missing, places, count, rdp) : 0;
  if (!missing || !places) {
    error_set_memory(error);
  } else if (deferred->defers && left && terms * left > FEW_TERMS) {
    if (add(deferred, chain, epsilon, missing, left)) { /* nobody sees this error */
      error_set(error, "the cost of a kernel is not computed yet (a bug)");
    } else {
      error_set_memory(error);
    }
  } else {
    double *computed = missing + count;
    found = !left || compute(session->ledger, chain, epsilon, missing, left, computed, error);
    for (int i = 0; found && i < left; i++) rdp[places[i]] = computed[i];
  }
  sqlite3_free(missing);
  sqlite3_free(places);
  return found;
}
