#!/usr/bin/env python3
"""Holds random templates against Jinja2. Usage: compare.py FIRST LAST [PROGRAM]: seeds FIRST to LAST - 1, rendered by PROGRAM
(default build/release/jinja_lines)."""
import json
import subprocess
import sys
import warnings

import random_templates
import rendering

warnings.simplefilter("ignore")
first, last = int(sys.argv[1]), int(sys.argv[2])
program = sys.argv[3] if len(sys.argv) > 3 else "build/release/jinja_lines"

cases = []
for seed in range(first, last):
    case = random_templates.case(seed)
    want = rendering.render(case["template"], case["context"])
    if want:
        cases.append((seed, case, want))
lines = "".join(json.dumps(case) + "\n" for _, case, _ in cases)
done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
differing = 0
for (seed, case, want), line in zip(cases, done.stdout.split("\n")):
    got = json.loads(line)
    if got.get("out") == want.get("want") and ("error" in got) == ("error" in want):
        continue
    differing += 1
    if differing <= 20:
        print(f"--- seed {seed}\n{case['template']}\n{case['context']}\nJinja2: {want}\nours:   {got}")
print(f"{len(cases)} cases, {sum('error' in want for *_, want in cases)} of them errors, {differing} differ")
sys.exit(1 if differing else 0)
