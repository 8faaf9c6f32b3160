/* cost.h: the privacy cost of a publication. */
#ifndef DIFFUSE_MATH_COST_H
#define DIFFUSE_MATH_COST_H

/*
** (alpha, alpha rate + curve(alpha))-RDP with failure probability delta. Gaussian noise has a rate
** only. Laplace noise, randomized response and other pure mechanisms have a curve. Private key
** selection and other approximate mechanisms have a delta.
*/
struct cost {
  double rate;  /* zCDP rate of the Gaussian part, >= 0 */
  double delta; /* >= 0; every publication pays it again, out of delta_keys */
  double (*curve)(const void *parameters, double alpha); /* RDP on top of the rate; null: none */
  const void *parameters;                                /* of the curve */
};

#endif
