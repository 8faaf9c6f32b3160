/* families.h: gives each family of sums a number, for tests that go through families in tables and
** loops. A family for the Euclidean norm has the same number as its counterpart for the sum norm
** (its member l1). */
#ifndef TEST_FAMILIES_H
#define TEST_FAMILIES_H

#include "mechanism/mechanism.h"

/* The families with keys come last. */
enum number {
  SUM,
  MEAN,
  SPREAD,
  VECTOR,
  VECTOR_MEAN,
  BINS,
  TREE,
  KEY_COUNT,
  KEY_SUM,
  KEY_MEAN,
  KEY_SPREAD,
  KEY_UNITS,
  KEY_BINS,
  KEY_TREE
};

static const struct family *const families[] = {
    [SUM] = &family_sum,
    [MEAN] = &family_mean,
    [SPREAD] = &family_spread,
    [VECTOR] = &family_vector,
    [VECTOR_MEAN] = &family_vector_mean,
    [BINS] = &family_bins,
    [TREE] = &family_tree,
    [KEY_COUNT] = &family_key_count,
    [KEY_SUM] = &family_key_sum,
    [KEY_MEAN] = &family_key_mean,
    [KEY_SPREAD] = &family_key_spread,
    [KEY_UNITS] = &family_key_units,
    [KEY_BINS] = &family_key_bins,
    [KEY_TREE] = &family_key_tree,
};

static inline enum number number_of(const struct family *family) {
  int i = SUM;
  while (i < KEY_TREE && families[i] != family && families[i]->l1 != family) i++;
  return (enum number)i;
}

/* Returns the family with this number, for the sum norm or the Euclidean norm. Single sums have one
** family for both norms, because the two norms of one number are equal. */
static inline const struct family *family_in(enum number number, int is_l1) {
  return is_l1 && families[number]->l1 ? families[number]->l1 : families[number];
}

#endif
