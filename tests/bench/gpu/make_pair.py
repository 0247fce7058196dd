#!/usr/bin/env python3
"""Writes what a job over two shapes without weights needs: a folder for each model (config.json of
shapes/, a tokenizer that has as many tokens as the shape's vocabulary), a prompts file with random
token ids, shared.jsonl, where 32 prompts have 8 beginnings, pair.yaml, in which the large model writes a
given share of the tokens, small.yaml and large.yaml, in which one of them writes all, one file for each
other method and strategy, and the heads they read, with random weights, in heads/.

Usage: make_pair.py OUT [--small qwen3-0.6b] [--large qwen3-32b] [--prompts 64] [--tokens 1024]

A shape may also be a folder with a config.json.
"""
import argparse
import json
import pathlib
import random
import shutil

import random_heads

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


WINDOW_TOKENS = 3
ROLES = {
    "r2r": ("r2r_slm", "r2r_llm"),
    "citer": ("citer_slm", "citer_llm"),
    "co-llm": ("collm_base", "collm_assist"),
    "rstitch": ("rstitch_slm", "rstitch_llm"),
    "glimprouter": ("glimprouter_slm", "glimprouter_llm"),
    "speculate": ("speculate_slm", "speculate_llm"),
}

# Short configs of the other methods over the pair: what follows `method:`, by file name, which begins
# with the method's. {heads}: the folder of heads.
METHODS = {
    "r2r-entropy": "{{switching_strategy: entropy, threshold: 0.98}}",
    "r2r-immediate": "{{switching_strategy: immediate, aleatoric_threshold: 2.19, entropy_threshold: 0.98}}",
    "r2r-momentum": "{{switching_strategy: momentum, aleatoric_threshold: 2.22}}",
    "r2r-single_rolling_window": "{{switching_strategy: single_rolling_window, aleatoric_threshold: 2.22}}",
    "r2r-duo_rolling_window": "{{switching_strategy: duo_rolling_window, aleatoric_threshold: 2.22}}",
    "r2r-random": "{{switching_strategy: random, reference_share: 0.35}}",
    "r2r-neural": "{{switching_strategy: neural, router: {heads}/r2r.safetensors}}",
    "r2r-neural_rolling_window": "{{switching_strategy: neural_rolling_window, "
                                 "router: {heads}/r2r.safetensors}}",
    "r2r-neural_multi_input": "{{switching_strategy: neural_multi_input, "
                              f"window_tokens: {WINDOW_TOKENS}, "
                              "router: {heads}/r2r_multi.safetensors}}",
    "citer": "{{router: {heads}/citer.safetensors}}",
    "citer-unfolded": "{{head_form: unfolded, router: {heads}/citer.safetensors}}",
    "co-llm": "{{router: {heads}/collm.safetensors}}",
    "co-llm-compose": "{{combine: compose, router: {heads}/collm.safetensors}}",
    "rstitch": "{{entropy_unit: nats, threshold: 11.5}}",
    "rstitch-head": "{{entropy_unit: nats, threshold: 11.5, router: {heads}/rstitch.safetensors}}",
    "glimprouter": "{{threshold: 0.1, step_tokens_max: 12}}",
    "me": "{{weights: [0.5, 0.5]}}",
    "query-level": "{{score_source: hash, threshold: 0.5}}",
    "query-level-entropy": "{{score_source: entropy, threshold: 0.9}}",
    "query-level-head": "{{score_source: head, head_kind: r2r, threshold: 0.5, "
                        "router: {heads}/r2r.safetensors}}",
    "random-token-markov": "{{random_mode: markov, small_to_large_share: 0.3, large_to_small_share: 0.5}}",
    "random-request": "{{reference_share: 0.5}}",
    "speculate": "{{draft_tokens: 4}}",
    "cascade": "{{thresholds: [0.98]}}",
}

METHOD_NAMES = ("random-request", "random-token", "query-level", "glimprouter", "speculate", "cascade",
                "rstitch", "co-llm", "citer", "r2r", "me")

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
    return config


def method_config(out, name, keys):
    method = next(m for m in METHOD_NAMES if name == m or name.startswith(m + "-"))
    lines = [f"system: {{entry_model: small, method: {method}}}", "models:"]
    for model, role in zip(("small", "large"), ROLES.get(method, (None, None))):
        scheduler = f", scheduler: {role}" if role else ""
        lines.append(f'  {model}: {{path: {out / model}, device: "cuda:0", load_format: dummy{scheduler}}}')
    lines += [f"method: {keys.format(heads=out / 'heads')}", "prefill_chunk_tokens: 2048", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--small", default="qwen3-0.6b")
    parser.add_argument("--large", default="qwen3-32b")
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=1024)
    options = parser.parse_args()
    out = options.out.resolve()
    small, large = (write_model(getattr(options, name), out / name) for name in ("small", "large"))
    vocabulary = min(small["vocab_size"], large["vocab_size"])
    random_heads.write_heads(out / "heads", small["hidden_size"], WINDOW_TOKENS)
    draw = random.Random(1)
    with open(out / "prompts.jsonl", "w") as file:
        for i in range(options.prompts):
            ids = [draw.randrange(vocabulary) for _ in range(options.tokens)]
            file.write(json.dumps({"id": str(i), "prompt_token_ids": ids, "ignore_eos": True}) + "\n")
    beginnings = [[draw.randrange(vocabulary) for _ in range(2048)] for _ in range(8)]
    with open(out / "shared.jsonl", "w") as file:
        for i in range(32):
            ids = beginnings[i % 8] + [draw.randrange(vocabulary) for _ in range(16)]
            file.write(json.dumps({"id": str(i), "prompt_token_ids": ids, "ignore_eos": True}) + "\n")
    (out / "pair.yaml").write_text(CONFIG.format(small=out / "small", large=out / "large"))
    for name, keys in METHODS.items():
        (out / f"{name}.yaml").write_text(method_config(out, name, keys))
    for name in ("small", "large"):
        (out / f"{name}.yaml").write_text(SINGLE.format(name=name, path=out / name))


if __name__ == "__main__":
    main()
