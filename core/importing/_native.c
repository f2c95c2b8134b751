/* What takes numpy long and C a moment: regular events read from their text into columns, and the nest of slices.

   It is the quick road for what Kineto writes. It takes nothing on trust: whatever it does not know, or is not valid
   JSON, ends it with the place where that stands, and the caller reads the piece by the other road, which explains and
   repairs. No byte outside of text[0, size) is looked at, and none is written
   outside of the columns that were given.

   It is no Python module (nothing of Python is needed to build it): `core.importing.native` calls it by ctypes. */

#include <stdint.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#define VERSION 3 /* one more with every change of what is read; the caller asks for the one it knows */
#define DEPTH 60 /* of nested lists and objects that are stepped over */
#define FIELDS 4 /* texts of an event: category, name, process, thread */
#define ARGUMENTS 8
#define SLOTS 14 /* the arguments of a slice, then those of an instant about memory */
#define ABSENT (-1)
#define NO_INT INT64_MIN /* an argument stands there, and is no integer of a sane size */
#define FULL INT64_MIN   /* there are more events than rows */

struct columns {
    int64_t capacity; /* rows */
    int64_t distinct; /* rows of `where` */
    int64_t buckets;  /* of `table`, a power of two, more than `distinct` */
    uint64_t seed;
    uint8_t *phase;                /* [capacity] */
    int32_t *texts[FIELDS];        /* [capacity] each: numbers of rows in `where`; none for metadata and counters */
    int64_t *time, *duration, *id; /* [capacity] each, ns; -1 where there is no duration or a negative one */
    int64_t *arguments[ARGUMENTS]; /* [capacity] each */
    int64_t *start;                /* [capacity] */
    int32_t *length;               /* [capacity] */
    int32_t *table;                /* [buckets], all of them -1 */
    int64_t *where;                /* [distinct][2]: offset and length of each distinct text */
    int64_t found;                 /* how many there are */
    int64_t odd;                   /* rows with `NO_INT` among their arguments */
};

struct text {
    const uint8_t *at;
    int64_t size;
};

struct span {
    int64_t start, size;
};

static inline int byte_at(struct text t, int64_t at) { return at < t.size ? t.at[at] : 0; /* valid nowhere */ }

/* Eight bytes in the order of a little-endian machine, zeros behind the end. */
static inline uint64_t word_at(struct text t, int64_t at)
{
    uint64_t word = 0;
    if (at + 8 <= t.size)
        memcpy(&word, t.at + at, 8);
    else if (at < t.size)
        memcpy(&word, t.at + at, (size_t)(t.size - at));
    return word;
}

static inline uint64_t low_bytes(uint64_t word, int64_t count) { return word & ((UINT64_C(1) << (8 * count)) - 1); }

static inline int is_digit(int byte) { return byte >= '0' && byte <= '9'; }

static inline int64_t after_blanks(struct text t, int64_t at)
{
    while (at < t.size && (t.at[at] == ' ' || t.at[at] == '\n' || t.at[at] == '\r' || t.at[at] == '\t'))
        at++;
    return at;
}

/* Behind an escape that begins at a backslash, -1 where it is none. */
static int64_t after_escape(struct text t, int64_t at)
{
    int kind = byte_at(t, at + 1);
    if (kind == 'u') {
        for (int i = 2; i < 6; i++) {
            int digit = byte_at(t, at + i);
            if (!(is_digit(digit) || (digit >= 'a' && digit <= 'f') || (digit >= 'A' && digit <= 'F')))
                return -1;
        }
        return at + 6;
    }
    return kind && strchr("\"\\/bfnrt", kind) ? at + 2 : -1;
}

/* The quotation mark that ends a string whose text begins here, -1 where there is none. */
static inline int64_t string_end(struct text t, int64_t at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    for (;;) {
        while (at + 8 <= t.size) { /* eight bytes of which none is a quotation mark, a backslash or a control character */
            uint64_t word = word_at(t, at), quote = word ^ (ones * '"'), backslash = word ^ (ones * '\\');
            uint64_t stops = ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) | ((word - ones * ' ') & ~word);
            if (stops & tops)
                break;
            at += 8;
        }
        for (int byte; (byte = byte_at(t, at)) != '\\'; at++) {
            if (byte == '"')
                return at;
            if (byte < ' ')
                return -1;
        }
        at = after_escape(t, at);
        if (at < 0)
            return -1;
    }
}

static int64_t after_digits(struct text t, int64_t at)
{
    if (!is_digit(byte_at(t, at)))
        return -1;
    while (is_digit(byte_at(t, at)))
        at++;
    return at;
}

static int64_t after_number(struct text t, int64_t at)
{
    at += byte_at(t, at) == '-';
    at = byte_at(t, at) == '0' ? at + 1 : after_digits(t, at);
    if (at >= 0 && byte_at(t, at) == '.')
        at = after_digits(t, at + 1);
    if (at >= 0 && (byte_at(t, at) | 32) == 'e') {
        at++;
        at = after_digits(t, at + (byte_at(t, at) == '+' || byte_at(t, at) == '-'));
    }
    return at;
}

static int64_t after_word(struct text t, int64_t at)
{
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) {
        int64_t size = (int64_t)strlen(words[i]);
        if (at + size <= t.size && !memcmp(t.at + at, words[i], (size_t)size))
            return at + size;
    }
    return -1;
}

/* Where the value of a key begins whose text begins here, -1 where there is none. */
static inline int64_t value_of_key(struct text t, int64_t key, int64_t *key_end)
{
    int64_t at = string_end(t, key);
    if (at < 0)
        return -1;
    *key_end = at;
    at = after_blanks(t, at + 1);
    return byte_at(t, at) == ':' ? after_blanks(t, at + 1) : -1;
}

/* Behind any value that begins here, -1 where it is none or nests too deep. */
static int64_t after_value(struct text t, int64_t at)
{
    uint64_t objects = 0; /* a bit for each list (0) or object (1) that is open */
    int64_t key_end;
    int depth = 0;
    for (;;) {
        int byte = byte_at(t, at), opened = 0;
        if (byte == '"') {
            at = string_end(t, at + 1);
            if (at < 0)
                return -1;
            at++;
        } else if (byte == '{' || byte == '[') {
            if (depth == DEPTH)
                return -1;
            at = after_blanks(t, at + 1);
            if (byte_at(t, at) == (byte == '{' ? '}' : ']')) {
                at++;
            } else {
                opened = 1;
                depth++;
                objects = objects << 1 | (byte == '{');
            }
        } else {
            at = byte == '-' || is_digit(byte) ? after_number(t, at) : after_word(t, at);
            if (at < 0)
                return -1;
        }
        while (!opened) { /* what stands behind it */
            if (!depth)
                return at;
            at = after_blanks(t, at);
            byte = byte_at(t, at++);
            if (byte == ',') {
                at = after_blanks(t, at);
                break;
            }
            if (byte != (objects & 1 ? '}' : ']'))
                return -1;
            depth--;
            objects >>= 1;
        }
        if (objects & 1) {
            if (byte_at(t, at) != '"')
                return -1;
            at = value_of_key(t, at + 1, &key_end);
            if (at < 0)
                return -1;
        }
    }
}

/* Digits of an integer without its sign; how many there are in `count`. */
static inline int64_t digits_at(struct text t, int64_t at, int64_t *count)
{
    int64_t value = 0, first = at;
    for (int byte; at - first < 19 && is_digit(byte = byte_at(t, at)); at++)
        value = at - first < 18 ? value * 10 + (byte - '0') : value;
    *count = at - first;
    return value;
}

/* Behind an integer of at most 18 digits, -1 where there is none. */
static inline int64_t after_int(struct text t, int64_t at, int64_t *value)
{
    int minus = byte_at(t, at) == '-';
    int64_t count, first = at + minus;
    *value = digits_at(t, first, &count);
    if (!count || count > 18 || (byte_at(t, first) == '0' && (count > 1 || minus)))
        return -1;
    at = first + count;
    int byte = byte_at(t, at);
    if (minus)
        *value = -*value;
    return byte == '.' || (byte | 32) == 'e' ? -1 : at;
}

/* Behind a time in microseconds with no more than three decimals, as ns; -1 where there is none. */
static inline int64_t after_time(struct text t, int64_t at, int64_t *ns)
{
    int minus = byte_at(t, at) == '-';
    int64_t count, decimals = 0, fraction = 0, first = at + minus, whole = digits_at(t, first, &count);
    if (!count || count > 15 + (whole < INT64_C(4611686018427387)) || (count > 1 && byte_at(t, first) == '0'))
        return -1;
    at = first + count;
    if (byte_at(t, at) == '.') {
        fraction = digits_at(t, at + 1, &decimals);
        if (!decimals || decimals > 3)
            return -1;
        at += 1 + decimals;
        for (; decimals < 3; decimals++)
            fraction *= 10;
    }
    if ((byte_at(t, at) | 32) == 'e')
        return -1;
    *ns = whole * 1000 + fraction;
    if (minus)
        *ns = -*ns;
    return at;
}

static inline int same(struct text t, int64_t a, int64_t b, int64_t size)
{
    return !memcmp(t.at + a, t.at + b, (size_t)size);
}

static inline uint64_t mixed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

/* Number of a text among the distinct ones, -1 where there is no room for one more. */
static int32_t number_of(struct text t, struct span text, struct columns *out)
{
    uint64_t hash = out->seed ^ (uint64_t)text.size;
    int64_t i = 0;
    for (; i + 8 <= text.size; i += 8)
        hash = mixed(hash, word_at(t, text.start + i));
    hash = mixed(hash, i < text.size ? low_bytes(word_at(t, text.start + i), text.size - i) : 0);
    for (uint64_t bucket = hash >> 20;; bucket++) {
        int32_t *number = out->table + (bucket & (uint64_t)(out->buckets - 1));
        if (*number < 0) {
            if (out->found == out->distinct)
                return -1;
            out->where[2 * out->found] = text.start;
            out->where[2 * out->found + 1] = text.size;
            return *number = (int32_t)out->found++;
        }
        const int64_t *known = out->where + 2 * *number;
        if (known[1] == text.size && same(t, known[0], text.start, text.size))
            return *number;
    }
}

static inline int is(struct text t, int64_t key, int64_t size, const char *name, size_t name_size)
{
    return size == (int64_t)name_size && !memcmp(t.at + key, name, name_size);
}
#define IS(name) is(t, key, size, name, sizeof(name) - 1)

static inline int slot_of(struct text t, int64_t key, int64_t size)
{
    switch (size) {
    case 4:
        return IS("size") ? 4 : IS("Addr") ? 10 : -1;
    case 5:
        return IS("bytes") ? 3 : IS("Bytes") ? 11 : -1;
    case 6:
        return IS("device") ? 5 : IS("stream") ? 6 : -1;
    case 9:
        return IS("Python id") ? 7 : IS("Device Id") ? 9 : -1;
    case 11:
        return IS("External id") ? 1 : IS("correlation") ? 0 : IS("external id") ? 2 : IS("Device Type") ? 8 : -1;
    case 14:
        return IS("Total Reserved") ? 13 : -1;
    case 15:
        return IS("Total Allocated") ? 12 : -1;
    default:
        return -1;
    }
}

enum field { CATEGORY, NAME, PROCESS, THREAD, PHASE, TIME, DURATION, ID, ARGS, OTHER };

static inline enum field field_of(struct text t, int64_t key, int64_t size)
{
    switch (size) {
    case 2:
        return IS("ph") ? PHASE : IS("ts") ? TIME : IS("id") ? ID : OTHER;
    case 3:
        return IS("pid") ? PROCESS : IS("tid") ? THREAD : IS("dur") ? DURATION : IS("cat") ? CATEGORY : OTHER;
    case 4:
        return IS("name") ? NAME : IS("args") ? ARGS : OTHER;
    default:
        return OTHER;
    }
}

struct event {
    struct span texts[FIELDS];
    int64_t time, duration, id, slots[SLOTS];
    int phase;
    unsigned seen; /* a bit for each field */
};

static const int64_t NOTHING[SLOTS] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, -1, -1};

/* Where the next key of an object stands, or behind the object where it is closed, after a value that ends here. */
static inline int64_t after_member(struct text t, int64_t at, int *closed)
{
    at = after_blanks(t, at);
    int byte = byte_at(t, at++);
    *closed = byte == '}';
    return byte == ',' ? after_blanks(t, at) : byte == '}' ? at : -1;
}

/* Behind the object of arguments that begins here. */
static int64_t after_arguments(struct text t, int64_t at, struct event *event)
{
    int closed;
    if (byte_at(t, at) != '{')
        return -1;
    at = after_blanks(t, at + 1);
    if (byte_at(t, at) == '}')
        return at + 1;
    for (;;) {
        int64_t key = at + 1, key_end, end;
        if (byte_at(t, at) != '"')
            return -1;
        at = value_of_key(t, key, &key_end);
        if (at < 0)
            return -1;
        int slot = slot_of(t, key, key_end - key);
        if (slot < 0) {
            at = after_value(t, at);
        } else if ((end = after_int(t, at, &event->slots[slot])) >= 0) {
            at = end;
        } else {
            event->slots[slot] = NO_INT;
            at = after_value(t, at);
        }
        if (at < 0)
            return -1;
        at = after_member(t, at, &closed);
        if (at < 0 || closed)
            return at;
    }
}

/* Behind the value of a field that begins here. */
static inline int64_t after_field(struct text t, int64_t at, enum field field, struct event *event)
{
    int quoted = byte_at(t, at) == '"';
    int64_t end;
    switch (field) {
    case CATEGORY:
    case NAME:
    case PROCESS:
    case THREAD:
        if (quoted)
            end = string_end(t, at + 1);
        else if (field == PROCESS || field == THREAD)
            end = after_int(t, at, &event->texts[field].size);
        else
            return -1;
        if (end < 0)
            return -1;
        event->texts[field] = (struct span){at + quoted, end - at - quoted};
        return end + quoted;
    case PHASE:
        event->phase = byte_at(t, at + 1);
        return quoted && byte_at(t, at + 2) == '"' ? at + 3 : -1;
    case TIME:
    case DURATION: /* torch_npu writes them as text */
        end = after_time(t, at + quoted, field == TIME ? &event->time : &event->duration);
        return end < 0 || (quoted && byte_at(t, end) != '"') ? -1 : end + quoted;
    case ID:
        end = after_int(t, at, &event->id);
        if (end >= 0)
            return end;
        event->id = NO_INT;
        return after_value(t, at);
    case ARGS:
        return after_arguments(t, at, event);
    default:
        return after_value(t, at);
    }
}

/* Behind the event that begins here. */
static inline int64_t after_event(struct text t, int64_t at, struct event *event)
{
    int closed;
    event->seen = 0;
    memcpy(event->slots, NOTHING, sizeof NOTHING);
    at = after_blanks(t, at + 1);
    for (;;) {
        int64_t key = at + 1, key_end;
        if (byte_at(t, at) != '"')
            return -1;
        at = value_of_key(t, key, &key_end);
        if (at < 0)
            return -1;
        enum field field = field_of(t, key, key_end - key);
        unsigned bit = 1u << field;
        if (event->seen & bit & ~(1u << OTHER))
            return -1; /* twice */
        event->seen |= bit;
        at = after_field(t, at, field, event);
        if (at < 0)
            return -1;
        at = after_member(t, at, &closed);
        if (at < 0 || closed)
            return at;
    }
}

/* Write a row; 0 where the event is not as it should be. */
static inline int taken(struct text t, const struct event *event, int64_t row, struct columns *out,
                        struct span last[FIELDS], int32_t last_number[FIELDS])
{
    int slice = 0, arrow = 0, phase = event->phase;
    switch (phase) {
    case 'X':
    case 'B':
    case 'E':
        slice = 1;
        break;
    case 's':
    case 't':
    case 'f':
        arrow = 1;
        break;
    case 'i':
    case 'I':
    case 'R':
    case 'n':
    case 'O': /* what instants were called, and are */
        phase = 'i';
        break;
    case 'C':
        break;
    case 'M':
        out->phase[row] = 'M';
        return 1;
    default:
        return 0;
    }
    if (!(event->seen & 1u << PHASE) || !(event->seen & 1u << TIME))
        return 0;
    out->phase[row] = (uint8_t)phase;
    out->time[row] = event->time;
    if (phase == 'C')
        return 1;
    if (arrow && (!(event->seen & 1u << ID) || event->id == NO_INT))
        return 0;
    out->id[row] = event->id;
    out->duration[row] = event->seen & 1u << DURATION && event->duration >= 0 ? event->duration : ABSENT;
    const int64_t *slots = event->slots + (slice ? 0 : ARGUMENTS);
    int odd = 0;
    for (int i = 0; !arrow && i < (slice ? ARGUMENTS : SLOTS - ARGUMENTS); i++) {
        out->arguments[i][row] = slots[i];
        odd |= slots[i] == NO_INT;
    }
    out->odd += odd;
    for (int i = 0; i < FIELDS; i++) {
        if ((arrow && i == NAME) || (phase == 'i' && i == CATEGORY))
            continue;
        struct span text = event->seen & 1u << i ? event->texts[i] : (struct span){0, 0};
        if (last_number[i] < 0 || last[i].size != text.size || !same(t, last[i].start, text.start, text.size)) {
            last_number[i] = number_of(t, text, out);
            last[i] = text;
            if (last_number[i] < 0)
                return 0;
        }
        out->texts[i][row] = last_number[i];
    }
    return 1;
}

EXPORT int64_t steplens_version(void) { return VERSION; }

/* Windows' linker is told that an extension has this; importing it as a module fails. */
EXPORT void *PyInit__native(void) { return 0; }

/* Read events that are separated by commas.

   Returns how many there are; where something is not as it should be, -1 minus the offset of the event in question;
   `FULL` where there is no room for all. */
EXPORT int64_t steplens_events(const uint8_t *bytes, int64_t size, struct columns *out)
{
    struct text t = {bytes, size};
    struct span last[FIELDS];
    int32_t last_number[FIELDS] = {-1, -1, -1, -1};
    struct event event;
    memset(&event, 0, sizeof event);
    out->found = out->odd = 0;
    int64_t row = 0, at = after_blanks(t, 0);
    while (at < size) {
        int64_t begin = at;
        if (row == out->capacity)
            return FULL;
        if (t.at[at] != '{')
            return -1 - begin;
        at = after_event(t, at, &event);
        if (at < 0 || at - begin > INT32_MAX || !taken(t, &event, row, out, last, last_number))
            return -1 - begin;
        out->start[row] = begin;
        out->length[row++] = (int32_t)(at - begin);
        at = after_blanks(t, at);
        if (at == size)
            break;
        if (t.at[at] != ',')
            return -1 - begin;
        at = after_blanks(t, at + 1);
        if (at == size)
            return -1 - begin; /* a comma too many, which is told of elsewhere */
    }
    return row;
}

/* Nest slices that are sorted by (start, longest first), if each lies in the one around it.

   Writes for each the row of the one around it (-1 for none), its depth, and one past the last row that starts in it.
   Returns 0, or -1 where slices cross: what was written means nothing then. */
EXPORT int64_t steplens_nest(const int64_t *start, const int64_t *end, int64_t rows, int32_t *parent, int32_t *depth,
                             int32_t *subtree_end)
{
    int32_t open = -1; /* the innermost that is open; its parents are the others */
    if (rows > INT32_MAX)
        return -1;
    for (int32_t row = 0; row < rows; row++) {
        while (open >= 0 && end[open] <= start[row]) {
            subtree_end[open] = row;
            open = parent[open];
        }
        if (open >= 0 && end[row] > end[open])
            return -1;
        parent[row] = open;
        depth[row] = open < 0 ? 0 : depth[open] + 1;
        open = row;
    }
    for (; open >= 0; open = parent[open])
        subtree_end[open] = (int32_t)rows;
    return 0;
}
