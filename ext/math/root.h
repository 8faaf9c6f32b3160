/* root.h: finds the root of a function of one variable, to the last digits of a double. */
#ifndef DIFFUSE_MATH_ROOT_H
#define DIFFUSE_MATH_ROOT_H

/*
** Returns a root of `function` in [low, high]. At low and high the values of `function` must be
** finite and must have opposite signs or be zero. Otherwise root_between() returns NaN.
** root_between() allocates no memory.
*/
double root_between(double (*function)(double, void *), void *parameters, double low, double high);

#endif
