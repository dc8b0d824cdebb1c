# SPDX-License-Identifier: MIT
"""Fields of Vivante's descriptors that decide what a job computes (specification, sections 3.2 and 4)."""


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


# Field: (word, lowest bit, bits), from the lowest bits up; "-" in front: two's complement.
NN_FIELDS = {
    "layer_type": [(0, 0, 1)],
    "no_z_offset": [(0, 1, 1)],
    "kernel_x": [(0, 2, 4)],
    "kernel_z": [(0, 6, 14), (5, 26, 6)],
    "kernels_per_core": [(0, 20, 7)],
    "pooling": [(0, 27, 2)],
    "pooling_3x3": [(0, 29, 1)],
    "prelu": [(0, 30, 1)],
    "kernel_type": [(1, 0, 2), (15, 19, 1), (18, 31, 1)],
    "in_type": [(1, 2, 2), (15, 20, 1), (19, 31, 1)],
    "out_type": [(1, 4, 2), (15, 21, 1), (20, 26, 1)],
    "in_x": [(1, 6, 13)],
    "in_y": [(1, 19, 13)],
    "brick": [(2, 7, 1)],
    "relu": [(2, 24, 1)],
    "shift": [(2, 27, 5), (15, 28, 2)],
    "out_x": [(3, 6, 13)],
    "out_y": [(3, 19, 13)],
    "out_z": [(4, 0, 14)],
    "rounding": [(4, 14, 2)],
    "kernel_address": [(5, 0, 26)],
    "in_address": [(6, 0, 32)],
    "out_address": [(7, 0, 32)],
    "kernel_y": [(8, 12, 4)],
    "out_y_stride": [(8, 16, 16)],
    "border_mode": [(15, 0, 2)],
    "border": [(15, 2, 16)],
    "in_x_stride": [(16, 0, 16)],
    "in_y_stride": [(16, 16, 16)],
    "out_x_stride": [(17, 0, 16)],
    "out_circ_size": [(18, 0, 26)],
    "per_channel": [(18, 26, 1)],
    "in_circ_size": [(20, 0, 26)],
    "weight_zero": [(22, 0, 8)],
    "out_zero": [(22, 8, 8)],
    "direct_stream": [(22, 16, 1)],
    "depthwise": [(22, 17, 1)],
}
NN_V7_FIELDS = {
    "x_offset": [(2, 0, 3), (4, 16, 1), "-"],
    "y_offset": [(2, 3, 3), (4, 17, 1), "-"],
    "multiplier": [(2, 26, 1), (15, 22, 6), (17, 24, 8)],
}
NN_V8_FIELDS = {
    "x_offset": [(2, 0, 3), (4, 16, 1), (18, 29, 1), "-"],
    "y_offset": [(2, 3, 3), (4, 17, 1), (18, 30, 1), "-"],
    "multiplier": [(2, 26, 1), (15, 22, 6), (17, 24, 8), (22, 18, 8)],
}
TP_FIELDS = {
    "in_x": [(0, 0, 16)],
    "in_y": [(1, 0, 16)],
    "in_z": [(1, 16, 16)],
    "in_stride": [(2, 0, 16)],
    "in_slice": [(3, 0, 32)],
    "x_start": [(4, 0, 16), "-"],
    "y_start": [(4, 16, 16), "-"],
    "x_end": [(5, 0, 16), "-"],
    "y_end": [(5, 16, 16), "-"],
    "tile_sequence": [(6, 0, 2)],
    "tile_global": [(6, 2, 1)],
    "in_global": [(6, 3, 1)],
    "to_float": [(6, 4, 1)],
    "square": [(6, 5, 1)],
    "horizontal": [(6, 6, 3)],
    "horizontal_count": [(6, 9, 6)],
    "horizontal_stride": [(6, 15, 1)],
    "vertical": [(6, 16, 2)],
    "vertical_count": [(6, 19, 6)],
    "vertical_stride": [(6, 25, 1)],
    "suppression": [(6, 26, 1)],
    "table": [(6, 27, 1)],
    "multiply": [(6, 28, 1)],
    "to_integer": [(6, 29, 1)],
    "load_table": [(6, 30, 1)],
    "tile_x": [(8, 0, 16)],
    "tile_y": [(8, 16, 16)],
    "tile_x_step": [(9, 0, 16)],
    "tile_y_step": [(9, 16, 16)],
    "in_address": [(10, 0, 32)],
    "skip_at_border": [(12, 0, 1)],
    "out_global": [(12, 1, 1)],
    "reset_1": [(12, 2, 1)],
    "reset_2": [(12, 3, 1)],
    "reset_3": [(12, 4, 1)],
    "brick": [(12, 5, 1)],
    "z_filter": [(12, 6, 1)],
    "slices_before": [(12, 8, 2)],
    "slices_behind": [(12, 11, 2)],
    "preshift": [(12, 14, 4)],
    "in_type": [(12, 18, 3)],
    "out_type": [(12, 21, 3)],
    "relu": [(12, 29, 1)],
    "out_address": [(13, 0, 32)],
    "inc_0": [(14, 0, 32), "-"],
    "inc_1": [(15, 0, 32), "-"],
    "count_0": [(16, 0, 16)],
    "count_1": [(16, 16, 16)],
    "inc_2": [(17, 0, 32), "-"],
    "inc_3": [(18, 0, 32), "-"],
    "count_2": [(19, 0, 16)],
    "count_3": [(19, 16, 16)],
    "inc_4": [(20, 0, 32), "-"],
    "inc_5": [(21, 0, 32), "-"],
    "count_4": [(22, 0, 16)],
    "count_5": [(22, 16, 16)],
    "inc_6": [(23, 0, 32), "-"],
    "swap": [(24, 0, 1)],
    "rounding": [(24, 3, 2)],
    "in_preshift": [(24, 5, 5)],
    "postshift": [(24, 10, 5), (24, 26, 2), "-"],
    "reorder": [(24, 15, 5)],
    "border_mode": [(24, 24, 2)],
    "in_circ_size": [(25, 0, 32)],
    "out_circ_size": [(27, 0, 32)],
    "in_zero": [(29, 24, 8)],
    "out_zero": [(30, 0, 8)],
    "post_multiplier": [(30, 8, 15)],
}


class Fields:
    """A descriptor's fields as attributes."""

    def __init__(self, words, *tables):
        for table in tables:
            for name, parts in table.items():
                value, bits = 0, 0
                for word, low, width in (part for part in parts if part != "-"):
                    value |= (words[word] >> low & (1 << width) - 1) << bits
                    bits += width
                setattr(self, name, signed(value, bits) if parts[-1] == "-" else value)


def set_field(words, parts, value):
    for word, low, width in (part for part in parts if part != "-"):
        mask = (1 << width) - 1
        words[word] = words[word] & ~(mask << low) | (value & mask) << low
        value >>= width
