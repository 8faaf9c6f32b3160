/*
** local_randomisation.c: every row is sent through a public kernel before it is counted. The kernel
** is a parameter of the release, and its cost that of its worst pair of rows (release/reports.h).
*/
#include "mechanism/mechanism.h"

const struct mechanism local_randomisation = {
    .name = "local",
    .theorem = "local randomisation of each row (Warner 1965; Balle et al. 2019, Table 1): the "
               "worst pair of rows of the product of its kernels",
    .statistics = STATISTIC_REPORTS};
