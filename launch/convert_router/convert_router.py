#!/usr/bin/env python3
"""Turns a router published as a PyTorch checkpoint into safetensors and a JSON beside it.

`tokenrouter convert-router` runs it; needs nothing but Python's standard library.
"""
import argparse
import array
import json
import math
import os
import re
import struct
import sys
import zipfile

from checkpoint import Refused, SafetensorsFile, Tensor, TorchFile

R2R_CLASS = "HiddenStatesTokenLMHeadLogitsClassifier"
DEFER_TOKEN = "<|defer|>"
KEPT_DTYPES = ("F32", "F16", "BF16")


def to_kept(name, dtype, data):
    """Data in one of the types that a head may have."""
    if dtype in KEPT_DTYPES:
        return dtype, data
    if dtype != "F64":
        raise Refused(f"tensor '{name}' has type {dtype}, wanted one of {', '.join(KEPT_DTYPES)}")
    return "F32", array.array("f", array.array("d", data)).tobytes()


def plain(x, left=None):
    """`x` as JSON can say it, else its type's name: for options that are only written down. A
    pickle may repeat itself without end, so they are 300 at most."""
    left = [300] if left is None else left
    left[0] -= 1
    if left[0] < 0:
        raise Refused("its options are too many to write down")
    if isinstance(x, dict):
        return {str(k): plain(v, left) for k, v in x.items()}
    if type(x) in (list, tuple):
        return [plain(v, left) for v in x]
    if x is None or isinstance(x, (bool, int, str)) or isinstance(x, float) and math.isfinite(x):
        return x
    return getattr(x, "name", None) or type(x).__name__


def state_dict_of(tree):
    state = tree.get("state_dict", tree) if isinstance(tree, dict) else None
    if not isinstance(state, dict) or not all(type(k) is str for k in state):
        raise Refused("holds no state_dict: a router's tensors by name")
    tensors = {k: v for k, v in state.items() if type(v) is Tensor}
    if tensors and all(k.startswith("module.") for k in tensors):
        tensors = {k[len("module."):]: v for k, v in tensors.items()}
    return tensors


def expect(tensors, shapes, ignored):
    """Exactly these tensors of these shapes; `ignored`: names that don't matter."""
    for name, shape in shapes.items():
        if name not in tensors:
            raise Refused(f"tensor '{name}' is missing; it should have shape {list(shape)}")
        if tensors[name].shape != tuple(shape):
            raise Refused(f"tensor '{name}' has shape {list(tensors[name].shape)}, wanted "
                          f"{list(shape)}")
    extra = sorted(n for n in tensors if n not in shapes and not re.fullmatch(ignored, n))
    if extra:
        raise Refused(f"tensor '{extra[0]}' belongs to another kind of router")


def extents(tensors, name, dimensions):
    if name not in tensors:
        raise Refused(f"tensor '{name}' is missing: not this kind of router")
    shape = tensors[name].shape
    if len(shape) != dimensions or not all(shape):
        raise Refused(f"tensor '{name}' has shape {list(shape)}, wanted {dimensions} dimensions")
    return shape


def r2r(source, _):
    tree = source.tree
    tensors = state_dict_of(tree)
    options = {k: tree.get(k) or {} for k in ("common_args", "init_args", "model_specific_args")}
    model_type = tree.get("model_type", R2R_CLASS)
    if model_type != R2R_CLASS:
        raise Refused(f"is a router of class {plain(model_type)}; {R2R_CLASS} is supported")
    for part in options.values():
        if not isinstance(part, dict):
            raise Refused("its arguments are not a table")
        for option in ("normalize_input", "use_position_embedding"):
            if part.get(option):
                raise Refused(f"was trained with {option}, which is not supported")
    hidden, logits = extents(tensors, "logits_projection.weight", 2)
    joined, _ = extents(tensors, "combined_projection.weight", 2)
    width, _ = extents(tensors, "backbone.input_projection.weight", 2)
    shapes = {"logits_projection.weight": (hidden, logits), "logits_projection.bias": (hidden,),
              "combined_projection.weight": (joined, 3 * hidden),
              "combined_projection.bias": (joined,),
              "backbone.input_projection.weight": (width, joined),
              "backbone.input_projection.bias": (width,),
              "backbone.output_layer.0.weight": (width,), "backbone.output_layer.0.bias": (width,),
              "backbone.output_layer.1.weight": (1, width), "backbone.output_layer.1.bias": (1,)}
    blocks = 0
    while f"backbone.blocks.{blocks}.layer_norm.weight" in tensors:
        at = f"backbone.blocks.{blocks}."
        wide, _ = extents(tensors, at + "mlp.0.weight", 2)
        shapes.update({at + "layer_norm.weight": (width,), at + "layer_norm.bias": (width,),
                       at + "mlp.0.weight": (wide, width), at + "mlp.0.bias": (wide,),
                       at + "mlp.3.weight": (width, wide), at + "mlp.3.bias": (width,)})
        blocks += 1
    if blocks == 0:
        raise Refused("tensor 'backbone.blocks.0.layer_norm.weight' is missing")
    expect(tensors, shapes, r"token_embeddings\.weight")
    about = {"config": {"hidden_size": hidden, "embed_size": hidden, "top_k": logits,
                        "d_model": width, "num_blocks": blocks},
             "rule": "large model when score >= threshold"}
    about.update({k: plain(v) for k, v in options.items() if v})
    return {n: source.read(n, tensors[n]) for n in shapes}, about, \
        options["common_args"].get("threshold")


def citer(source, _):
    tensors = state_dict_of(source.tree)
    wide, hidden = extents(tensors, "mlp.0.weight", 2)
    narrow, _ = extents(tensors, "mlp.4.weight", 2)
    shapes = {"mlp.0.weight": (wide, hidden), "mlp.0.bias": (wide,), "mlp.1.weight": (wide,),
              "mlp.1.bias": (wide,), "mlp.1.running_mean": (wide,), "mlp.1.running_var": (wide,),
              "mlp.4.weight": (narrow, wide), "mlp.4.bias": (narrow,),
              "linear.weight": (1, narrow), "linear.bias": (1,)}
    expect(tensors, shapes, r"mlp\.1\.num_batches_tracked")
    about = {"config": {"hidden_size": hidden}, "rule": "large model when score < threshold"}
    return {n: source.read(n, tensors[n]) for n in shapes}, about, None


def defer_id_beside(path):
    """The id of the defer token by the tokenizer files beside a model's weights."""
    def load(name):
        try:
            with open(os.path.join(os.path.dirname(path) or ".", name), encoding="utf-8") as f:
                return json.load(f)
        except (OSError, ValueError):
            return {}
    added = load("added_tokens.json")
    if isinstance(added, dict) and DEFER_TOKEN in added:
        return added[DEFER_TOKEN]
    tokenizer = load("tokenizer.json")
    for one in tokenizer.get("added_tokens", []) if isinstance(tokenizer, dict) else []:
        if isinstance(one, dict) and one.get("content") == DEFER_TOKEN:
            return one.get("id")
    raise Refused(f"no tokenizer file beside it names {DEFER_TOKEN}; give its id with --defer-id")


def collm(source, args):
    tensors = state_dict_of(source.tree)
    name = next((n for n in ("lm_head.weight", "model.embed_tokens.weight") if n in tensors), None)
    if name is None:
        raise Refused("has no lm_head.weight; of a model in several files give the one that has it")
    rows, hidden = extents(tensors, name, 2)
    row = args.defer_id if args.defer_id is not None else defer_id_beside(args.input)
    if type(row) is not int or not 0 <= row < rows:
        raise Refused(f"the defer token's id {row} is not among the {rows} rows of {name}")
    dtype, data = source.read(name, tensors[name], row * hidden, hidden)
    about = {"config": {"hidden_size": hidden, "defer_id": row},
             "rule": "large model when score > threshold"}
    return {"defer.weight": (dtype, data, (1, hidden))}, about, None


def write_file(path, parts):
    partial = path + ".partial"
    with open(partial, "wb") as f:
        for part in parts:
            f.write(part)
    os.replace(partial, path)


def write_router(path, kind, tensors, about, threshold):
    header, parts, at = {"__metadata__": {"format": "pt", "head": kind}}, [], 0
    for name, (dtype, data, shape) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    write_file(path, [struct.pack("<Q", len(text)), text, *parts])
    described = {"kind": kind, "layer_norm_eps": 1e-5, **about,
                 "tensors": {n: list(shape) for n, (_, _, shape) in tensors.items()}}
    if threshold is not None:
        described["threshold"] = threshold
    write_file(path[:-len(".safetensors")] + ".json", [json.dumps(described, indent=1).encode()])


def convert(args):
    with open(args.input, "rb") as f:
        start = f.read(10)
    if start[:2] == b"\x80\x02" or start[:1] == b"\x80" and not zipfile.is_zipfile(args.input):
        raise Refused("is of a PyTorch older than 1.6; load it there and save it again with a "
                      "newer torch.save")
    safetensors = args.input.endswith(".safetensors")
    if safetensors and args.kind != "collm":
        raise Refused("is safetensors already; a router is converted from its PyTorch checkpoint")
    source = SafetensorsFile(args.input) if safetensors else TorchFile(args.input)
    if not isinstance(source.tree, dict):
        raise Refused("holds no state_dict: a router's tensors by name")
    found, about, threshold = {"r2r": r2r, "citer": citer, "collm": collm}[args.kind](source, args)
    if args.threshold is not None:
        threshold = args.threshold
    if threshold is not None and not (type(threshold) in (int, float) and 0 <= threshold <= 1):
        raise Refused(f"its threshold {plain(threshold)} is not a number from 0 to 1; give one "
                      "with --threshold")
    known = state_dict_of(source.tree)
    tensors = {}
    for name, x in found.items():
        shape = x[2] if len(x) == 3 else known[name].shape
        tensors[name] = (*to_kept(name, x[0], x[1]), shape)
    write_router(args.output, args.kind, tensors, about, threshold)
    print(f"{args.output}: {args.kind} router for hidden size {about['config']['hidden_size']}, "
          f"{len(tensors)} tensors, threshold {'unset' if threshold is None else threshold}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", required=True, choices=("r2r", "citer", "collm"))
    parser.add_argument("input")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--threshold", type=float)
    parser.add_argument("--defer-id", type=int)
    args = parser.parse_args()
    try:
        if not args.output.endswith(".safetensors"):
            raise Refused(f"the output {args.output} must end in .safetensors")
        convert(args)
    except Refused as e:
        print(f"tokenrouter: {args.input}: {e}", file=sys.stderr)
        return 2
    except (OSError, zipfile.BadZipFile, EOFError, RecursionError) as e:
        print(f"tokenrouter: {args.input}: {e}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
