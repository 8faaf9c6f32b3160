/* cost.h: the privacy cost of a publication. */
#ifndef DIFFUSE_MATH_COST_H
#define DIFFUSE_MATH_COST_H

/*
** A publication with this cost is (alpha, alpha rate + curve(alpha))-RDP for every order alpha,
** except with failure probability delta. Gaussian noise costs a rate only. Laplace noise,
** randomized response and other pure mechanisms cost a curve. Private key selection and other
** approximate mechanisms cost a delta.
*/
struct cost {
  double rate;  /* zCDP rate of the Gaussian part, >= 0 */
  double delta; /* >= 0; each publication pays it in full, out of the tier's delta_keys */
  /* the RDP that is added to the RDP of the rate; null: no curve */
  double (*curve)(const void *parameters, double alpha);
  const void *parameters; /* the first argument of curve() */
};

#endif
