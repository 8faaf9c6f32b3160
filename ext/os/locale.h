/* locale.h: numbers with a decimal point, whatever the host's locale says. */
#ifndef DIFFUSE_OS_LOCALE_H
#define DIFFUSE_OS_LOCALE_H

#if defined(_WIN32)

/* What a thread had before. */
struct number_locale {
  char *name; /* null: nothing was changed */
  int per_thread;
};

#else

#include <locale.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

struct number_locale {
  locale_t locale;
};

#endif

/* The locale "C" for numbers in this thread, and back. Calls may be nested. */
struct number_locale locale_plain(void);
void locale_restore(struct number_locale before);

#endif
