/*
** local_randomisation.c: a public kernel randomises every row before the row is counted. The kernel
** is a parameter of the release. The cost is the cost of the kernel's worst pair of rows
** (release/reports.h).
*/
#include "mechanism/mechanism.h"

const struct mechanism local_randomisation = {
    .name = "local",
    .theorem = "local randomisation of each row (Warner 1965; Balle et al. 2019, Table 1): the "
               "worst pair of rows of the product of its kernels",
    .statistics = STATISTIC_REPORTS};
