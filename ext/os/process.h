/*
** process.h: recognises the process that opened a connection. After a fork(), the parent and the
** child must not both use one connection to the ledger (requirement L6 in ledger/ledger.h).
*/
#ifndef DIFFUSE_OS_PROCESS_H
#define DIFFUSE_OS_PROCESS_H

#include <stdint.h>

/*
** Identifies a process. The process id alone is not enough, because a child in another PID
** namespace can have the same id as its parent.
*/
struct process {
  long pid;
  uint64_t forks; /* generations of children since the first process_remember(); 0 on macOS */
  volatile unsigned char
      /* A page that the kernel clears in a child process. Null if the kernel cannot do that. */
      *memory;
};

/*
** process_remember() stores the identity of the calling process. process_forget() frees the page.
** The parent and the child may both call process_forget().
*/
void process_remember(struct process *process);
void process_forget(struct process *process);

/* Returns whether the calling process is the one that called process_remember(). */
int process_is_same(const struct process *process);

#endif
