"""The yardstick of bench_handoff: a handoff message, pickled, over ZeroMQ PUSH/PULL on ipc.

Two processes; the Python thread of each is pinned to a core of its own if two are given, ZeroMQ's
own threads may run anywhere. Latencies are one way, from a stamp before pickling in one process to
the unpickled object in the other. Prints one line per measurement: name p50_us p99_us
messages_per_s.
"""

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time

import zmq


class PeerRequest:
    """The fields of a handoff, as plain Python attributes."""

    def __init__(self, stamp_ns):
        self.rid = "7f3a9c52e8b14d60"
        self.stamp_ns = stamp_ns
        self.turn = 17
        self.source = 0
        self.target = 1
        self.offset = 1234
        self.status = 1
        self.tokens = [15, 220, 1021]
        self.kv = {"quick": 1237, "reference": 1234}


def receive(socket, polling):
    if not polling:
        return pickle.loads(socket.recv())
    while True:
        try:
            return pickle.loads(socket.recv(zmq.NOBLOCK))
        except zmq.Again:
            pass


def await_slot(next_ns):
    while time.monotonic_ns() < next_ns:
        pass


def run_receiver(folder, messages, warm_up, polling, answering, core):
    """Measures and returns (latencies, messages per second); answers every message if asked."""
    context = zmq.Context()
    source = context.socket(zmq.PULL)
    source.connect(f"ipc://{folder}/there")
    back = context.socket(zmq.PUSH)
    back.connect(f"ipc://{folder}/back")
    os.sched_setaffinity(0, {core})
    back.send(b"ready")
    latencies = []
    for i in range(warm_up + messages):
        request = receive(source, polling)
        now_ns = time.monotonic_ns()
        if answering:
            back.send(pickle.dumps(request))
        if i == warm_up:
            start_ns = now_ns
        if i >= warm_up:
            latencies.append((now_ns - request.stamp_ns) / 1000)
    per_s = (messages - 1) / max(now_ns - start_ns, 1) * 1e9
    back.send(pickle.dumps((latencies, per_s)))
    context.destroy(linger=5000)


def measure(name, arguments, cores, messages, pace_ns, polling, answering):
    os.sched_setaffinity(0, range(os.cpu_count()))
    with tempfile.TemporaryDirectory() as folder:
        context = zmq.Context()
        there = context.socket(zmq.PUSH)
        there.bind(f"ipc://{folder}/there")
        back = context.socket(zmq.PULL)
        back.bind(f"ipc://{folder}/back")
        receiver = subprocess.Popen(
            [sys.executable, __file__, "--receiver", folder, str(messages),
             str(arguments.warm_up), str(int(polling)), str(int(answering)), str(cores[-1])])
        back.recv()
        os.sched_setaffinity(0, {cores[0]})
        next_ns = time.monotonic_ns()
        for _ in range(arguments.warm_up + messages):
            if pace_ns:
                await_slot(next_ns)
                next_ns = time.monotonic_ns() + pace_ns
            there.send(pickle.dumps(PeerRequest(time.monotonic_ns())))
            if answering:
                receive(back, polling)
        latencies, per_s = pickle.loads(back.recv())
        context.destroy(linger=0)
        if receiver.wait() != 0:
            sys.exit("the receiver failed")
    latencies.sort()
    p50 = latencies[len(latencies) // 2]
    p99 = latencies[int(len(latencies) * 0.99)]
    print(f"{name} {p50:.3f} {p99:.3f} {per_s:.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--receiver", nargs=6)
    parser.add_argument("--paced", type=int, default=5000)
    parser.add_argument("--pace-us", type=int, default=200)
    parser.add_argument("--ping-pong", type=int, default=20000)
    parser.add_argument("--flood", type=int, default=200000)
    parser.add_argument("--warm-up", type=int, default=500)
    parser.add_argument("--cores", type=int, nargs="+", default=[0])
    arguments = parser.parse_args()
    if arguments.receiver:
        folder, *numbers = arguments.receiver
        messages, warm_up, polling, answering, core = map(int, numbers)
        run_receiver(folder, messages, warm_up, bool(polling), bool(answering), core)
        return
    cores = arguments.cores
    pace_ns = arguments.pace_us * 1000
    measure("paced_blocking", arguments, cores, arguments.paced, pace_ns, False, False)
    measure("paced_polling", arguments, cores, arguments.paced, pace_ns, True, False)
    measure("ping_pong", arguments, cores, arguments.ping_pong, 0, True, True)
    measure("flood", arguments, cores, arguments.flood, 0, True, False)


if __name__ == "__main__":
    main()
