/*
** process.h: recognises the process that opened a connection. After a fork(), the parent and the
** child must not both use one connection to the ledger (requirement L6).
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
      /* A page that the kernel clears in a child process. Null if the kernel cannot do that. */
      *memory;
};

/*
** process_remember() stores the identity of the calling process. process_forget() frees the page,
** both in the parent and in a child.
*/
void process_remember(struct process *process);
void process_forget(struct process *process);

/* Returns whether the calling process is the remembered one. */
int process_is_same(const struct process *process);

#endif
