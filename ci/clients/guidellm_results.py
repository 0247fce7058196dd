"""Holds that every request of a guidellm run was answered.

Usage: guidellm_results.py REPORT.json
"""
import json
import sys

for run in json.load(open(sys.argv[1], encoding="utf-8"))["benchmarks"]:
    totals = run["metrics"]["request_totals"]
    print(f"guidellm: {totals['successful']} requests answered, {totals['errored']} not")
    if totals["errored"] or totals["successful"] < 50:
        sys.exit("guidellm: not every request was answered, or too few were")
