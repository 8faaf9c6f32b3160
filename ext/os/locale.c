/* locale.c: see locale.h. Tests: tests/mechanism/test_noise.py */
#include "os/locale.h"

#if defined(_WIN32)

#include <locale.h>
#include <stdlib.h>
#include <string.h>

struct number_locale locale_plain(void) {
  struct number_locale before = {0, 0};
  if (strcmp(localeconv()->decimal_point, ".") == 0) return before;
  before.per_thread = _configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
  before.name = _strdup(setlocale(LC_NUMERIC, 0));
  if (before.name) setlocale(LC_NUMERIC, "C");
  return before;
}

void locale_restore(struct number_locale before) {
  if (!before.name) return;
  setlocale(LC_NUMERIC, before.name);
  _configthreadlocale(before.per_thread);
  free(before.name);
}

#else

struct number_locale locale_plain(void) {
  locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
  return (struct number_locale){plain ? uselocale(plain) : (locale_t)0};
}

void locale_restore(struct number_locale before) {
  locale_t plain = before.locale ? uselocale(before.locale) : (locale_t)0;
  if (plain && plain != LC_GLOBAL_LOCALE) freelocale(plain);
}

#endif
