#!/usr/bin/env python3
"""`export` of a tiny model's plan: every file is read again by code that shares nothing with the writer.

  python3 tests/cli/check_export.py PLANISH_CLI SOURCE_DIR     needs python3-numpy
"""
import hashlib
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np

CLI, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
ENVIRONMENT = dict(os.environ, PLANISH_RESOURCES=str(SOURCE / "resources"))
TYPES = {"F64": "<f8", "I64": "<i8", "I8": "i1"}


def run(arguments, code=0):
    done = subprocess.run([CLI, *map(str, arguments)], capture_output=True, text=True, timeout=240, env=ENVIRONMENT, check=False)
    if done.returncode != code:
        sys.exit(f"{' '.join(map(str, arguments))}: exit {done.returncode}, expected {code}: {done.stderr}")
    return done


def must(holds, sentence):
    if not holds:
        sys.exit(sentence)


def read_safetensors(file):
    raw = file.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    header.pop("__metadata__", None)
    body = raw[8 + size :]
    return {k: np.frombuffer(body[slice(*v["data_offsets"])], TYPES[v["dtype"]]).reshape(v["shape"]) for k, v in header.items()}


def read_checkpoint(file):
    raw = file.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    header.pop("__metadata__", None)
    kinds = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
    body = raw[8 + size :]
    return {k: np.frombuffer(body[slice(*v["data_offsets"])], kinds[v["dtype"]]).reshape(v["shape"]).astype(float) for k, v in header.items()}


def check_safetensors(place, plan, model):
    out = place / "x"
    result = json.loads(run(["export", plan, "--to", "safetensors", "--out", out, "--json"]).stdout)
    must(result["fidelity"] == "exact", "safetensors: every part of this plan is carried, the label must be exact")
    must(sorted(map(str, out.iterdir())) == sorted(result["files"]), "safetensors: files[] is not what lies in the folder")
    (side,) = out.glob("*.safetensors")
    must(side.name.split(".")[-2] == hashlib.sha256(side.read_bytes()).hexdigest()[:8], "the side file's name is not its hash")
    tensors = read_safetensors(side)
    carried = sorted(key for edge in result["edges"] for key in edge["carried"])
    must(carried == sorted(tensors) and carried, "safetensors: `carried` is not the list of tensors in the file")
    listed = sorted(re.findall(r"^\| `([^`]+)` \|", (out / "KEYS.md").read_text(), re.M))
    must(listed == sorted(tensors), "KEYS.md does not list the tensors of the file")
    hint = json.loads((out / "planish-hint.json").read_text())
    must(hint["target"] == "safetensors" and hint["edges"] == result["edges"], "planish-hint.json disagrees with the output")
    run(["check", out / plan.name])  # the manifest beside its side file is a whole plan again
    check_norm_fold(place, plan, model, tensors)


def check_norm_fold(place, plan, model, tensors):
    """The exported s of an edge behind a norm is the quotient of the norm's gains before and after `apply`."""
    folded = place / "o.safetensors"
    run(["apply", plan, "--checkpoint", model, "--out", folded, "--store", "f64"])
    before, after = read_checkpoint(model), read_checkpoint(folded)
    seen = 0
    for layer in range(2):
        for edge, norm in (("attn_in", "input_layernorm"), ("mlp_in", "post_attention_layernorm")):
            s = tensors.get(f"layers.{layer}.{edge}.s")
            name = f"model.layers.{layer}.{norm}.weight"
            if s is None:
                continue
            seen += 1
            must(np.allclose(before[name] / after[name], s, rtol=1e-12, atol=0), f"{name}: the gain was not divided by the exported s")
    must(seen > 0, "no scale behind a norm was exported: this test has nothing to look at")


def check_faults(place, plan):
    out = place / "x"
    kept = {file: file.read_bytes() for file in out.iterdir()}
    must("in the way" in run(["export", plan, "--to", "safetensors", "--out", out], 1).stderr, "a filled folder must be refused")
    must(kept == {file: file.read_bytes() for file in out.iterdir()}, "a refused export changed files")
    must("safetensors" in run(["export", plan, "--to", "safetensor", "--out", place / "y"], 2).stderr, "an unknown key must name the known ones")
    run(["export", plan, "--to", "vllm", "--out", place / "y"], 1)  # an engine: linted, never written for
    run(["export", place / "absent.yaml", "--to", "safetensors", "--out", place / "y"], 1)
    must(not (place / "y").exists() and not list(place.glob("y*")), "a refused export left something behind")


def main():
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        dump, model, plan = place / "d.h5", place / "m.safetensors", place / "p.yaml"
        candidates = place / "c.yaml"
        candidates.write_text("schema: planish-candidates/1\ndefaults: {act: 'int8:token', weight: 'int8:row', seed: 0}\n"
                              "candidates:\n  - {name: smooth, method: smoothquant, params: {alpha: 0.6}}\n")
        run(["synth", "--out", dump, "--model-out", model, "--tokens", "192"])
        pins = [flag for edge in ("attn_in", "mlp_in") for layer in (0, 1) for flag in ("--pin", f"layers.{layer}.{edge}=smooth")]
        run(["plan", dump, "--weights", model, "--candidates", candidates, "--accept-joint", *pins, "--out", plan])
        check_safetensors(place, plan, model)
        check_faults(place, plan)


main()
