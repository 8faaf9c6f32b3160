/*
** entropy.c: see entropy.h.
**
** Each operating system has its own read_some(), which writes up to MOST bytes to `bytes`. It
** returns how many it wrote, 0 if a signal interrupted it first, or -1 if the system provides none.
*/
#include "noise/entropy.h"

#if defined(_WIN32)

#include <windows.h>
#include <bcrypt.h>

#define MOST 0x40000000 /* the length argument is a ULONG */

static long read_some(unsigned char *bytes, size_t count) {
  NTSTATUS status = BCryptGenRandom(NULL, bytes, (ULONG)count, BCRYPT_USE_SYSTEM_PREFERRED_RNG);
  return status == 0 ? (long)count : -1;
}

#elif defined(__linux__)

#include <errno.h>
#include <sys/types.h>

#if defined(__GLIBC__) && __GLIBC__ == 2 && __GLIBC_MINOR__ < 25

#include <sys/syscall.h>
#include <unistd.h>

/* The kernel has had this call since 3.17, but old C libraries have no function for it. */
static ssize_t getrandom(void *bytes, size_t count, unsigned flags) {
  return syscall(SYS_getrandom, bytes, count, flags);
}

#else
#include <sys/random.h>
#endif

#define MOST 0x40000000 /* the kernel gives less than 2^25 at a time: a partial read like others */

/*
** With flags 0 the call waits until the kernel's generator has been seeded, and never after that.
*/
static long read_some(unsigned char *bytes, size_t count) {
  ssize_t got = getrandom(bytes, count, 0);
  if (got < 0 && errno == EINTR) return 0;
  return got > 0 ? (long)got : -1;
}

#else

#include <unistd.h>
#if defined(__APPLE__)
#include <sys/random.h>
#endif

#define MOST 256 /* getentropy() refuses more; it gives all or nothing and is not interrupted */

static long read_some(unsigned char *bytes, size_t count) {
  return getentropy(bytes, count) == 0 ? (long)count : -1;
}

#endif

int entropy_fill(void *bytes, size_t count) {
  unsigned char *next = bytes;
  while (count > 0) {
    long got = read_some(next, count < MOST ? count : MOST);
    if (got < 0) return 0;
    next += got;
    count -= (size_t)got;
  }
  return 1;
}

/* Stores through a volatile pointer are side effects, so no compiler may remove them. */
void entropy_wipe(void *bytes, size_t count) {
  volatile unsigned char *next = bytes;
  while (count-- > 0) *next++ = 0;
}
