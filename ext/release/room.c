/* room.c: see room.h. Tests: tests/functions/test_options.py */
#include "release/room.h"

static const struct room *const *all;

void rooms_open(const struct room *const *rooms) {
  if (all) return;
  core_open();
  for (all = rooms; *rooms; rooms++) {
    statistics_add((*rooms)->statistics, (*rooms)->statistic_count);
    if ((*rooms)->mechanisms) mechanisms_add((*rooms)->mechanisms);
  }
}

int rooms_resend(const struct publication *publication, const char *tier, struct numbers *numbers) {
  const struct room *const *room = all;
  while (*room && !(*room)->resend) room++;
  return !*room || (*room)->resend(publication, tier, numbers);
}
