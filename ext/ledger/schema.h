/* schema.h: the tables of sql/ledger.sql in the open file. */
#ifndef DIFFUSE_LEDGER_SCHEMA_H
#define DIFFUSE_LEDGER_SCHEMA_H

#include "ledger/handle.h"

/* Fails if the format number of the open file is not LEDGER_FORMAT. */
int ledger_check_format(struct ledger *ledger);

/* Creates the tables of sql/ledger.sql. Call this function inside a transaction. */
int ledger_make_schema(struct ledger *ledger);

/* Compares the schema of the open file with sql/ledger.sql. A difference is a discrepancy. */
int ledger_verify_schema(struct ledger *ledger);

#endif
