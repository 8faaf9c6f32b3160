/*
** vector_text.h: vectors as people store them: JSON arrays of numbers, and blobs of little-endian
** floats (the formats of sqlite-vec).
*/
#ifndef DIFFUSE_BASE_VECTOR_TEXT_H
#define DIFFUSE_BASE_VECTOR_TEXT_H

#include <sqlite3ext.h>

/*
** Reads exactly `count` finite numbers: a JSON array, a blob of 4 * count bytes (binary32) or of 8
** * count bytes (binary64). Anything else sets all of them to zero: data is never an error. Returns
** 1 where the vector was well formed.
*/
int vector_text_read(sqlite3_value *value, double *numbers, int count);

/*
** The bytes of a blob that has the size of `count` binary32, whatever they are; null for anything
** else.
*/
const unsigned char *vector_text_floats(sqlite3_value *value, int count);

/*
** Reads a text that is one number or a JSON array of numbers, at most `room`; returns how many, or
** 0 for anything else.
*/
int vector_text_list(const char *text, double *numbers, int room);

#endif
