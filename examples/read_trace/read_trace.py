#!/usr/bin/env python3
"""Prints the handoffs of each request from the trace files of one job.

Usage: read_trace.py trace/trace-rank-*.h5

Works while the job runs and after it was killed: the files are opened in HDF5's
single-writer-multiple-reader mode.
"""
import signal
import sys

import h5py
import numpy as np

FORMAT = b"tokenrouter-trace-1"
SENT, RECEIVED = 0, 1


def read(path):
    """Host, model names, handoffs and tokens of one rank's file."""
    with h5py.File(path, "r", swmr=True, libver="latest") as file:
        if file.attrs.get("format") != FORMAT:
            sys.exit(f"{path} is not a trace of TokenRouter")
        return {
            "host": file.attrs["host"].decode(),
            "models": file.attrs["models"].decode().splitlines(),
            "handoffs": file["handoffs"][:],
            "tokens": file["tokens"][:],
        }


def arrivals(files):
    """When each turn was taken, and on which host."""
    return {(int(row["request"]), int(row["turn"])): (int(row["time_us"]), file["host"])
            for file in files for row in file["handoffs"] if row["side"] == RECEIVED}


def describe(row, file, arrived, start_us):
    """One handoff as a line. Clocks of two hosts can't be compared: no duration then."""
    name = file["models"]
    time_us, host = arrived.get((int(row["request"]), int(row["turn"])), (None, None))
    took = f"{time_us - int(row['time_us'])} us" if host == file["host"] else "-"
    score = "" if np.isnan(row["score"]) else f"  score {row['score']:.3f}"
    return (f"  +{(int(row['time_us']) - start_us) / 1000:9.3f} ms  turn {row['turn']:4d}"
            f"  {name[row['from_model']]} -> {name[row['to_model']]}"
            f"  position {row['position']:5d}  sent {row['tokens']:4d}"
            f"  {'kept' if row['kept'] else 'dropped':7s}  took {took}{score}")


def main(paths):
    if not paths:
        sys.exit(__doc__)
    try:
        files = [read(path) for path in paths]
    except OSError as fault:
        sys.exit(f"a trace can't be read: {fault}")
    if any(file["models"] != files[0]["models"] for file in files):
        sys.exit("the files are of different jobs: their models differ")
    arrived = arrivals(files)
    sent = [(row, file) for file in files for row in file["handoffs"] if row["side"] == SENT]
    sent.sort(key=lambda pair: (int(pair[0]["request"]), int(pair[0]["turn"])))
    made = np.concatenate([file["tokens"]["request"] for file in files])
    for request in np.unique(np.concatenate([made, [row["request"] for row, _ in sent]])):
        mine = [(row, file) for row, file in sent if row["request"] == request]
        home, counter = int(request) >> 40, int(request) & ((1 << 40) - 1)
        print(f"request {counter} of rank {home}: {np.count_nonzero(made == request)} tokens, "
              f"{len(mine)} handoffs")
        # Admission is the first turn; without it (cut off by a kill) count from the first handoff.
        first_us = int(mine[0][0]["time_us"]) if mine else 0
        start_us, _ = arrived.get((int(request), 1), (first_us, ""))
        for row, file in mine:
            print(describe(row, file, arrived, start_us))


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # for `| head`
    main(sys.argv[1:])
