/*
** figure.h: writes a noisy number with its interval as a person writes it, for example "1,804 ± 8".
**
** The half-width is rounded up to one significant digit, or to two if the first digit is 1 or 2
** (DIN 1333-1 rounds uncertainties in this way). The value is rounded to the same decimal place.
*/
#ifndef DIFFUSE_BASE_FIGURE_H
#define DIFFUSE_BASE_FIGURE_H

/*
** The text of a value and its interval [low, high] (sqlite3_free; null: out of memory). If the ends
** are at different distances from the value, the text is "29 (27 to 34)", and both ends are rounded
** outward. From 1e15 on, and where a decimal place beyond the ninth would be needed, the text is
** "(1.23 ± 0.04) × 10^20". If `not_negative` is 1, the value and the lower end are not shown below
** 0. All three numbers are finite, and low <= value <= high.
*/
char *figure_with_interval(double value, double low, double high, int not_negative);

/* The text of a value whose noise is not known, with four significant digits. */
char *figure_alone(double value);

#endif
