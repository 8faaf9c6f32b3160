/* entropy.c: cryptographic random bytes from the operating system (noise.h).
**
** For each operating system there is a function read_some(), which writes `count` <= MOST random
** bytes to `bytes`, or fewer. read_some() returns the number of bytes that it wrote. It returns 0
** if a signal interrupted the call before any byte was written, and -1 if the system provides no
** random bytes.
** Tests: tests/noise/test_entropy.c */
#include "noise/noise.h"

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

/* Linux has had the system call getrandom() since version 3.17, but old C libraries have no
** function for it. */
#define getrandom(bytes, count, flags) syscall(SYS_getrandom, bytes, count, flags)

#else
#include <sys/random.h>
#endif

/* One call returns fewer than 2^25 bytes; entropy_fill() then calls again. */
#define MOST 0x40000000

/* With flags 0, getrandom() waits until the kernel's generator has been seeded once after boot.
** Later calls do not wait. */
static long read_some(unsigned char *bytes, size_t count) {
  ssize_t got = getrandom(bytes, count, 0);
  if (got < 0 && errno == EINTR) return 0;
  return got > 0 ? (long)got : -1;
}

#elif defined(__EMSCRIPTEN__)

#include <emscripten.h>

#define MOST 65536 /* crypto.getRandomValues() refuses larger counts */

/* clang-format off */
EM_JS(long, random_bytes, (unsigned char *bytes, size_t count), {
  try {
    crypto.getRandomValues(HEAPU8.subarray(bytes, bytes + count));
    return count;
  } catch (error) {
    return -1;
  }
})
/* clang-format on */

static long read_some(unsigned char *bytes, size_t count) {
  return random_bytes(bytes, count);
}

#else

#include <unistd.h>
#if defined(__APPLE__)
#include <sys/random.h>
#endif

#define MOST 256 /* getentropy() refuses larger counts */

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

/* A write through a volatile pointer is a side effect, so no compiler may remove it. */
void entropy_wipe(void *bytes, size_t count) {
  volatile unsigned char *next = bytes;
  while (count-- > 0) *next++ = 0;
}
