/*
** root.h: the root of a monotone function of one variable, to the last digits of a double.
*/
#ifndef DIFFUSE_MATH_ROOT_H
#define DIFFUSE_MATH_ROOT_H

/*
** A root of `function` in [low, high]. The function must be finite and of opposite signs (or zero)
** at the two ends; otherwise the result is NaN. Allocates no memory.
*/
double root_between(double (*function)(double, void *), void *parameters, double low, double high);

#endif
