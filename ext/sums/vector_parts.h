/*
** vector_parts.h: adds up several vectors of one release (vector_sum.h) on several threads.
**
** Each thread has added its rows to a vector of its own. All these vectors have the same secret, so
** the units can be divided into parts by their places (partitioned_sums.h). A thread that takes a
** part merges the records of each of its units from all vectors, clips the unit, and adds it to the
** totals of the thread's own vector. In the end the totals are added up. All of them are integers,
** so the result is the same as on one thread, whoever takes which part.
**
** The caller calls these functions in this order. "On any thread" means that several threads may
** call the function at the same time, with different numbers. Each function returns 1, or 0 if
** memory runs out.
*/
#ifndef DIFFUSE_SUMS_VECTOR_PARTS_H
#define DIFFUSE_SUMS_VECTOR_PARTS_H

#include "sums/vector_sum.h"

struct vector_parts;

/*
** Prepares to add up `count` vectors by unit. The first of them will have the totals. Returns null
** if memory runs out.
*/
struct vector_parts *vector_parts_open(struct vector_sum *const *list, int count);
void vector_parts_close(struct vector_parts *parts); /* `parts` may be null */

/* On any thread: gives the cells of a vector the numbers that they have in the first vector. */
int vector_parts_prepare(struct vector_parts *parts, int number);

/*
** Finds the parts. Sets *count to their number, which is 0 if the vectors must be added up on one
** thread.
*/
int vector_parts_find(struct vector_parts *parts, unsigned *count);

/* On any thread: adds a part to the vector with this number, which no other thread uses. */
int vector_parts_add(struct vector_parts *parts, int number, unsigned part);

/*
** Adds up the totals of all vectors, so that vector_sum_totals() of the first vector returns them.
** Returns 0 if the vectors must be added up on one thread after all. Their records are complete.
*/
int vector_parts_end(struct vector_parts *parts);

#endif
