#!/usr/bin/env python3
"""Scores answers of `tokenrouter generate` to the problems of prompts/bench.jsonl.

A reply is correct when the numbers after </think> are exactly the problem's, in order, every answer
word occurs there, and the reply ended by itself.

    tokenrouter generate --config C --prompts bench.jsonl --output answers.jsonl --max-new-tokens 448
    examples/models/abacus/score.py bench.jsonl answers.jsonl
"""
import collections
import json
import re
import sys


def read(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def correct(problem, reply):
    if reply["finish_reason"] != "stop" or "</think>" not in reply["text"]:
        return False
    answer = reply["text"].split("</think>")[-1]
    numbers = [int(n.replace(",", "")) for n in re.findall(r"-?\d[\d,]*", answer)]
    return numbers == problem["answer_numbers"] and all(w in answer for w in problem["answer_words"])


def main():
    problems = {str(p["id"]): p for p in read(sys.argv[1])}
    replies = read(sys.argv[2])
    right = 0
    tokens = collections.Counter()
    for reply in replies:
        right += correct(problems[reply["id"]], reply)
        tokens.update(reply["models"])
    total = sum(tokens.values())
    shares = ", ".join(f"{m} {100 * n / total:.1f} %" for m, n in sorted(tokens.items()))
    print(f"{right} of {len(replies)} correct: {100 * right / len(replies):.1f} %; tokens: {shares}")


if __name__ == "__main__":
    main()
