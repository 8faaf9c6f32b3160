/*
** figure.h: writes a noisy number with its interval in the form in which people write it, for
** example "1,804 ± 8".
**
** The half-width is rounded up to one significant digit, or to two if the first digit is 1 or 2
** (DIN 1333-1 rounds uncertainties in this way). The value is rounded to the same decimal place.
*/
#ifndef DIFFUSE_BASE_FIGURE_H
#define DIFFUSE_BASE_FIGURE_H

/*
** What is known about a figure. If step > 0, its possible values are origin + k * step for all
** integers k. If leaf > 0, digits below the first digit of `leaf` mean nothing. The figure lies in
** [least, most], whose ends may be infinite.
*/
struct figure_terms {
  double least, most;
  double origin, step;
  double leaf;
};

/*
** Returns the text of a value and its interval [low, high]. The caller calls sqlite3_free().
** Returns null if memory runs out. If the ends have different distances from the value, the text
** has the form "29 (27 to 34)", and both ends are rounded outward. For numbers from 1e15 on, and
** for numbers that would need more than nine decimal places, the text has the form "(1.23 ± 0.04)
** × 10^20". All three numbers are finite, and low <= value <= high.
**
** A number that would be shown outside [least, most] is shown as the nearer end, with all digits of
** this end. If both ends are finite, the text has the form with ± only if value ± half-width is
** inside.
**
** With a grid, the text shows no more decimals than the possible values have. If low = high, the
** number after ± is half a step of the grid, because numbers up to half a step away are rounded to
** the value. If low = high and there is no grid, the text has the value alone.
*/
char *figure_with_interval(double value, double low, double high, const struct figure_terms *terms);

/*
** Returns the text of a value whose noise is not known, with four significant digits. The caller
** calls sqlite3_free(). Returns null if memory runs out.
*/
char *figure_alone(double value);

#endif
