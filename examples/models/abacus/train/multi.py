"""The R2R head over several positions, made beside a finished folder from its r2r head.

    multi.py TOKENROUTER WORK [--chunks N] [--sweep N]

TOKENROUTER is the program of this project, which decodes; WORK keeps what it answered, so that a run that was
cut short goes on. Writes ../routers/r2r_multi.{safetensors,json}. Needs torch; a GPU is not used.

Labels are made as for the other heads (heads.py): m answers, and where xs would say another token, that token is
kept and m goes on; it diverges when the final answer changes. Two cores label far fewer prompts than r2r was
trained on, so r2r's weights stay as they are and only what the older positions add to its first layer is learned,
held to r2r's scores by a second loss, and halved in the end: without all this the head forgets more than it learns.
Settings were chosen on the first chunk of router-validation prompts; the area under the curve that counts is that of
the second. The threshold is the cheapest of the grid that keeps 97 % of m's accuracy, and one point more, on
router-validation problems decoded with the head.
"""
import argparse
import json
import math
import os
import subprocess
import time

import torch
import torch.nn.functional as F

import bench
import common
import datagen as dg
import heads as H
from prompts import mixed
from tok import load_tok

MODELS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CONFIGS = os.path.join(MODELS, "..", "..", "..", "configs")
GRID = [0.02, 0.04, 0.07, 0.1]
CHUNK = 250          # prompts made and labelled at a time
HARD = 24000         # positions that do not diverge, of those that r2r thinks likeliest to
EASY = 12000         # of the others; they count for all of them
STEPS, BATCH, RATE = 200, 1024, 3e-4
R2R_SHARE = 0.5      # of the loss against r2r's scores
T0 = time.time()


def say(*a):
    print(f"[{time.time() - T0:6.1f}s]", *a, flush=True)


def ask(args, name, config, prompts, max_new, *settings):
    """Greedy replies to lists of token ids: (tokens, share by m)."""
    out, by_m = [], 0
    path = os.path.join(args.work, name)
    if not os.path.exists(path + ".out"):
        with open(path + ".in", "w") as f:
            f.writelines(json.dumps(dict(prompt_token_ids=p)) + "\n" for p in prompts)
        subprocess.run([args.tokenrouter, "generate", "--config", os.path.join(CONFIGS, config), "--prompts", path + ".in",
                        "--output", path + ".part", "--max-new-tokens", str(max_new), "--concurrency", "128",
                        *(x for s in settings for x in ("--set", s))], check=True, stdout=subprocess.DEVNULL)
        os.rename(path + ".part", path + ".out")
    for line in open(path + ".out"):
        reply = json.loads(line)
        out.append(reply["token_ids"])
        by_m += sum(x == "abacus-m" for x in reply["models"])
    say(name, len(out))
    return out, by_m / max(1, sum(map(len, out)))


def labels(args, tok, name, probs, outs, f):
    """1 where xs's token changes m's final answer, per row of `f`."""
    diff = (f["arg"] != f["tok"]).nonzero()[:, 0].tolist()
    pi, ti, arg = f["pi"].tolist(), f["ti"].tolist(), f["arg"].tolist()
    heads = [outs[pi[i]][:ti[i]] + [arg[i]] for i in diff]
    live = [k for k, i in enumerate(diff) if arg[i] != tok.stop]
    conts = [[] for _ in diff]
    replies, _ = ask(args, name, "single/abacus-m.yaml", [probs[pi[diff[k]]]["ids"] + heads[k] for k in live], common.MAX_NEW)
    for k, reply in zip(live, replies):
        conts[k] = reply
    label = torch.zeros(len(arg))
    for k, i in enumerate(diff):
        whole = heads[k] + conts[k]
        same = dg.signature(tok.decode(whole)) == dg.signature(tok.decode(outs[pi[i]]))
        label[i] = float(not same or whole[-1] != tok.stop)
    return label, dict(prompts=len(probs), positions=len(arg), differing=len(diff), divergent=int(label.sum()))


def labelled(args, tok, xs, r2r, split, chunk):
    """Of every position with a whole window: hidden states and largest logits of its window, oldest first,
    embedding of the proposed token, label, r2r's score before the sigmoid; and the mean of the largest logits."""
    probs = common.encode(tok, mixed(split, CHUNK, 11 + 1000 * chunk))
    name = f"{split}{chunk}"
    outs, _ = ask(args, name + "-reply", "single/abacus-m.yaml", [p["ids"] for p in probs], common.MAX_NEW)
    f = H.features(xs, None, probs, outs, batch=64)
    f["y"], info = labels(args, tok, name + "-label", probs, outs, f)
    order = torch.argsort(f["pi"] * 4096 + f["ti"])
    f = {k: v[order] for k, v in f.items()}
    last = (f["ti"] >= H.WINDOW - 1).nonzero()[:, 0]
    rows = last[:, None] + torch.arange(1 - H.WINDOW, 1)[None]
    assert bool((f["pi"][rows] == f["pi"][last][:, None]).all())
    e = xs.model.embed_tokens.weight.detach()[f["arg"][last]]
    with torch.no_grad():
        one = r2r.logit(f["h"][last], f["top"][last], e)
    return dict(h=f["h"][rows].flatten(1), t=f["top"][rows][..., :H.WINDOW_TOP].flatten(1), e=e, y=f["y"][last],
                one=one), f["top"].mean(0), info


def joined(args, tok, xs, r2r, split, chunks):
    parts = [labelled(args, tok, xs, r2r, split, c) for c in chunks]
    rows = {k: torch.cat([p[0][k] for p in parts]) for k in parts[0][0]}
    info = {k: sum(p[2][k] for p in parts) for k in parts[0][2]}
    say(split, info)
    return rows, torch.stack([p[1] for p in parts[:2]]).mean(0), info


def auc(head, rows):
    with torch.no_grad():
        return H.auc(head.logit(rows["h"], rows["t"], rows["e"]).double(), rows["y"])


def thinned(rows):
    """All positions that diverge, those that nearly do, a sample of the rest; and their weights."""
    pos, neg = (rows["y"] > 0.5).nonzero()[:, 0], (rows["y"] < 0.5).nonzero()[:, 0]
    neg = neg[rows["one"][neg].argsort(descending=True)]
    hard, easy = neg[:HARD], neg[HARD:]
    pick = easy[torch.randperm(len(easy), generator=torch.Generator().manual_seed(5))[:EASY]]
    weight = torch.cat([torch.full((len(pos),), H.POS_WEIGHT), torch.ones(len(hard)),
                        torch.full((len(pick),), len(easy) / max(1, len(pick)))])
    i = torch.cat([pos, hard, pick])
    return {k: v[i] for k, v in rows.items()}, weight


def train(r2r, rows, mean_top):
    """The first layer's weights on the older positions; everything else as r2r has it."""
    rows, weight = thinned(rows)
    torch.manual_seed(0)
    head = H.R2RMulti(hidden=r2r.cfg["hidden_size"]).requires_grad_(False)
    head.start_from(r2r, mean_top)
    old, hidden = H.WINDOW - 1, r2r.cfg["hidden_size"]
    learned = head.combined_projection.weight.requires_grad_(True)
    start, mask = learned.detach().clone(), torch.zeros_like(learned)
    mask[:, :old * hidden] = 1                                              # older hidden states
    mask[:, (H.WINDOW + 1) * hidden:(H.WINDOW + 1 + old) * hidden] = 1      # older logits
    learned.register_hook(lambda g: g * mask)
    bce = F.binary_cross_entropy_with_logits

    def loss(i):
        z = head.logit(rows["h"][i], rows["t"][i], rows["e"][i])
        both = bce(z, rows["y"][i], reduction="none") + R2R_SHARE * bce(z, torch.sigmoid(rows["one"][i]), reduction="none")
        return (weight[i] * both).mean()

    opt = torch.optim.AdamW([learned], lr=RATE, weight_decay=0.0, betas=(0.9, 0.99))
    g = torch.Generator().manual_seed(0)
    for i in range(STEPS):
        opt.param_groups[0]["lr"] = RATE * min(1, (i + 1) / 20) * (0.5 + 0.5 * math.cos(math.pi * i / STEPS))
        value = loss(torch.randint(len(weight), (BATCH,), generator=g))
        opt.zero_grad(set_to_none=True)
        value.backward()
        opt.step()
    with torch.no_grad():
        learned.copy_((start + learned) / 2)
    return head.eval().requires_grad_(False)


def sweep(args, tok, goal, probs):
    """Accuracy and share by m at each threshold, dearest first, until the accuracy falls well below the goal."""
    points = []
    for t in GRID:
        outs, rate = ask(args, f"sweep{len(probs)}-{t}", "r2r-neural_multi_input/abacus-xs_abacus-m.yaml", [p["ids"] for p in probs],
                         bench.SWEEP_NEW, f"method.threshold={t}")
        points.append(dict(threshold=t, threshold2=0.0, accuracy=common.score(tok, probs, outs)[0], rate_m=rate, rate_s=0.0))
        say(points[-1])
        if points[-1]["accuracy"] < goal - 0.03:
            break
    return points


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("tokenrouter")
    ap.add_argument("work")
    ap.add_argument("--chunks", type=int, default=11)
    ap.add_argument("--sweep", type=int, default=400)
    args = ap.parse_args()
    os.makedirs(args.work, exist_ok=True)
    torch.set_float32_matmul_precision("highest")
    tok = load_tok(os.path.join(MODELS, "abacus-xs"))
    xs = common.load_model(bench.weights(MODELS, "xs"), "xs", "cpu")
    routers = os.path.join(MODELS, "routers")
    r2r = H.load_heads(routers, "cpu")["r2r"]
    rows, mean_top, info = joined(args, tok, xs, r2r, "router", range(args.chunks))
    head = train(r2r, rows, mean_top)
    log = dict(labels_router=info)
    for c, use in ((0, "chosen_on"), (1, "measured_on")):
        v, _, info = labelled(args, tok, xs, r2r, "router_val", c)
        log[use] = dict(info, auc=auc(head, v), auc_r2r=H.auc(v["one"].double(), v["y"]))
    say(log)
    extra = dict(threshold=0.0, rule="large model when score >= threshold, and at the first two positions", training=log)
    H.save_head("r2r_multi", head, routers, extra)

    probs = common.encode(tok, mixed("router_val", args.sweep, 77))
    outs, _ = ask(args, f"sweep{len(probs)}-m", "single/abacus-m.yaml", [p["ids"] for p in probs], bench.SWEEP_NEW)
    alone = common.score(tok, probs, outs)[0]
    goal = 0.97 * alone + 0.01
    curve = sweep(args, tok, goal, probs)
    chosen = bench.choose(curve, goal)
    say("m alone", alone, "chosen", chosen)
    extra.update(threshold=chosen["threshold"], validation=dict(problems=len(probs), m_alone=alone), curve=curve)
    H.save_head("r2r_multi", head, routers, extra)


if __name__ == "__main__":
    main()
