/* error.c: see error.h. Tests: tests/functions/test_errors.py */
#include "base/error.h"

#include <sqlite3ext.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

/* The text if memory runs out while a text is made, so that no error is lost. */
static char no_memory[] = "out of memory";

int error_set_list(struct error *error, const char *format, va_list arguments) {
  if (error->text) return 0;
  error->text = sqlite3_vmprintf(format, arguments);
  return error->text ? 0 : error_set_memory(error);
}

int error_set(struct error *error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error_set_list(error, format, arguments);
  va_end(arguments);
  return 0;
}

int error_set_memory(struct error *error) {
  if (!error->text) error->text = no_memory;
  return 0;
}

void error_add(struct error *error, const char *words) {
  if (!error->text || strstr(error->text, words)) return;
  char *text = sqlite3_mprintf("%s%s", error->text, words);
  if (!text) return; /* the error is still there */
  error_clear(error);
  error->text = text;
}

int error_is_set(const struct error *error) {
  return error->text != 0;
}

int error_is_memory(const struct error *error) {
  return error->text && strcmp(error->text, no_memory) == 0;
}

const char *error_text(const struct error *error) {
  return error->text ? error->text : no_memory;
}

void error_clear(struct error *error) {
  if (error->text != no_memory) sqlite3_free(error->text);
  error->text = 0;
}

struct error error_take(struct error *error) {
  struct error taken = *error;
  error->text = 0;
  return taken;
}

void error_restore(struct error *error, struct error taken) {
  error_clear(error);
  *error = taken;
}
