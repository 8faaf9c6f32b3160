/*
** process.h: recognises the process that opened a connection, so that no connection to the ledger
** is used on both sides of a fork() (L6).
*/
#ifndef DIFFUSE_OS_PROCESS_H
#define DIFFUSE_OS_PROCESS_H

#include <stdint.h>

/*
** Identifies a process. The process id alone is not enough: a child in its own PID namespace can
** have the same id.
*/
struct process {
  long pid;
  uint64_t forks; /* the number of fork() calls between the first process and this one */
  volatile unsigned char
      *memory; /* a page that the kernel clears in a child; null: not supported */
};

/* Remembers the calling process. process_forget() frees the memory, in the parent or in a child. */
void process_remember(struct process *process);
void process_forget(struct process *process);

/* Whether the calling process is the remembered one. */
int process_is_same(const struct process *process);

#endif
