/* publication.c: see publication.h. Tests: tests/attacks/test_repeated_rounding.py */
#include "release/publication.h"

SQLITE_EXTENSION_INIT3

void publish_clear(struct publication *publication) {
  cost_room_clear(&publication->cost.room);
  struct ledger_grid *grid = &publication->grid;
  for (int i = 0; grid->keys && i < grid->cells; i++) sqlite3_free(grid->keys[i]);
  sqlite3_free(grid->keys);
  sqlite3_free(publication->answer.json);
  for (int i = 0; i < publication->drawn_count; i++) sqlite3_free(publication->drawn[i].values);
  sqlite3_free(publication->drawn);
  ledger_tiers_free(publication->position.tiers, publication->position.count);
  ledger_release_clear(&publication->definition.release);
  programme_release(publication->definition.programme);
  periods_release(publication->definition.periods);
  series_free(&publication->definition.series);
  json_list_free(publication->definition.groups);
  sqlite3_free(publication->definition.details);
  *publication = (struct publication){0};
}
