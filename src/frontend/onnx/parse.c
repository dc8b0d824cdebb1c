/* SPDX-License-Identifier: MIT */
/* From bytes to values and nodes: names become indices, everything else stays where it is. */
#include "frontend/onnx/internal.h"

#include <errno.h>

#include "util/checked.h"

int onnx_damaged(struct onnx_reader *reader, const char *what)
{
    return mica_fail(reader->log, -EINVAL, "the ONNX model is damaged: %s", what);
}

/* ---- names ------------------------------------------------------------ */

static int compare_names(const void *a, const void *b)
{
    const struct onnx_bytes *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->size ? memcmp(x->data, y->data, x->size) : 0;
}

struct names {
    struct onnx_bytes *list; /* NULL: only count */
    size_t count;
    bool error;
};

static void add_name(struct names *names, struct onnx_bytes name)
{
    if (!name.size)
        return;
    if (names->list)
        names->list[names->count] = name;
    names->count++;
}

static void add_node_names(struct names *names, struct onnx_bytes node)
{
    struct onnx_cursor cursor = onnx_cursor(node);
    struct onnx_field field;
    while (onnx_next(&cursor, &field))
        if (field.wire == ONNX_WIRE_BYTES && (field.number == ONNX_NODE_INPUT || field.number == ONNX_NODE_OUTPUT))
            add_name(names, field.bytes);
    names->error = names->error || cursor.error;
}

static void add_own_name(struct names *names, struct onnx_bytes message, uint32_t number)
{
    struct onnx_field field;
    if (onnx_find(message, number, ONNX_WIRE_BYTES, &field))
        add_name(names, field.bytes);
}

static struct names walk_names(const struct onnx_reader *reader, struct onnx_bytes *list)
{
    struct names names = {list, 0, false};
    struct onnx_cursor cursor = onnx_cursor(reader->model);
    struct onnx_field field;
    while (onnx_next(&cursor, &field)) {
        if (field.wire != ONNX_WIRE_BYTES)
            continue;
        if (field.number == ONNX_GRAPH_NODE)
            add_node_names(&names, field.bytes);
        else if (field.number == ONNX_GRAPH_INITIALIZER)
            add_own_name(&names, field.bytes, ONNX_TENSOR_NAME);
        else if (field.number == ONNX_GRAPH_INPUT || field.number == ONNX_GRAPH_OUTPUT)
            add_own_name(&names, field.bytes, ONNX_VALUE_NAME);
    }
    names.error = names.error || cursor.error;
    return names;
}

static size_t unique(struct onnx_bytes *list, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!kept || compare_names(&list[kept - 1], &list[i]))
            list[kept++] = list[i];
    return kept;
}

static int make_values(struct onnx_reader *reader, const struct onnx_bytes *list, size_t count, size_t hidden)
{
    reader->value_capacity = (uint32_t)(count + hidden);
    reader->values = mica_new_array(reader->value_capacity, sizeof *reader->values);
    if (!reader->values)
        return mica_fail_nomem(reader->log);
    for (size_t i = 0; i < reader->value_capacity; i++) {
        struct onnx_value *value = &reader->values[i];
        value->name = i < count ? list[i] : (struct onnx_bytes){NULL, 0};
        value->same = value->source = value->weights = value->user = ONNX_NONE;
        memset(value->tensor, 0xff, sizeof value->tensor); /* ONNX_NONE */
    }
    reader->value_count = reader->name_count = (uint32_t)count;
    return 0;
}

int32_t onnx_value_of_name(const struct onnx_reader *reader, struct onnx_bytes name)
{
    size_t low = 0, high = reader->name_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_names(&name, &reader->values[middle].name);
        if (!order)
            return (int32_t)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return ONNX_NONE;
}

/* ---- what values are -------------------------------------------------- */

enum mica_type onnx_type_of(uint64_t type)
{
    switch (type) {
    case ONNX_FLOAT:
        return MICA_TYPE_FLOAT32;
    case ONNX_UINT8:
        return MICA_TYPE_UINT8;
    case ONNX_INT8:
        return MICA_TYPE_INT8;
    case ONNX_INT16:
        return MICA_TYPE_INT16;
    case ONNX_INT32:
        return MICA_TYPE_INT32;
    case ONNX_INT64:
        return MICA_TYPE_INT64;
    case ONNX_BOOL:
        return MICA_TYPE_BOOL;
    default:
        return MICA_TYPE_OTHER;
    }
}

static void add_dim(struct onnx_value *value, uint64_t size)
{
    if (size > INT32_MAX)
        size = 0;
    if (value->rank < MICA_MAX_RANK)
        value->dims[value->rank] = (int32_t)size;
    value->rank++;
}

static void check_value(struct onnx_value *value)
{
    if (value->type == MICA_TYPE_OTHER)
        value->problem = "its element type is not supported";
    else if (value->rank > MICA_MAX_RANK)
        value->problem = "it has more than 8 dimensions";
    if (value->rank > MICA_MAX_RANK)
        value->rank = 0;
}

void onnx_describe_constant(struct onnx_value *value, struct onnx_bytes tensor)
{
    struct onnx_numbers numbers = onnx_numbers(tensor, ONNX_TENSOR_DIMS, ONNX_WIRE_VARINT);
    struct onnx_field field;
    uint64_t size;
    value->state = ONNX_CONSTANT;
    value->constant = tensor;
    value->rank = 0;
    value->type =
        onnx_find(tensor, ONNX_TENSOR_TYPE, ONNX_WIRE_VARINT, &field) ? onnx_type_of(field.value) : MICA_TYPE_OTHER;
    while (value->rank <= MICA_MAX_RANK && onnx_next_number(&numbers, &size))
        add_dim(value, size);
    check_value(value);
    if (onnx_find(tensor, ONNX_TENSOR_LOCATION, ONNX_WIRE_VARINT, &field) && field.value == 1)
        value->problem = "its data are in another file, which is not supported";
}

/* A size that is only a name, or left out: as a batch it is 1, elsewhere the value can't be used. */
static void describe_shape(struct onnx_value *value, struct onnx_bytes shape)
{
    struct onnx_cursor cursor = onnx_cursor(shape);
    struct onnx_field dim, size;
    value->rank = 0;
    while (value->rank <= MICA_MAX_RANK && onnx_next_of(&cursor, ONNX_SHAPE_DIM, ONNX_WIRE_BYTES, &dim)) {
        bool known = onnx_find(dim.bytes, ONNX_DIM_VALUE, ONNX_WIRE_VARINT, &size) && size.value > 0;
        add_dim(value, known ? size.value : value->rank == 0);
    }
}

static void describe_value(struct onnx_value *value, struct onnx_bytes info)
{
    struct onnx_field type, tensor, field;
    value->type = MICA_TYPE_OTHER;
    if (onnx_find(info, ONNX_VALUE_TYPE, ONNX_WIRE_BYTES, &type) &&
        onnx_find(type.bytes, ONNX_TYPE_TENSOR, ONNX_WIRE_BYTES, &tensor)) {
        if (onnx_find(tensor.bytes, ONNX_TENSOR_TYPE_ELEMENT, ONNX_WIRE_VARINT, &field))
            value->type = onnx_type_of(field.value);
        if (onnx_find(tensor.bytes, ONNX_TENSOR_TYPE_SHAPE, ONNX_WIRE_BYTES, &field))
            describe_shape(value, field.bytes);
    }
    check_value(value);
}

static struct onnx_value *named(struct onnx_reader *reader, struct onnx_bytes message, uint32_t number)
{
    struct onnx_field name;
    if (!onnx_find(message, number, ONNX_WIRE_BYTES, &name) || !name.bytes.size)
        return NULL;
    int32_t index = onnx_value_of_name(reader, name.bytes);
    return index < 0 ? NULL : &reader->values[index];
}

/* Constants first: older models list them among the inputs too. */
static int describe_values(struct onnx_reader *reader)
{
    static const uint32_t parts[] = {ONNX_GRAPH_INITIALIZER, ONNX_GRAPH_INPUT, ONNX_GRAPH_OUTPUT};
    struct onnx_field field;
    for (int i = 0; i < 3; i++) {
        struct onnx_cursor cursor = onnx_cursor(reader->model);
        while (onnx_next_of(&cursor, parts[i], ONNX_WIRE_BYTES, &field)) {
            struct onnx_value *value = named(reader, field.bytes, i ? ONNX_VALUE_NAME : ONNX_TENSOR_NAME);
            if (!value)
                return onnx_damaged(reader, "a constant, input or output has no name");
            if (i == 0 && value->state != ONNX_MISSING)
                return onnx_damaged(reader, "two constants have the same name");
            if (i == 0)
                onnx_describe_constant(value, field.bytes);
            if (i == 1 && value->state == ONNX_INPUT)
                return onnx_damaged(reader, "two inputs have the same name");
            if (i == 1 && value->state == ONNX_MISSING) {
                describe_value(value, field.bytes);
                value->state = ONNX_INPUT;
            }
            if (i == 2) {
                value->is_output = true;
                value->uses++;
            }
        }
    }
    return 0;
}

/* ---- nodes ------------------------------------------------------------ */

static uint32_t read_links(struct onnx_reader *reader, struct onnx_bytes node, uint32_t number, int32_t *links)
{
    struct onnx_cursor cursor = onnx_cursor(node);
    struct onnx_field field;
    uint32_t count = 0;
    while (onnx_next_of(&cursor, number, ONNX_WIRE_BYTES, &field))
        links[count++] = field.bytes.size ? onnx_value_of_name(reader, field.bytes) : ONNX_NONE;
    return count;
}

static bool known_domain(struct onnx_bytes domain)
{
    return !domain.size || onnx_is(domain, "ai.onnx") || onnx_is(domain, "com.microsoft");
}

static size_t read_node(struct onnx_reader *reader, uint32_t index, struct onnx_bytes body, int32_t *links)
{
    struct onnx_node *node = &reader->nodes[index];
    struct onnx_field field;
    *node = (struct onnx_node){.body = body};
    if (onnx_find(body, ONNX_NODE_TYPE, ONNX_WIRE_BYTES, &field))
        node->type = field.bytes;
    node->foreign = onnx_find(body, ONNX_NODE_DOMAIN, ONNX_WIRE_BYTES, &field) && !known_domain(field.bytes);
    node->in = links;
    node->inputs = read_links(reader, body, ONNX_NODE_INPUT, links);
    node->out = links + node->inputs;
    node->outputs = read_links(reader, body, ONNX_NODE_OUTPUT, links + node->inputs);
    for (uint32_t i = 0; i < node->inputs; i++) {
        if (node->in[i] < 0)
            continue;
        struct onnx_value *value = &reader->values[node->in[i]];
        value->uses++;
        value->user = value->user == ONNX_NONE ? (int32_t)index : value->user;
    }
    return node->inputs + node->outputs;
}

static int read_nodes(struct onnx_reader *reader, size_t nodes, size_t links)
{
    struct onnx_cursor cursor = onnx_cursor(reader->model);
    struct onnx_field field;
    size_t used = 0;
    reader->nodes = mica_new_array(nodes, sizeof *reader->nodes);
    reader->links = mica_new_array(links, sizeof *reader->links);
    if (!reader->nodes || !reader->links)
        return mica_fail_nomem(reader->log);
    while (onnx_next_of(&cursor, ONNX_GRAPH_NODE, ONNX_WIRE_BYTES, &field))
        used += read_node(reader, reader->node_count++, field.bytes, reader->links + used);
    return 0;
}

/* Nodes, and their inputs and outputs with or without a name. */
static void count_nodes(const struct onnx_reader *reader, size_t *nodes, size_t *links, size_t *outputs)
{
    struct onnx_cursor cursor = onnx_cursor(reader->model);
    struct onnx_field node, field;
    *nodes = *links = *outputs = 0;
    while (onnx_next_of(&cursor, ONNX_GRAPH_NODE, ONNX_WIRE_BYTES, &node)) {
        struct onnx_cursor inside = onnx_cursor(node.bytes);
        ++*nodes;
        while (onnx_next(&inside, &field)) {
            bool output = field.number == ONNX_NODE_OUTPUT, input = field.number == ONNX_NODE_INPUT;
            *links += field.wire == ONNX_WIRE_BYTES && (input || output);
            *outputs += field.wire == ONNX_WIRE_BYTES && output;
        }
    }
}

int onnx_parse(struct onnx_reader *reader)
{
    size_t nodes, links, outputs, size = reader->model.size;
    struct names names = walk_names(reader, NULL);
    if (names.error)
        return onnx_damaged(reader, "its structure leads outside of its bytes");
    count_nodes(reader, &nodes, &links, &outputs);
    /* An honest node has a type and an output, an honest name more than one letter. */
    if (nodes > size / 8 || links > size / 3 || names.count > size / 3 || names.count + outputs > INT32_MAX / 2)
        return onnx_damaged(reader, "more nodes or names than its bytes can hold");
    struct onnx_bytes *list = mica_new_array(names.count, sizeof *list);
    if (!list)
        return mica_fail_nomem(reader->log);
    walk_names(reader, list);
    qsort(list, names.count, sizeof *list, compare_names);
    int error = make_values(reader, list, unique(list, names.count), outputs);
    free(list);
    if (!error)
        error = describe_values(reader);
    return error ? error : read_nodes(reader, nodes, links);
}
