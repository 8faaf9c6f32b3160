/* Runs a target on files, once each: TARGET FILE ... Stands in for libFuzzer's main(). */
#include "fuzz.h"

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    FILE *file = fopen(argv[i], "rb");
    expect(file != 0, "open", argv[i]);
    static uint8_t bytes[1 << 20];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    /* A copy of exactly its size, so that a sanitizer sees a read beyond the end. */
    uint8_t *copy = malloc(size ? size : 1);
    expect(copy != 0, "memory", argv[i]);
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
  }
  printf("%d\n", argc - 1);
  return 0;
}
