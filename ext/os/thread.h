/* thread.h: threads, and locks between threads. */
#ifndef DIFFUSE_OS_THREAD_H
#define DIFFUSE_OS_THREAD_H

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

/*
** Calls the function if this is the first call of once_run() with this `once`. A concurrent call
** with the same `once` waits until the function has returned.
*/
void once_run(struct once *once, void (*function)(void));

/*
** Starts a thread. The new thread receives no signals, because the host handles signals in its own
** threads. Returns 0 if the thread cannot be started. `thread` must not move until thread_join()
** has returned.
*/
int thread_start(struct thread *thread, void (*run)(void *argument), void *argument);
void thread_join(struct thread *thread);

#endif
