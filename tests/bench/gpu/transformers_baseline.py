#!/usr/bin/env python3
"""The other side of bench_gpu_step: the same shapes through Hugging Face transformers, random bf16
weights, 1,024 prompt tokens and 128 new ones.

Usage: transformers_baseline.py SHAPE_FOLDER [--modes static,continuous] [--batches 16,64]
"""
import argparse
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

PROMPT, NEW = 1024, 128


def prompts(count, vocabulary):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, vocabulary, (count, PROMPT), generator=generator)


def static(model, config):
    ids = prompts(1, config.vocab_size).cuda()
    settings = dict(max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False,
                    cache_implementation="static", pad_token_id=0)
    for _ in range(2):
        model.generate(ids, **settings)
    torch.cuda.synchronize()
    begun = time.perf_counter()
    model.generate(ids, **settings)
    torch.cuda.synchronize()
    ms = (time.perf_counter() - begun) * 1e3 / NEW
    print(f"| transformers generate, static cache + compile | 1 | {PROMPT} | {ms:.2f} ms a token, "
          f"prefill included | {1e3 / ms:.0f} tok/s |", flush=True)


def continuous(model, config, batch):
    settings = GenerationConfig(max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False,
                                eos_token_id=-1, pad_token_id=0, use_cuda_graph=False)
    inputs = [row.tolist() for row in prompts(batch, config.vocab_size)]
    torch.cuda.synchronize()
    begun = time.perf_counter()
    out = model.generate_batch(inputs=inputs, generation_config=settings)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begun
    tokens = sum(len(r.generated_tokens) for r in out.values())
    print(f"| transformers continuous batching | {batch} | {PROMPT} | {tokens} tokens in "
          f"{seconds:.1f} s | {tokens / seconds:.0f} tok/s |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("shape")
    parser.add_argument("--modes", default="static,continuous")
    parser.add_argument("--batches", default="16,64")
    options = parser.parse_args()
    config = AutoConfig.from_pretrained(options.shape)
    torch.manual_seed(0)
    with torch.device("cuda"):
        attention = {"attn_implementation": "sdpa"}
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, **attention).eval()
    with torch.no_grad():
        if "static" in options.modes:
            static(model, config)
        if "continuous" in options.modes:
            for batch in options.batches.split(","):
                try:
                    continuous(model, config, int(batch))
                except Exception as error:  # the comparison is worth having without this line
                    print(f"| transformers continuous batching | {batch} | failed: {error!r} |")


if __name__ == "__main__":
    main()
