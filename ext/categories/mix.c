/* mix.c: see mix.h. Tests: tests/categories/test_symbols.py, tests/categories/test_coarsening.py */
#include "categories/mix.h"

#include <string.h>

#include "categories/walk.h"
#include "functions/functions.h"
#include "functions/host.h"
#include "mechanism/estimate.h"
#include "release/definition.h"
#include "release/numbers.h"
#include "release/pending.h"
#include "release/publish.h"
#include "release/values.h"

SQLITE_EXTENSION_INIT3

/* ---- counts and sums of public groups -------------------------------------------------------- */

/*
** Returns whether the groups are public, each group has one number, and the numbers can be added
** up.
*/
static int have_public_sums(const struct publication *publication) {
  const struct family *family = publication->definition.contribution.family;
  return family->has_keys && family->is_linear && publication->definition.release.keys &&
         publication->definition.layout.width == 1;
}

/* Returns the first group that has no row in the kernel, or null. */
static const char *missing_group(const struct publication *publication,
                                 const struct markov_kernel *channel) {
  for (int i = 0; i < publication->grid.cells; i++) {
    if (!markov_kernel_row(channel, publication->grid.keys[i])) return publication->grid.keys[i];
  }
  return 0;
}

/* Copies the symbols of the kernel into one allocation. Returns null when out of memory. */
static char **copy_symbols(const struct markov_kernel *channel) {
  size_t count = (size_t)channel->symbol_count, bytes = 0;
  for (size_t y = 0; y < count; y++) bytes += strlen(channel->symbols[y]) + 1;
  char **copies = sqlite3_malloc64(sizeof *copies * count + bytes);
  char *at = (char *)(copies + count);
  for (size_t y = 0; copies && y < count; y++) {
    size_t size = strlen(channel->symbols[y]) + 1;
    copies[y] = memcpy(at, channel->symbols[y], size);
    at += size;
  }
  return copies;
}

/*
** Applies the kernel to the groups. Each new number is a sum of the old numbers, weighted with the
** probabilities of the kernel. Returns 1, or 0 after setting the ledger's error.
*/
static int send(const struct publication *publication, const struct markov_kernel *channel,
                struct numbers *numbers) {
  struct ledger *ledger = publication->session->ledger;
  char *const *keys = publication->grid.keys;
  int count = publication->grid.cells, symbols = channel->symbol_count;
  const char *missing = missing_group(publication, channel);
  if (missing) return error_set(ledger_error(ledger), "the kernel has no row for x '%s'", missing);
  struct chain chain = {0};
  struct reading reading = {.view = definition_view(publication),
                            .confidence = numbers->confidence,
                            .shrink = numbers->shrink};
  double *weights = sqlite3_malloc64(sizeof *weights * (sqlite3_uint64)count);
  struct estimate *sent = sqlite3_malloc64(sizeof *sent * (sqlite3_uint64)symbols);
  numbers->sent = copy_symbols(channel);
  int going = weights && sent && numbers->sent && chain_pass(&chain, channel, keys, count);
  for (int y = 0; y < symbols && going; y++) {
    for (int x = 0; x < count; x++) weights[x] = chain.high[(size_t)x * chain.columns + (size_t)y];
    sent[y] = estimate_mixed(&reading, numbers->estimates, count, weights, y);
  }
  chain_clear(&chain);
  sqlite3_free(weights);
  sqlite3_free(going ? numbers->estimates : sent);
  if (!going) return error_set_memory(ledger_error(ledger));
  numbers->estimates = sent;
  numbers->count = symbols;
  numbers->keys = numbers->sent;
  return 1;
}

int groups_resend(const struct publication *publication, const char *tier,
                  struct numbers *numbers) {
  struct ledger *ledger = publication->session->ledger;
  struct markov_kernel channel = {0};
  struct error error = {0};
  char *kernel = 0;
  ledger_kernel_find(ledger, publication->definition.release.id, tier, &kernel);
  if (!kernel) return !error_is_set(ledger_error(ledger));
  int fits = markov_kernel_read(&channel, ledger_json(ledger), kernel, &error) &&
             have_public_sums(publication) && !missing_group(publication, &channel);
  if (error_is_memory(&error)) error_set_memory(ledger_error(ledger));
  error_clear(&error);
  sqlite3_free(kernel);
  if (!fits) numbers->count = 0;
  int sent = !error_is_set(ledger_error(ledger)) && (!fits || send(publication, &channel, numbers));
  markov_kernel_clear(&channel);
  return sent;
}

/* ---- dp_mix ---------------------------------------------------------------------------------- */

/* A mixing by a kernel (release/publication.h). */
struct kernel_mixing {
  struct mixing mixing;
  struct markov_kernel kernel;
};

static const struct markov_kernel *kernel_of(const struct mixing *mixing) {
  return &((const struct kernel_mixing *)mixing)->kernel;
}

static int send_groups(const struct publication *publication, const struct mixing *mixing,
                       struct numbers *numbers) {
  return send(publication, kernel_of(mixing), numbers);
}

/*
** If the tier already has a publication by this kernel, reads the publication back. It is mixed
** once.
*/
static int mix(struct publication *publication, const struct mixing *mixing) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = publication->position.tiers[publication->position.at].name;
  const char *name = publication->definition.release.name;
  char *stored = 0;
  if (ledger_kernel_find(ledger, publication->definition.release.id, tier, &stored)) {
    int is_same = stored && strcmp(stored, kernel_of(mixing)->json) == 0;
    if (!is_same)
      error_set(ledger_error(ledger),
                stored ? "release '%s' is at tier '%s' by another kernel (it is mixed once)"
                       : "release '%s' is at tier '%s' from the start (ask dp_value)",
                name, tier);
    sqlite3_free(stored);
    return is_same && values_read(publication, tier);
  }
  if (error_is_set(ledger_error(ledger))) return 0;
  unsigned statistic = publication->definition.aggregate->family->statistic;
  if (statistic & (STATISTIC_CATEGORY | STATISTIC_REPORTS))
    return walk_mix(publication, kernel_of(mixing));
  if (!have_public_sums(publication))
    return error_set(ledger_error(ledger),
                     "release '%s' has neither a symbol nor counts or sums of public groups, "
                     "which a kernel could send on (dp_diffuse sends on what has noise)",
                     name);
  return publish_sent(publication, mixing);
}

/*
** dp_mix(name, tier, kernel [, steps]) -> TEXT, a symbol
** Publishes a release of a symbol at an outer tier. Draws the new symbol with a public Markov
** kernel, in `steps` steps: each step draws from the kernel's row for the last symbol. `kernel` is
** a JSON array of cells [x, y, p] (markov_kernel.h). Reads no data. The charge is for the first
** symbol and all kernels since then together. It is the exact cost in the worst case over all
** mechanisms that have the epsilon of the first draw. A repeated call returns the stored symbol. A
** tier gets only one symbol. For a release of reports or of groups, publishes the numbers that the
** kernel gives, as JSON.
*/
static void dp_mix(sqlite3_context *context, int argc, sqlite3_value **argv) {
  static const struct domain domain = {"steps", 1, CHANNEL_MAX_STEPS, 0, 0};
  struct session *session = &host_of(context)->session;
  const char *name = argument_text(context, argv[0], "name");
  const char *tier = name ? argument_text(context, argv[1], "tier") : 0;
  const char *kernel = tier ? argument_text(context, argv[2], "kernel") : 0;
  double steps = 1;
  if (!kernel || (argc > 3 && !argument_number(context, argv[3], &domain, &steps))) return;
  struct publication publication = {0};
  struct kernel_mixing mixing = {{mix, send_groups, 0}, {0}};
  pending_settle(session);
  error_clear(&session->error);
  int going =
      markov_kernel_read(&mixing.kernel, ledger_json(session->ledger), kernel, &session->error) &&
      channel_repeat(&mixing.kernel, steps, &session->error);
  mixing.mixing.json = mixing.kernel.json;
  if (going && publish_diffuse(&publication, session, name, tier, &mixing.mixing)) {
    result_answer(context, &publication.answer);
  } else {
    fail_call(context, function_of(context)->name, &session->error);
  }
  markov_kernel_clear(&mixing.kernel);
  publish_clear(&publication);
}

int mix_register(sqlite3 *db, struct host *host) {
  static const struct scalar function = {"dp_mix", 3, 4, PRIVATE_FUNCTION, dp_mix};
  return scalars_register(db, host, &function, 1);
}
