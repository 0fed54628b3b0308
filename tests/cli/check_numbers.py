#!/usr/bin/env python3
"""The NumPy side of the Python bridge against the program: every quantizer spec on a real tensor, and every edge of plans of many
methods evaluated again from dump, checkpoint and side file. Needs python3-numpy, python3-yaml and python3-h5py; torch is not used.

  python3 tests/cli/check_numbers.py PLANISH_CLI SOURCE_DIR
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CLI, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
try:
    import h5py
    import numpy as np
    import yaml  # noqa: F401
except ImportError as missing:
    print(f"SKIPPED: {missing.name} is not installed for this interpreter")
    sys.exit(77)
sys.path.insert(0, str(SOURCE / "resources" / "python"))
from planish_numbers import FLOATS, BLOCKS, forward_all, parse_spec, quantize, weights_all  # noqa: E402
from planish_plan import Plan, read_safetensors  # noqa: E402

ENVIRONMENT = dict(os.environ, PLANISH_RESOURCES=str(SOURCE / "resources"))
SAMPLE = SOURCE / "sample_data" / "smollm2.h5"


def run(*arguments):
    done = subprocess.run([CLI, *arguments, "--json"], capture_output=True, text=True, timeout=240, env=ENVIRONMENT, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def specs():
    for bits in (2, 4, 8):
        for sharing in ("tensor", "token", "group32", "channel"):
            yield f"int{bits}:{sharing}"
            yield f"int{bits}:{sharing}:asym"
    for dialect in ("mixed", "half", "offset", "signed", "zero", "raw", "free", "bitsandbytes", "compressed_tensors", "llm_awq", "omniquant"):
        yield f"int4:token:dialect={dialect}"
    yield "int4:token:asym:dialect=compressed_tensors"
    for clip in ("mse", "p0.99", "0.8"):
        for spec in ("int4:token", "int4:group32:asym", "int4:token:dialect=signed", "fp4_e2m1:token", "int3:tensor"):
            yield f"{spec}:clip={clip}"
    for step in ("f32", "f16", "bf16"):
        yield f"int4:group32:scale={step}"
        yield f"int4:group32:asym:scale={step}"
    for tail in ("short", "pad"):
        yield f"int4:group100:tail={tail}"
        yield f"int4:group100:asym:tail={tail}"
    for form in FLOATS:
        yield f"{form}:token"
        yield f"{form}:group64"
    for form in BLOCKS:
        yield form
    for rule in ("even", "even_elem", "ceil", "fourthirds"):
        for form in ("mxfp4", "mxint8", "mxfp8_e4m3"):
            yield f"{form}:rule={rule}"
    yield "nvfp4:dialect=four_over_six"


def check_specs():
    faults, count = [], 0
    with h5py.File(SAMPLE) as file:
        for edge, every in (("layers.28.mlp_down", 1), ("layers.2.attn_in", 4)):
            x = file["edges/" + edge][:].astype(np.float64)
            for text in list(specs())[::every]:
                ours = quantize(x, parse_spec(text))
                error = np.linalg.norm(ours - x) / np.linalg.norm(x)
                theirs = run("quantize", str(SAMPLE), "--tensor", "/edges/" + edge, "--spec", text)
                zeroed = np.mean((x != 0) & (ours == 0))
                count += 1
                if abs(error - theirs["relative_frobenius"]) > 1e-12 * error or abs(zeroed - theirs["zeroed_fraction"]) > 1e-12:
                    faults.append(f"{edge} {text}: {error!r}, the program says {theirs['relative_frobenius']!r} (zeroed {zeroed}, {theirs['zeroed_fraction']})")
    return faults, count


CANDIDATES = """schema: planish-candidates/1
defaults: {act: "%s", weight: "%s"}
candidates:
  - {name: none, method: none}
  - {name: it, method: [%s]}
"""
PLANS = [("{smoothquant: {alpha: 0.5}}", "int8:token", "int8:row"), ("{hadamard: {}}", "int4:token", "int4:row"), ("{block_hadamard: {}}", "mxfp4", "mxfp4"),
         ("{duquant: {}}", "int4:token", "int4:row"), ("{zigzag_hadamard: {}}", "nvfp4", "nvfp4"), ("{smoothquant: {alpha: 0.2}}, {hadamard: {}}", "int4:group32:asym", "int4:group32"),
         ("{wush: {}}", "mxfp4", "mxfp4"), ("{svdquant: {}}", "int4:token", "int4:group32"), ("{awq: {}}", "none", "int4:group32:asym"), ("{haar: {}}", "int8:token", "int8:row"),
         ("{clip: {}}", "int4:token", "int4:row"), ("{affinequant: {steps: 3}}", "int4:token", "int4:row"), ("{flatquant: {steps: 3}}", "int4:token", "int4:row")]


def errors_of(plan, dump, checkpoint):
    """(edge, relative error by NumPy, the plan's) of every edge on its held-out requests."""
    weights = {name[6:] if name.startswith("model.") else name: value.astype(np.float64) for name, value in read_safetensors(checkpoint).items()}
    held = [int(each) for each in plan.tree["calibration"]["held_out_requests"]]
    with h5py.File(dump) as file:
        rows = np.isin(file["tokens/request"][:], held)
        for a in plan.assignments:
            if a.clips:  # fitted clips: check_torch.py
                continue
            x = file["edges/" + a.edge][:][rows].astype(np.float64)
            xt = forward_all(a.operators, x, shift=a.shift)
            xq = xt if a.act.format == "none" else quantize(xt, parse_spec(a.act.text))
            wt, reference = [], []
            for index, name in enumerate(a.consumers):
                part = name.split(".")[-1]
                stored = "lm_head.weight" if name == "head" else ".".join(name.split(".")[:2]) + (".self_attn." if part in ("q_proj", "k_proj", "v_proj", "o_proj") else ".mlp.") + part + ".weight"
                w = weights[stored]
                reference.append(x @ w.T)
                wt.append(weights_all(a.operators, w))
            tensor_max = max(np.abs(each).max() for each in wt)
            total = energy = 0.0
            for index, (w, y) in enumerate(zip(wt, reference)):
                low = 0.0
                if a.low_rank:
                    left, right = a.low_rank["pairs"][0 if a.low_rank["stacked"] else index]
                    first = sum(len(each) for each in wt[:index]) if a.low_rank["stacked"] else 0
                    low = left[first:first + len(w)] @ right if a.low_rank["stacked"] else left @ right
                wq = quantize(w - low, a.weight, tensor_max=tensor_max if a.weight.format == "nvfp4" else None)
                total += np.linalg.norm(xq @ wq.T + (xt @ low.T if a.low_rank else 0) - y) ** 2
                energy += np.linalg.norm(y) ** 2
            yield a, np.sqrt(total / energy), a.entry["output"]["held_out"]["relative_frobenius"]


def check_plans(scratch):
    faults, count = [], 0
    dump, model = f"{scratch}/d.h5", f"{scratch}/m.safetensors"
    run("synth", "--out", dump, "--model-out", model, "--tokens", "192")
    built = {row["key"] for row in run("methods")["methods"]}
    for number, (method, act, weight) in enumerate(PLANS):
        if not set(re.findall(r"\{(\w+):", method)) <= built:
            continue
        file = pathlib.Path(scratch) / f"c{number}.yaml"
        file.write_text(CANDIDATES % (act, weight, method))
        plan = f"{scratch}/p{number}.yaml"
        run("plan", dump, "--weights", model, "--candidates", str(file), "--pin", "layers.*=it", "--allow-online", "--accept-joint", "--out", plan)
        for a, ours, theirs in errors_of(Plan(plan), dump, model):
            count += 1
            if abs(ours - theirs) > 1e-7 * theirs:
                faults.append(f"{method} {act} {weight} {a.edge}: {ours!r}, the plan says {theirs!r}")
    return faults, count


def main():
    faults, count = check_specs()
    with tempfile.TemporaryDirectory() as scratch:
        more, edges = check_plans(scratch)
    faults += more
    print("\n".join(faults) if faults else f"{count} specs and {edges} edges of {len(PLANS)} plans agree")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
