/*
** vector_text.h: reads vectors in the formats of sqlite-vec: JSON arrays of numbers, and blobs of
** little-endian floats.
*/
#ifndef DIFFUSE_BASE_VECTOR_TEXT_H
#define DIFFUSE_BASE_VECTOR_TEXT_H

#include <sqlite3ext.h>

/*
** Reads exactly `count` finite numbers from a JSON array, a blob of 4 * count bytes (binary32) or a
** blob of 8 * count bytes (binary64). Returns 1 if the vector was well formed. Otherwise the
** function sets all numbers to zero and returns 0. It reports no error, because an error would show
** something about the data.
*/
int vector_text_read(sqlite3_value *value, double *numbers, int count);

/*
** Returns the bytes of a blob that has the size of `count` binary32 numbers. The function does not
** check the numbers. Returns null for any other value.
*/
const unsigned char *vector_text_floats(sqlite3_value *value, int count);

/*
** Reads a text that is one number or a JSON array of at most `room` numbers. Returns the count of
** numbers, or 0 for any other text.
*/
int vector_text_list(const char *text, double *numbers, int room);

#endif
