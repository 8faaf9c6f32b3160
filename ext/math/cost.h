/* cost.h: what a publication costs. */
#ifndef DIFFUSE_MATH_COST_H
#define DIFFUSE_MATH_COST_H

/*
** (alpha, alpha rate + curve(alpha))-RDP with failure probability delta. Gaussian noise is a rate
** alone; Laplace noise, randomized response and other pure mechanisms are curves; private
** key selection and other approximate mechanisms carry a delta.
*/
struct cost {
  double rate;  /* zCDP rate of the Gaussian part, >= 0 */
  double delta; /* >= 0, paid anew at every publication, out of delta_keys */
  double (*curve)(const void *parameters, double alpha); /* RDP beyond the rate; null: none */
  const void *parameters;                                /* of the curve */
};

#endif
