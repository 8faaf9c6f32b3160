/* Evaluates functions of math/ that have no SQL function of their own. The program reads one
** request per line from standard input, and prints one number per line.
**
**   d ALPHA SENSITIVITY SCALE     discrete_laplace_rdp
**   z RATE                        laplace_distance
**   e RATE                        response_epsilon
**   b ALPHA EPSILON               bounded_range_rdp
**   g EPSILON                     bounded_range_gaussian_rate
**   h RATE                        bounded_range_gaussian_epsilon
**   k ALPHA EPSILON ROWS COLUMNS PROBABILITY...   kernel_rdp */
#include <stdio.h>
#include <stdlib.h>

#include "math/math.h"

static double number(void) {
  char text[64];
  return scanf("%63s", text) == 1 ? strtod(text, 0) : -1;
}

static double of_kernel(void) {
  double alpha = number(), epsilon = number(), probability[256] = {0};
  size_t rows = (size_t)number(), columns = (size_t)number();
  for (size_t i = 0; i < rows * columns && i < 256; i++) probability[i] = number();
  struct kernel kernel = {probability, rows, columns};
  double rdp = 0;
  for (size_t row = 0; row < rows; row++) {
    if (!kernel_rdp(&kernel, 0, epsilon, row, &alpha, 1, &rdp)) return -1;
  }
  return rdp;
}

int main(void) {
  char what;
  while (scanf(" %c", &what) == 1) {
    double a = what == 'k' ? 0 : number(), b = what == 'd' || what == 'b' ? number() : 0;
    double c = what == 'd' ? number() : 0;
    printf("%.17g\n", what == 'd'   ? discrete_laplace_rdp(a, b, c)
                      : what == 'z' ? laplace_distance(a)
                      : what == 'e' ? response_epsilon(a)
                      : what == 'b' ? bounded_range_rdp(a, b)
                      : what == 'g' ? bounded_range_gaussian_rate(a)
                      : what == 'h' ? bounded_range_gaussian_epsilon(a)
                                    : of_kernel());
  }
  return 0;
}
