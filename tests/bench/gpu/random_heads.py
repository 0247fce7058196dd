"""Routing heads with random weights, in the layout the runtime reads (runtime/exec/heads): published
sizes, bf16, scores on both sides of 0.5."""
import json
import math
import random
import struct

ONE = struct.pack("<H", 0x3F80)
TOP_LOGITS = 100  # of an r2r head; over a window they are divided
BLOCKS, EXPANSION, WIDTH_MAX = 6, 4, 1024


def constant(count, value=b"\0\0"):
    return value * count


def noise(draw, count, fan_in):
    """`count` bf16 numbers of either sign, their magnitudes within a factor of 4, root mean square about
    1 / sqrt(fan_in): random mantissas under two neighbouring exponents, whose high bits are alike."""
    exponent = 127 + round(math.log2(1.8 / math.sqrt(fan_in))) - 1
    high = exponent // 2
    signs = bytes((byte & 0x80) | high for byte in range(256))
    numbers = bytearray(draw.randbytes(2 * count))
    numbers[1::2] = numbers[1::2].translate(signs)
    return bytes(numbers)


class Head:
    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.tensors = {}

    def dense(self, name, inputs, outputs, bias=True, gain=1.0):
        weights = noise(self.draw, inputs * outputs, inputs / gain**2)
        self.tensors[name + ".weight"] = ([outputs, inputs], weights)
        if bias:
            self.tensors[name + ".bias"] = ([outputs], constant(outputs))

    def norm(self, name, count):
        self.tensors[name + ".weight"] = ([count], constant(count, ONE))
        self.tensors[name + ".bias"] = ([count], constant(count))

    def write(self, path, kind):
        header, at = {}, 0
        for name, (shape, data) in self.tensors.items():
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + len(data)]}
            at += len(data)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for _, data in self.tensors.values():
                file.write(data)
        description = {"kind": kind, "layer_norm_eps": 1e-5, "threshold": 0.5}
        path.with_suffix(".json").write_text(json.dumps(description) + "\n")


def r2r(head, hidden, window):
    width = min(hidden, WIDTH_MAX)
    # Sorted logits look alike at every position: they must not decide all scores the same way.
    head.dense("logits_projection", TOP_LOGITS // window * window, window * hidden, gain=0.05)
    head.dense("combined_projection", (2 * window + 1) * hidden, width)
    head.dense("backbone.input_projection", width, width)
    for block in range(BLOCKS):
        name = f"backbone.blocks.{block}"
        head.norm(name + ".layer_norm", width)
        head.dense(name + ".mlp.0", width, EXPANSION * width)
        head.dense(name + ".mlp.3", EXPANSION * width, width)
    head.norm("backbone.output_layer.0", width)
    head.dense("backbone.output_layer.1", width, 1)


def citer(head, hidden):
    head.dense("mlp.0", hidden, 2 * hidden)
    head.norm("mlp.1", 2 * hidden)
    head.tensors["mlp.1.running_mean"] = ([2 * hidden], constant(2 * hidden))
    head.tensors["mlp.1.running_var"] = ([2 * hidden], constant(2 * hidden, ONE))
    head.dense("mlp.4", 2 * hidden, hidden)
    head.dense("linear", hidden, 1)


def rstitch(head, hidden):
    head.dense("mlp.0", hidden, 2 * hidden)
    head.dense("linear", 2 * hidden, 1)


KINDS = {
    "r2r": lambda head, hidden, window: r2r(head, hidden, 1),
    "r2r_multi": r2r,
    "citer": lambda head, hidden, window: citer(head, hidden),
    "collm": lambda head, hidden, window: head.dense("defer", hidden, 1, bias=False),
    "rstitch": lambda head, hidden, window: rstitch(head, hidden),
}


def write_heads(folder, hidden, window):
    """folder/KIND.safetensors with its JSON, for a model of `hidden`; `window`: positions of r2r_multi."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (kind, build) in enumerate(KINDS.items()):
        head = Head(seed)
        build(head, hidden, window)
        head.write(folder / f"{kind}.safetensors", kind)
