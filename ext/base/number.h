/*
** number.h: the one writer of numbers. The text of a number depends on the number alone, not on the
** version of SQLite or on the host's locale, so that a replay gives the same text everywhere.
*/
#ifndef DIFFUSE_BASE_NUMBER_H
#define DIFFUSE_BASE_NUMBER_H

#define NUMBER_SIZE 32

/*
** Writes a number as JSON and SQL have it, with a decimal point: "-0.8", "4.0", "1.5e+20". With
** `digits` 0, the text has the least number of digits, from 15 to 17, that gives the same double.
** Otherwise `digits`, at most 17, is the number of significant digits. Infinity is "9e999", and NaN
** is "null". Returns the text, which is in `text` or a constant.
*/
const char *number_write(double x, int digits, char text[NUMBER_SIZE]);

/* The exact text of a number, as an argument. It is valid until the end of the block. */
#define NUMBER_TEXT(x) number_write(x, 0, (char[NUMBER_SIZE]){0})

#endif
