/* thread.c: see os.h.
** Tests: tests/query/test_question_threads.py, tests/attacks/test_clock.py */
#include "os/os.h"

/* The size of a thread's stack. SQLite's JSON functions need some hundred kilobytes for deeply
** nested values, and some C libraries give a thread no more than 128. */
#define STACK (8 << 20)

#if defined(_WIN32)

#include <process.h>
#include <windows.h>

_Static_assert(sizeof(struct mutex) == sizeof(SRWLOCK), "a lock is one pointer");
_Static_assert(sizeof(struct once) == sizeof(INIT_ONCE), "and so is this");

void mutex_lock(struct mutex *mutex) {
  AcquireSRWLockExclusive((SRWLOCK *)mutex);
}

void mutex_unlock(struct mutex *mutex) {
  ReleaseSRWLockExclusive((SRWLOCK *)mutex);
}

struct first_run {
  void (*function)(void);
};

static BOOL CALLBACK run_first(INIT_ONCE *once, void *pointer, void **context) {
  const struct first_run *first = pointer;
  (void)once;
  (void)context;
  first->function();
  return TRUE;
}

void once_run(struct once *once, void (*function)(void)) {
  struct first_run first = {function};
  InitOnceExecuteOnce((INIT_ONCE *)once, run_first, &first, 0);
}

static unsigned __stdcall run_thread(void *pointer) {
  struct thread *thread = pointer;
  thread->run(thread->argument);
  return 0;
}

int thread_start(struct thread *thread, void (*run)(void *argument), void *argument) {
  *thread = (struct thread){.run = run, .argument = argument};
  thread->handle = (void *)_beginthreadex(0, STACK, run_thread, thread,
                                          STACK_SIZE_PARAM_IS_A_RESERVATION, 0);
  return thread->handle != 0;
}

void thread_join(struct thread *thread) {
  WaitForSingleObject(thread->handle, INFINITE);
  CloseHandle(thread->handle);
}

int64_t clock_milliseconds(void) {
  return (int64_t)GetTickCount64();
}

/* Sleep() of Windows takes whole milliseconds, so this function rounds up. */
void clock_sleep(unsigned microseconds) {
  Sleep((microseconds + 999) / 1000);
}

#else

#include <signal.h>
#include <time.h>

void mutex_lock(struct mutex *mutex) {
  pthread_mutex_lock(&mutex->mutex);
}

void mutex_unlock(struct mutex *mutex) {
  pthread_mutex_unlock(&mutex->mutex);
}

void once_run(struct once *once, void (*function)(void)) {
  pthread_once(&once->once, function);
}

static void *run_thread(void *pointer) {
  struct thread *thread = pointer;
  thread->run(thread->argument);
  return 0;
}

int thread_start(struct thread *thread, void (*run)(void *argument), void *argument) {
  pthread_attr_t attributes;
  sigset_t all, before;
  thread->run = run;
  thread->argument = argument;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits this mask */
  int error = pthread_attr_init(&attributes);
  if (!error) {
    error = pthread_attr_setstacksize(&attributes, STACK);
    if (!error) error = pthread_create(&thread->thread, &attributes, run_thread, thread);
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, 0);
  return error == 0;
}

void thread_join(struct thread *thread) {
  pthread_join(thread->thread, 0);
}

int64_t clock_milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void clock_sleep(unsigned microseconds) {
  struct timespec time = {(time_t)(microseconds / 1000000), (long)(microseconds % 1000000) * 1000};
  nanosleep(&time, 0);
}

#endif
