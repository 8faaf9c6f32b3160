/* locale.h: makes the C library use a decimal point, whatever the host's locale is. */
#ifndef DIFFUSE_OS_LOCALE_H
#define DIFFUSE_OS_LOCALE_H

#if defined(_WIN32)

/* The previous locale of a thread. */
struct number_locale {
  char *name; /* null if locale_plain() changed nothing */
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

/*
** locale_plain() sets the locale "C" for numbers in this thread and returns the previous locale.
** locale_restore() sets the previous locale again. Pairs of calls may be nested.
*/
struct number_locale locale_plain(void);
void locale_restore(struct number_locale before);

#endif
