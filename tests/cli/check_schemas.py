#!/usr/bin/env python3
"""Every verb of planish-cli prints an object that its JSON Schema in resources/schemas accepts; faults end with the exit codes of the contract.

  python3 tests/cli/check_schemas.py PLANISH_CLI SOURCE_DIR     needs python3-jsonschema
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema

CLI, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
SAMPLE = str(SOURCE / "sample_data" / "smollm2.h5")
SPECS = ["--act", "int8:token", "--weight", "int8:row"]
ENVIRONMENT = dict(os.environ, PLANISH_RESOURCES=str(SOURCE / "resources"))


def run(arguments):
    return subprocess.run([CLI, *arguments], capture_output=True, text=True, timeout=240, env=ENVIRONMENT, check=False)


def schema_of(name):
    kind = name.split("/")[0].removeprefix("planish.")
    return json.loads((SOURCE / "resources" / "schemas" / f"{kind}.json").read_text())


def good(scratch):
    """Verb lines whose object must fit its schema, in an order that lets later ones read what earlier ones wrote."""
    dump, model = f"{scratch}/d.h5", f"{scratch}/m.safetensors"
    plan, out = f"{scratch}/p.yaml", f"{scratch}/o.safetensors"
    yield ["info", SAMPLE]
    yield ["analyze", SAMPLE, "--edge", "layers.28.*"]
    yield ["analyze", SAMPLE, "--edge", "L2.down", "--edge", "L28.down", "--save-stats", f"{scratch}/a.stats", "--csv", f"{scratch}/csv"]
    yield ["quantize", SAMPLE, "--tensor", "/edges/layers.2.attn_in", "--spec", "int4:group32:asym"]
    yield ["evaluate", SAMPLE, "--edge", "L2.down", "--method", "smoothquant", "--set", "alpha=.5", *SPECS, "--breakdown"]
    yield ["evaluate", SAMPLE, "--edge", "L28.attn_in", "--method", "smoothquant+hadamard", *SPECS]
    yield ["evaluate", SAMPLE, "--edge", "L28.attn_in", "--edge", "L2.attn_in", "--method", "none", *SPECS]
    yield ["sweep", SAMPLE, "--edge", "L2.attn_in", "--method", "smoothquant", "--param", "alpha", "--values", "0,.5,1", *SPECS]
    yield ["compare", SAMPLE, "--edge", "L2.attn_in", "--preset", "w8a8", "--effort", "quick"]
    yield ["python", "--out", f"{scratch}/bridge"]
    for table in ("methods", "formats", "backends", "targets"):
        yield [table]
    yield ["synth", "--out", dump, "--model-out", model, "--tokens", "192"]
    yield ["plan", dump, "--weights", model, "--preset", "w8a8", "--effort", "quick", "--out", plan]
    yield ["check", plan]
    yield ["export", plan, "--to", "safetensors", "--out", f"{scratch}/x"]
    yield ["apply", plan, "--checkpoint", model, "--out", out]
    yield ["verify", plan, dump, "--checkpoint", model, "--transformed", out]
    yield ["report", dump, "--weights", model, "--plan", plan, "--out", f"{scratch}/r.html"]


BAD = [
    (["evalute", SAMPLE], 2, "evaluate"),
    (["evaluate", SAMPLE, "--edge", "L2.down", "--method", "smoothqant", *SPECS], 2, "smoothquant"),
    (["evaluate", SAMPLE, "--edge", "L2.down", "--method", "smoothquant", "--set", "alpa=.5", *SPECS], 2, "alpha"),
    (["evaluate", SAMPLE, "--edge", "L2.down", "--method", "smoothquant", "--set", "alpha=1.5", *SPECS], 2, "alpha"),
    (["evaluate", SAMPLE, "--edge", "L2.dwon", "--method", "none", *SPECS], 2, "layers.2.mlp_down"),
    (["evaluate", SAMPLE, "--edge", "L2.down", "--method", "none", "--act", "int9:token", "--weight", "int8:row"], 2, "int8"),
    (["evaluate", SAMPLE, "--edge", "L2.down", "--method", "none", "--act", "int8:token", "--weigth", "int8:row"], 2, "--weight"),
    (["evaluate", SAMPLE, "--edge", "L3.down", "--method", "none", *SPECS], 1, "layers.3.down_proj has no weights"),
    (["info", str(SOURCE / "README.md")], 1, "README.md"),
    (["info", str(SOURCE / "no_such_file.h5")], 1, "no_such_file.h5"),
    (["check", str(SOURCE / "README.md")], 1, "README.md"),
]


def main():
    faults = []
    with tempfile.TemporaryDirectory() as scratch:
        for arguments in good(scratch):
            done = run([*arguments, "--json"])
            if done.returncode != 0:
                faults.append(f"{arguments[0]}: exit {done.returncode}: {done.stderr.strip()}")
                continue
            answer = json.loads(done.stdout)
            try:
                jsonschema.validate(answer, schema_of(answer["schema"]))
            except jsonschema.ValidationError as error:
                faults.append(f"{' '.join(arguments[:2])}: {error.json_path}: {error.message[:200]}")
            text = run(arguments) if arguments[0] in ("info", "methods", "quantize") else None
            if text is not None and (text.returncode != 0 or not text.stdout):
                faults.append(f"{arguments[0]}: no text without --json")
    for arguments, code, mention in BAD:
        done = run([*arguments, "--json"])
        if done.returncode != code or mention not in done.stderr:
            faults.append(f"{' '.join(arguments)}: exit {done.returncode} (expected {code}), stderr {done.stderr.strip()!r} (expected {mention!r})")
        elif not re.search(r"^error: .+: .+; .+", done.stderr, re.M):
            faults.append(f"{' '.join(arguments)}: not `error: SUBJECT: what; expected`: {done.stderr.strip()!r}")
    print("\n".join(faults) if faults else "every object fits its schema, every fault its exit code")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
