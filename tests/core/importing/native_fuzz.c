/* Damaged events, and columns of any size, for the compiled library under the sanitizers of the compiler.

   usage: native_fuzz FILE ROUNDS. What is read from FILE is cut and damaged at random (the same each time). */

#include <stdio.h>
#include <stdlib.h>

#include "../../../core/importing/_native.c"

static uint64_t state = UINT64_C(88172645463325252);

static int64_t below(int64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int64_t)(state % (uint64_t)(limit ? limit : 1));
}

/* Exactly so many bytes, so that one more is seen; every one of them is set. */
static void *block(int64_t count, size_t size)
{
    size_t bytes = (size_t)count * size;
    void *held = malloc(bytes ? bytes : 1);
    if (!held)
        exit(2);
    return memset(held, 0x55, bytes);
}

static const char *const PUT[] = {"\"", "\\", "{", "}", "[", "]", ",", ":", "\\u12", "null", "1e5", "-", "\"ph\":\"X\"",
                                  "\"args\":{", "9999999999999999999", "0", "\xff", " ", "tru", "\n"};

static uint8_t *damaged(const uint8_t *all, int64_t size, int64_t round, int64_t *length)
{
    int64_t start = round % 4 ? 0 : below(size);
    *length = round % 3 ? size - start : below(size - start);
    uint8_t *text = block(*length, 1);
    memcpy(text, all + start, (size_t)*length);
    for (int64_t times = below(4); times && *length; times--) {
        const char *put = PUT[below(sizeof PUT / sizeof *PUT)];
        int64_t at = below(*length), wide = (int64_t)strlen(put);
        if (at + wide <= *length)
            memcpy(text + at, put, (size_t)wide);
    }
    return text;
}

static int64_t read_once(const uint8_t *text, int64_t size)
{
    struct columns out;
    memset(&out, 0, sizeof out);
    out.capacity = below(3) ? 40 : below(40);
    out.distinct = below(3) ? FIELDS * out.capacity + 1 : below(6);
    for (out.buckets = 1; out.buckets <= out.distinct;)
        out.buckets *= 2;
    out.seed = (uint64_t)below(INT64_MAX);
    out.phase = block(out.capacity, 1);
    for (int i = 0; i < FIELDS; i++)
        out.texts[i] = block(out.capacity, sizeof(int32_t));
    int64_t **numbers[] = {&out.time, &out.duration, &out.id, &out.start};
    for (int i = 0; i < 4; i++)
        *numbers[i] = block(out.capacity, sizeof(int64_t));
    for (int i = 0; i < ARGUMENTS; i++)
        out.arguments[i] = block(out.capacity, sizeof(int64_t));
    out.length = block(out.capacity, sizeof(int32_t));
    out.table = memset(block(out.buckets, sizeof(int32_t)), 0xff, (size_t)out.buckets * sizeof(int32_t));
    out.where = block(2 * out.distinct, sizeof(int64_t));
    int64_t events = steplens_events(text, size, &out);
    free(out.phase);
    for (int i = 0; i < FIELDS; i++)
        free(out.texts[i]);
    for (int i = 0; i < 4; i++)
        free(*numbers[i]);
    for (int i = 0; i < ARGUMENTS; i++)
        free(out.arguments[i]);
    free(out.length);
    free(out.table);
    free(out.where);
    return events;
}

static int64_t nest_once(void)
{
    int64_t rows = below(12), *start = block(rows, sizeof *start), *end = block(rows, sizeof *end);
    int32_t *parent = block(rows, sizeof *parent), *depth = block(rows, sizeof *depth), *last = block(rows, sizeof *last);
    for (int64_t i = 0; i < rows; i++) {
        start[i] = below(20);
        end[i] = start[i] + below(20) - 2;
    }
    int64_t crossed = steplens_nest(start, end, rows, parent, depth, last);
    free(start);
    free(end);
    free(parent);
    free(depth);
    free(last);
    return !crossed;
}

int main(int count, char **given)
{
    FILE *file = count == 3 ? fopen(given[1], "rb") : NULL;
    if (!file)
        return 2;
    static uint8_t all[1 << 16];
    int64_t size = (int64_t)fread(all, 1, sizeof all, file), taken = 0, left = 0, nested = 0;
    fclose(file);
    for (int64_t round = 0; round < atol(given[2]); round++) {
        int64_t length;
        uint8_t *text = damaged(all, size, round, &length);
        int64_t events = read_once(text, length);
        free(text);
        taken += events > 0;
        left += events < 0;
        nested += nest_once();
    }
    printf("%ld %ld %ld\n", (long)taken, (long)left, (long)nested);
    return 0;
}
