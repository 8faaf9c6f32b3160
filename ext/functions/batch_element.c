/* batch_element.c: see batch_element.h. Tests: tests/functions/test_batch.py */
#include "functions/batch_element.h"

#include <string.h>

#include "base/known_names.h"

SQLITE_EXTENSION_INIT3

struct reader {
  struct batch_element *element;
  struct json *json;
  char *unknown;          /* the first unknown member, or null */
  sqlite3_value *diffuse; /* a copy, or null */
};

#define MEMBERS 5
#define NESTED  2 /* from this member on, options stand in an object of their own */

static const char *const members[MEMBERS] = {"tier", "kind", "sql", "options", "diffuse"};

static int take_member(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct reader *reader = context;
  struct batch_element *element = reader->element;
  sqlite3_value **const places[MEMBERS] = {&element->tier, &element->kind, &element->sql,
                                           &element->options, &reader->diffuse};
  for (int i = 0; i < MEMBERS; i++) {
    if (strcmp(members[i], key) != 0) continue;
    element->is_nested |= i >= NESTED;
    if (places[i] == &reader->diffuse && strcmp(type, "array") != 0)
      return error_set(reader->json->error, "diffuse must be a JSON array of tiers, not %s", type);
    *places[i] = sqlite3_value_dup(value);
    return *places[i] || error_set_memory(reader->json->error);
  }
  if (!reader->unknown) reader->unknown = sqlite3_mprintf("%s", key);
  return reader->unknown || error_set_memory(reader->json->error);
}

static int take_tier(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct reader *reader = context;
  struct batch_element *element = reader->element;
  (void)key;
  if (strcmp(type, "text") != 0)
    return error_set(reader->json->error, "diffuse must list the names of tiers, not %s", type);
  char **grown =
      sqlite3_realloc64(element->outer, sizeof *grown * (sqlite3_uint64)(element->outer_count + 2));
  if (grown) element->outer = grown;
  char *tier = grown ? sqlite3_mprintf("%s", (const char *)sqlite3_value_text(value)) : 0;
  if (!tier) return error_set_memory(reader->json->error);
  element->outer[element->outer_count++] = tier;
  element->outer[element->outer_count] = 0;
  return 1;
}

int batch_element_read(struct batch_element *element, struct json *json, const char *object) {
  struct reader reader = {element, json, 0, 0};
  *element = (struct batch_element){0};
  int read =
      json_members(json, object, take_member, &reader) &&
      (!reader.diffuse ||
       json_elements(json, (const char *)sqlite3_value_text(reader.diffuse), take_tier, &reader));
  if (read && element->is_nested && reader.unknown) {
    struct known_names known = {.asked = reader.unknown, .shows = 1};
    for (int i = 0; i < MEMBERS; i++) known_names_add(&known, members[i]);
    read = known_names_fail(&known, json->error, "unknown member%s (%sknown members: %s)");
  }
  if (read && !element->kind) read = error_set(json->error, "kind is missing");
  if (read && !element->tier) read = error_set(json->error, "tier is missing");
  sqlite3_value_free(reader.diffuse);
  sqlite3_free(reader.unknown);
  return read;
}

void batch_element_clear(struct batch_element *element) {
  sqlite3_value_free(element->tier);
  sqlite3_value_free(element->kind);
  sqlite3_value_free(element->sql);
  sqlite3_value_free(element->options);
  for (int i = 0; i < element->outer_count; i++) sqlite3_free(element->outer[i]);
  sqlite3_free(element->outer);
  *element = (struct batch_element){0};
}
