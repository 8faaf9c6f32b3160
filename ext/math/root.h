/*
** root.h: the root of a monotone function of one variable, to the last digits of a double.
*/
#ifndef DIFFUSE_MATH_ROOT_H
#define DIFFUSE_MATH_ROOT_H

/*
** A root of `function` in [low, high], at whose ends it is finite and of opposite signs (or zero).
** NaN where that does not hold. Needs no memory.
*/
double root_between(double (*function)(double, void *), void *parameters, double low, double high);

#endif
