#!/usr/bin/env python3
"""Writes what a job over two shapes without weights needs: a folder for each model (config.json of
shapes/, a tokenizer that has as many tokens as the shape's vocabulary), a prompts file with random
token ids, pair.yaml, in which the large model writes a given share of the tokens, and small.yaml and
large.yaml, in which one of them writes all, and one file for each other method.

Usage: make_pair.py OUT [--small qwen3-0.6b] [--large qwen3-32b] [--prompts 64] [--tokens 1024]
"""
import argparse
import json
import pathlib
import random
import shutil

HERE = pathlib.Path(__file__).resolve().parent
TOKENIZER = HERE.parents[2] / "examples/models/abacus/abacus-xs"

CONFIG = """\
# Random weights on one GPU; the large model writes reference_share of the tokens, drawn at random.
system: {{entry_model: small, method: random-token}}
models:
  small: {{path: {small}, device: "cuda:0", load_format: dummy}}
  large: {{path: {large}, device: "cuda:0", load_format: dummy}}
prefill_chunk_tokens: 2048
method:
  random_mode: r2r
  reference_share: 0.35
"""


# Short configs of the other methods over the pair: what follows `method:`, and the models' roles.
METHODS = {
    "r2r-entropy": ("r2r", "{switching_strategy: entropy, threshold: 0.98}", "r2r_slm", "r2r_llm"),
    "r2r-immediate": ("r2r", "{switching_strategy: immediate, aleatoric_threshold: 2.19, "
                             "entropy_threshold: 0.98}", "r2r_slm", "r2r_llm"),
    "rstitch": ("rstitch", "{entropy_unit: nats, threshold: 11.5}", "rstitch_slm", "rstitch_llm"),
    "glimprouter": ("glimprouter", "{threshold: 0.1, step_tokens_max: 12}", "glimprouter_slm",
                    "glimprouter_llm"),
    "me": ("me", "{weights: [0.5, 0.5]}", None, None),
    "query-level": ("query-level", "{score_source: hash, threshold: 0.5}", None, None),
    "random-request": ("random-request", "{reference_share: 0.5}", None, None),
    "speculate": ("speculate", "{draft_tokens: 4}", "speculate_slm", "speculate_llm"),
    "cascade": ("cascade", "{thresholds: [0.98]}", None, None),
}

SINGLE = """\
# One of the pair alone.
system: {{entry_model: {name}, method: single}}
models:
  {name}: {{path: {path}, device: "cuda:0", load_format: dummy}}
prefill_chunk_tokens: 2048
"""


def write_model(shape, folder):
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads((HERE / "shapes" / shape / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    for name in ("tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"):
        shutil.copy(TOKENIZER / name, folder / name)
    tokenizer = json.loads((TOKENIZER / "tokenizer.json").read_text())
    known = 1 + max(list(tokenizer["model"]["vocab"].values()) +
                    [t["id"] for t in tokenizer["added_tokens"]])
    for token in range(known, config["vocab_size"]):
        tokenizer["model"]["vocab"][f"unused{token}"] = token
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False))
    return config["vocab_size"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--small", default="qwen3-0.6b")
    parser.add_argument("--large", default="qwen3-32b")
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=1024)
    options = parser.parse_args()
    out = options.out.resolve()
    vocabulary = min(write_model(options.small, out / "small"), write_model(options.large, out / "large"))
    draw = random.Random(1)
    with open(out / "prompts.jsonl", "w") as file:
        for i in range(options.prompts):
            ids = [draw.randrange(vocabulary) for _ in range(options.tokens)]
            file.write(json.dumps({"id": str(i), "prompt_token_ids": ids, "ignore_eos": True}) + "\n")
    (out / "pair.yaml").write_text(CONFIG.format(small=out / "small", large=out / "large"))
    for name, (method, keys, small_role, large_role) in METHODS.items():
        models = ""
        for model, role in (("small", small_role), ("large", large_role)):
            scheduler = f", scheduler: {role}" if role else ""
            models += (f'  {model}: {{path: {out / model}, device: "cuda:0", load_format: dummy'
                       f"{scheduler}}}\n")
        (out / f"{name}.yaml").write_text(f"system: {{entry_model: small, method: {method}}}\n"
                                          f"models:\n{models}method: {keys}\n"
                                          "prefill_chunk_tokens: 2048\n")
    for name in ("small", "large"):
        (out / f"{name}.yaml").write_text(SINGLE.format(name=name, path=out / name))


if __name__ == "__main__":
    main()
