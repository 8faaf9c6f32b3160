/* functions.h: the SQL functions that use stored models. */
#ifndef DIFFUSE_MODELS_FUNCTIONS_H
#define DIFFUSE_MODELS_FUNCTIONS_H

struct host;
struct sqlite3;

/* Registers the functions. Returns an SQLite result code. */
int model_functions_register(struct sqlite3 *db, struct host *host);

#endif
