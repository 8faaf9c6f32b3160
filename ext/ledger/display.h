/* display.h: SQL functions of private connections that write numbers, and words about them. */
#ifndef DIFFUSE_LEDGER_DISPLAY_H
#define DIFFUSE_LEDGER_DISPLAY_H

#include "ledger/handle.h"
#include "ledger/ledger.h"

/* SQL for whether a public kernel has changed the value `v` (dp_mix). */
#define MIXED_SQL(v)                                                                               \
  "EXISTS (SELECT 1 FROM dp_publication m WHERE m.release_id = " v ".release_id"                   \
  " AND m.tier = " v ".tier AND m.kernel IS NOT NULL)"

/*
** SQL for the text of the value `v` of the release `r` (a row of dp_release), with its interval,
** and for what the value is, in words.
*/
#define DISPLAY_SQL(v, low, high)                                                                  \
  "display(r.kind, r.lo, r.hi, r.clip, r.size, r.grid, r.centre, r.theta, r.radius, " MIXED_SQL(   \
      v) ", " v ".key, " v ".stddev, " v ".value, " low ", " high ")"
#define FIGURE_SQL(v)                                                                              \
  "(SELECT figure(r.kind, r.clip, r.lo, r.hi, r.grid, r.centre, r.theta, r.radius, r.max_groups,"  \
  " r.quantiles, r.ways, r.periods, r.mechanism,"                                                  \
  " (SELECT iif(protects = 'row', NULL, ifnull(unit, 'unit')) FROM dp_ledger),"                    \
  " p.kernel IS NOT NULL, p.threshold, p.clipped, p.unclipped, p.unit_stddev, p.cut, p.cut_low,"   \
  " p.cut_high, p.cut_within,"                                                                     \
  " (SELECT wider FROM dp_policy WHERE wider IS NOT NULL),"                                        \
  " (SELECT factor FROM dp_policy WHERE wider IS NOT NULL))"                                       \
  " FROM dp_publication p WHERE p.release_id = " v ".release_id AND p.tier = " v ".tier)"          \
  " || iif(r.kind = 'response_count', ', of exactly ' || json_extract(r.model, '$.n')"             \
  " || ' rows, missing ones count as ' || json_extract(r.model, '$.otherwise'), '')"               \
  " || ifnull('; ' || json_extract(r.options, '$.notice'), '')"                                    \
  " || iif(r.until IS NULL, '', (" STOPPED_SQL(                                                    \
      v) "))"                                                                                      \
         " || ifnull('; the same is also answered with clip ' || (SELECT group_concat(c, ' and ')" \
         " FROM (SELECT printf('%.15g', clip) AS c FROM (" OTHER_CLIPS_SQL(                        \
             v, "<") " UNION " OTHER_CLIPS_SQL(v, ">") ") ORDER BY clip)), '')"

/*
** SQL for the clips, all below or all above that of the release `r`, of other releases of the same
** question at the tier of the value `v`. It skips releases with the same clip by an index.
*/
#define OTHER_CLIPS_SQL(v, compare)                                                                \
  "SELECT o.clip FROM dp_release o JOIN dp_publication q ON q.release_id = o.id AND q.tier = " v   \
  ".tier WHERE o.sql = r.sql AND o.kind = r.kind AND o.clip " compare " r.clip"                    \
  " AND o.state = 'released'"

/*
** SQL for what the value `v` of the release `r` is of: its key and component, as people write them.
*/
#define LABEL_SQL(v)                                                                               \
  "(SELECT written || iif(written = '' OR meant = '', '', ': ') || meant FROM (SELECT"             \
  " CASE WHEN " v ".key GLOB '[[{]*' AND json_valid(" v ".key) THEN"                               \
  "   (SELECT ifnull(group_concat(iif(typeof(e.key) = 'text', e.key || ' ', '') ||"                \
  "     iif(e.key = 0 AND r.periods IS NOT NULL, replace(e.value, '/', ' to '),"                   \
  "     ifnull(e.value, 'none')), ', '), iif(" v ".key = '{}', 'all', " v ".key))"                 \
  "     FROM json_each(" v ".key) e)"                                                              \
  "  WHEN r.periods IS NOT NULL THEN replace(" v ".key, '/', ' to ') ELSE " v ".key END"           \
  " AS written,"                                                                                   \
  " component(r.kind, r.lo, r.hi, r.size, r.quantiles, " v ".component) AS meant))"

/*
** SQL for where the walk of a release `r` with the option until ended at the tier of the value `v`:
** the cost of its publication there, in percent of the most that it could cost.
*/
#define STOPPED_SQL(v)                                                                             \
  "SELECT iif(p.clock IS r.stop, printf('; stopped at \xC2\xB1%g%%, %.2g%% of the price of a "     \
  "whole "                                                                                         \
  "release', 100 * r.until, " SPENT_PERCENT "), printf('; \xC2\xB1%g%% was not reached',"          \
  " 100 * r.until)) FROM dp_publication p JOIN dp_tier t ON t.name = p.tier"                       \
  " WHERE p.release_id = r.id AND p.tier = " v ".tier"
#define SPENT_PERCENT "min(100, 100 * p.rate / (r.weight * t.rate))"

/*
** SQL for the options of the release `r`, where `seen` is a condition on the tier `t`. If a release
** with the option until has stopped at such a tier, its options say what part of the price it cost.
*/
#define OPTIONS_SQL(r, seen)                                                                       \
  "iif(" r ".stop IS NULL, " r ".options, ifnull((SELECT json_set(" r ".options, '$.stopped',"     \
  " p.rate / (" r ".weight * t.rate)) FROM dp_publication p JOIN dp_tier t ON t.name = p.tier"     \
  " WHERE p.release_id = " r ".id AND p.clock = " r ".stop AND " seen " ORDER BY t.rate DESC"      \
  " LIMIT 1), " r ".options))"

/* SQL that writes a number exactly. SQLite's own JSON functions write fewer digits. */
#define EXACTLY(x) "json(exact(" x "))"

/*
** SQL that reduces a time to its date. The time of day would show how long a release took, which
** depends on the rows of single units.
*/
#define DAY(time) "substr(" time ", 1, 10)"

/*
** Registers SQL functions on a private connection: those that DISPLAY_SQL, FIGURE_SQL and LABEL_SQL
** call, where stddev is NULL for the ends of bounds and for a symbol, which is in `key`; and
** exact(x), the text of a number with all its digits (base/number.h), and "null" for NULL.
*/
int display_register(struct ledger *ledger, sqlite3 *db);

/* ---- what the audience of one tier may know (audience.c) ------------------------------------- */

/*
** Restricts the tables and the certificate to what the members of one tier (the audience) may know.
** They may know the publications at their own tier and at all tiers outside it, and everything that
** can be computed from these publications.
**
** Knowing an inner publication, or a decision that depends on an inner publication, costs the rate
** of the inner tier. An audience must therefore not learn how many inner releases there are, or
** when they were made. A column that is not listed in audience.c is NULL for every audience.
*/

/*
** Returns the text of a SELECT that reads the host's columns of a table, restricted to the rows and
** columns that the members of a tier may know. The SQL parameter @tier is the name of the tier.
** `where` is "" or a further condition on these columns. The caller calls sqlite3_free(). Returns
** null if memory runs out.
*/
char *audience_select(const struct ledger_table *table, const char *where);

/*
** Returns a copy of a certificate (certificate.c) that contains only what the audience of a tier
** may know. The caller calls sqlite3_free(). Returns null on error. Call this function inside a
** transaction.
*/
char *audience_certificate(struct ledger *ledger, const char *certificate, const char *tier);

#endif
