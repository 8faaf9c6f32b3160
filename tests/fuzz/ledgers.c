/* ledgers.c: a fuzz target for damaged ledger files. The input is a list of changes to an intact
** ledger. A change has four bytes for an offset (modulo the size of the file), one byte for the
** number of new bytes, and the new bytes. If the first byte of the input is 255, the target also
** cuts the file at the first offset.
**
** The extension must not crash or hang. If a new release returns an answer, the file must contain
** its charge. The target reads the charges without the indexes of the file. */
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

static char path[100];
static uint8_t *sound;
static size_t sound_size;

static void write_file(const uint8_t *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  expect(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0, "write", path);
}

static sqlite3 *host(void) {
  sqlite3 *db = fuzz_open();
  char *sql =
      sqlite3_mprintf("CREATE TABLE t(u, k, x); INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 3);"
                      "SELECT dp_init('{\"path\":\"%s\"}'); SELECT dp_protect('t', 'u')",
                      path);
  sqlite3_exec(db, sql, 0, 0, 0); /* this statement may fail, because the ledger is damaged */
  sqlite3_free(sql);
  return db;
}

static void clean_up(void) {
  char journal[120];
  snprintf(journal, sizeof journal, "%s-journal", path);
  unlink(journal);
  unlink(path);
}

static void make_sound(void) {
  const char *directory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  snprintf(path, sizeof path, "%s/diffuse-fuzz-%d", directory, (int)getpid());
  sqlite3 *db = host();
  must(db,
       "SELECT dp_tier('a', 1e-2, 10, 1e-5, 'rdp', 1e-6);"
       "SELECT dp_tier('b', 1e-3, 5, 1e-5, 'rdp', 1e-6);"
       "SELECT dp_tier('c', 1e-4, 2, 1e-5, 'gdp');"
       "SELECT dp_sum('b', x, 10, 'old') FROM t;"
       "SELECT dp_group_count('a', k, 1, '{\"name\":\"groups\",\"keys\":[\"a\",\"b\"]}') FROM t;"
       "SELECT dp_group_count('a', k, 1, 'private') FROM t;"
       "SELECT dp_quantile('a', x, '[0.1,0.5]', 0, 9, '{\"name\":\"tree\",\"bins\":8}') FROM t");
  sqlite3_close(db);
  FILE *file = fopen(path, "rb");
  struct stat status;
  expect(file && fstat(fileno(file), &status) == 0, "open", path);
  sound_size = (size_t)status.st_size;
  sound = malloc(sound_size);
  expect(sound && fread(sound, 1, sound_size, file) == sound_size, "read", path);
  fclose(file);
  atexit(clean_up);
}

/* Returns the number of charges in the file for a release, or -1 if the file cannot be read. */
static int charges_of(const char *release) {
  sqlite3 *db;
  char *sql =
      sqlite3_mprintf("SELECT count(*) FROM dp_charge NOT INDEXED WHERE release = %Q", release);
  sqlite3_open(path, &db);
  char *answer = ask(db, sql);
  int count = answer ? atoi(answer) : -1;
  sqlite3_free(answer);
  sqlite3_free(sql);
  sqlite3_close(db);
  return count;
}

static int impatient(void *calls) {
  return ++*(int *)calls > 100000; /* pages of a damaged B-tree can form a circle */
}

static const char *const statements[] = {
    "SELECT dp_verify()",
    "SELECT dp_sum('b', x, 10, 'old') FROM t",
    "SELECT dp_diffuse('old', 'c')",
    "SELECT dp_diffuse('groups', 'c')",
    "SELECT dp_diffuse('private', 'b')",
    "SELECT dp_diffuse('tree', 'b')",
    "SELECT dp_sum('a', x, 10, '{\"name\":\"old\",\"refine\":true}') FROM t",
    "SELECT dp_certificate()",
    "SELECT dp_exposure('a,b')",
    "SELECT dp_interval('groups', 'a', 'a', 0.9)",
    "SELECT count(*) FROM dp_tier, dp_budget, dp_publication",
    "SELECT count(*) FROM dp_value, dp_release",
    "SELECT count(*), sum(spent) FROM dp_rdp",
    "SELECT count(hash) FROM dp_charge",
    "SELECT dp_plan('a', 'count', 1)",
    "SELECT dp_tier('d', 1e-5, 1, 1e-5)",
    "SELECT dp_discard('old')",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!sound) make_sound();
  if (size > 4096) return 0;
  uint8_t *bytes = malloc(sound_size);
  size_t length = sound_size;
  expect(bytes != 0, "memory", "");
  memcpy(bytes, sound, sound_size);
  int cut = size && data[0] == 255;
  if (size) data++, size--;
  while (size >= 5) {
    uint32_t offset;
    memcpy(&offset, data, 4);
    offset %= (uint32_t)sound_size;
    size_t count = data[4];
    data += 5, size -= 5;
    if (count > size) count = size;
    if (count > sound_size - offset) count = sound_size - offset;
    memcpy(bytes + offset, data, count);
    data += count, size -= count;
    if (cut) length = offset;
    cut = 0;
  }
  clean_up();
  write_file(bytes, length);
  free(bytes);
  sqlite3 *db = host();
  int calls = 0;
  sqlite3_progress_handler(db, 1000, impatient, &calls);
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
    if (sqlite3_exec(db, statements[i], 0, 0, 0) != SQLITE_OK)
      expect(strcmp(sqlite3_errmsg(db), "not an error") != 0, "a sentence", statements[i]);
  }
  char *answer = ask(db, "SELECT dp_count('b', x, 1, 'new') FROM t");
  if (answer && access(path, F_OK) == 0)
    expect(charges_of("new") != 0, "an answer has a charge", answer);
  sqlite3_free(answer);
  expect(sqlite3_close(db) == SQLITE_OK, "close", "");
  return 0;
}
