/* replay.c: a main() that replaces libFuzzer's main(). TARGET FILE ... runs the target once on each
** file. */
#include "fuzz.h"

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    FILE *file = fopen(argv[i], "rb");
    expect(file != 0, "open", argv[i]);
    static uint8_t bytes[1 << 20];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    /* The copy has exactly the size of the file, so that a sanitizer detects a read beyond the
    ** end. */
    uint8_t *copy = malloc(size ? size : 1);
    expect(copy != 0, "memory", argv[i]);
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
  }
  printf("%d\n", argc - 1);
  return 0;
}
