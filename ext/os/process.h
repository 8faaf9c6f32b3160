/*
** process.h: recognises the process that opened a connection, so that no connection to the ledger
** is used on both sides of a fork() (L6).
*/
#ifndef DIFFUSE_OS_PROCESS_H
#define DIFFUSE_OS_PROCESS_H

#include <stdint.h>

/*
** One process. Its number is not enough: a child in a PID namespace of its own can have the same.
*/
struct process {
  long pid;
  uint64_t forks; /* how often this process or its ancestors came out of a fork() */
  volatile unsigned char
      *memory; /* a page that the kernel empties in a child; null: there is none */
};

/* Remembers the calling process. process_forget() gives the memory back, in parent or child. */
void process_remember(struct process *process);
void process_forget(struct process *process);

/* Whether the calling process is the one that was remembered. */
int process_is_same(const struct process *process);

#endif
