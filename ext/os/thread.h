/* thread.h: threads, locks between threads, and a clock that does not jump when somebody changes
** the system time. */
#ifndef DIFFUSE_OS_THREAD_H
#define DIFFUSE_OS_THREAD_H

#include <stdint.h>

#if defined(_WIN32)

struct mutex {
  void *lock; /* an SRWLOCK */
};
struct once {
  void *once; /* an INIT_ONCE */
};
struct thread {
  void *handle;
  void (*run)(void *argument);
  void *argument;
};
#define MUTEX_INITIALIZER                                                                          \
  { 0 }
#define ONCE_INITIALIZER                                                                           \
  { 0 }

#else

#include <pthread.h>

struct mutex {
  pthread_mutex_t mutex;
};
struct once {
  pthread_once_t once;
};
struct thread {
  pthread_t thread;
  void (*run)(void *argument);
  void *argument;
};
#define MUTEX_INITIALIZER                                                                          \
  { PTHREAD_MUTEX_INITIALIZER }
#define ONCE_INITIALIZER                                                                           \
  { PTHREAD_ONCE_INIT }

#endif

void mutex_lock(struct mutex *mutex);
void mutex_unlock(struct mutex *mutex);

/* Calls the function in the first call with this `once`; a concurrent call waits until it has
** returned. */
void once_run(struct once *once, void (*function)(void));

/* Starts a thread, which receives no signals: the host handles them in its own threads. Returns 0
** if it cannot be started. `thread` must not move until thread_join() has returned. */
int thread_start(struct thread *thread, void (*run)(void *argument), void *argument);
void thread_join(struct thread *thread);

/* Milliseconds since an arbitrary moment. The number never decreases. */
int64_t clock_milliseconds(void);

/* Waits for about this number of microseconds. A signal may end the wait earlier. */
void clock_sleep(unsigned microseconds);

#endif
