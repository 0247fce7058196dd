#!/usr/bin/env python3
"""Reads what lm-eval wrote below the folder that is the argument, and expects what the shipped models can do."""
import json
import pathlib
import sys

LEAST = {("abacus_likely", "acc,none"): 0.9, ("abacus_answers", "exact_match,after_thinking"): 0.4}


def main():
    seen = {}
    for path in pathlib.Path(sys.argv[1]).rglob("results*.json"):
        for task, values in json.loads(path.read_text())["results"].items():
            seen.update({(task, name): value for name, value in values.items()})
    for key, least in LEAST.items():
        print(f"lm-eval: {key[0]} {key[1]} = {seen[key]:.3f}")
        assert seen[key] >= least, f"at least {least} was expected"


if __name__ == "__main__":
    main()
