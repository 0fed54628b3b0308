#!/usr/bin/env python3
"""Every flag of `planish-cli compare` does what it says, on the sample. Standard library only.

  python3 tests/cli/check_compare.py PLANISH_CLI SOURCE_DIR
"""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

CLI, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
SAMPLE = str(SOURCE / "sample_data" / "smollm2.h5")
ENVIRONMENT = dict(os.environ, PLANISH_RESOURCES=str(SOURCE / "resources"))
CANDIDATES = """schema: planish-candidates/1
defaults: {act: "int8:token", weight: "int8:row", seed: 0}
candidates:
  - {name: smooth 0.6, method: smoothquant, params: {alpha: 0.6}}
  - {name: rotate then smooth, method: [{hadamard: {seeds: 2}}, {smoothquant: {alpha: 0.2}}], act: "int4:token", weight: "int4:row", edges: ["*.mlp_down"]}
"""
COLUMNS = ("edge,name,chain,act,weight,status,reason,relative_frobenius,low,high,rows_rms,rows_median,token_dominated,tie,gain,sqnr_db,online_flops,"
           "weight_bits,kappa,seconds").split(",")


def raw(*arguments):
    return subprocess.run([CLI, "compare", *arguments], capture_output=True, text=True, timeout=240, env=ENVIRONMENT, check=False)


def compare(*arguments, code=0):
    done = raw(*arguments, "--json")
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return json.loads(done.stdout)


def edge_of(comparison, name):
    return next(edge for edge in comparison["edges"] if edge["edge"] == name)


def names(edge):
    return [evaluation["candidate"] for evaluation in edge["evaluations"]]


def dominated(e, others):
    key = lambda x: (x["output"]["relative_frobenius"], x["ledger"]["online_flops_per_token"], x["ledger"]["weight_bits"])  # noqa: E731
    return any(key(o) != key(e) and all(a <= b for a, b in zip(key(o), key(e))) for o in others)


def check_presets(scratch):
    # A small dump: learned methods on the sample's edges take minutes under a sanitizer.
    small = str(pathlib.Path(scratch) / "small.h5")
    subprocess.run([CLI, "synth", "--out", small, "--tokens", "96", "--channels", "64", "--layers", "1"], capture_output=True, check=True, env=ENVIRONMENT)
    quick, full = (compare(small, "--edge", "L0.attn_in", "--preset", "w4a16", "--effort", effort) for effort in ("quick", "full"))
    starred = set(names(full["edges"][0])) - set(names(quick["edges"][0]))
    assert starred == {"omniquant let=off", "svdquant"}, starred
    assert names(quick["edges"][0])[0] == "none"


def check_file_ablate_csv(scratch):
    file, table = pathlib.Path(scratch) / "c.yaml", pathlib.Path(scratch) / "t.csv"
    file.write_text(CANDIDATES)
    both = compare(SAMPLE, "--edge", "L2.down", "--edge", "L2.attn_in", "--candidates", str(file), "--ablate", "--csv", str(table))
    down, attention = edge_of(both, "layers.2.mlp_down"), edge_of(both, "layers.2.attn_in")
    assert names(attention) == ["none", "smooth 0.6"], names(attention)  # `edges` of a candidate, identity added
    assert names(down) == ["none", "smooth 0.6", "rotate then smooth", "rotate then smooth without hadamard", "rotate then smooth without smoothquant"], names(down)
    assert down["evaluations"][2]["act"] == "int4:token" and down["evaluations"][1]["act"] == "int8:token"
    with open(table, newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert list(rows[0]) == COLUMNS, list(rows[0])
    assert len(rows) == sum(len(edge["evaluations"]) for edge in both["edges"])
    for edge in both["edges"]:
        ties = {entry["name"]: entry["tie"] for entry in edge["ranking"]}
        for evaluation in edge["evaluations"]:
            row = next(row for row in rows if (row["edge"], row["name"]) == (edge["edge"], evaluation["candidate"]))
            assert float(row["relative_frobenius"]) == evaluation["output"]["relative_frobenius"]
            assert (float(row["low"]), float(row["high"])) == (evaluation["uncertainty"]["low"], evaluation["uncertainty"]["high"])
            assert int(row["tie"]) == ties[evaluation["candidate"]]


def check_ranking():
    by = {kind: edge_of(compare(SAMPLE, "--edge", "L2.down", "--preset", "w8a8", "--effort", "quick", "--rank-by", kind), "layers.2.mlp_down") for kind in ("auto", "pooled", "rows")}
    for kind, edge in by.items():
        evaluations = {e["candidate"]: e for e in edge["evaluations"] if e["status"] == "ok"}
        field = (lambda e: e["output"]["rows"]["rms"]) if kind == "rows" else (lambda e: e["output"]["relative_frobenius"])
        ordered = [field(evaluations[entry["name"]]) for entry in edge["ranking"]]
        sets = [entry["tie"] for entry in edge["ranking"]]
        assert len(ordered) == len(evaluations) and sets == sorted(sets) and sets[0] == 0
        for tie in set(sets):
            inside = [value for value, each in zip(ordered, sets) if each == tie]
            assert inside == sorted(inside), (kind, tie)
        ok = list(evaluations.values())
        assert edge["pareto"] == [e["candidate"] for e in edge["evaluations"] if e["status"] == "ok" and not dominated(e, ok)], edge["pareto"]
        assert all(e["uncertainty"]["units"] >= 2 and e["uncertainty"]["low"] <= e["output"]["relative_frobenius"] <= e["uncertainty"]["high"] for e in ok)
    assert by["pooled"]["ranking"] != by["rows"]["ranking"]


def check_rows_and_splits():
    less = edge_of(compare(SAMPLE, "--edge", "L2.attn_in", "--preset", "o1", "--rows", "8"), "layers.2.attn_in")["evaluations"][0]
    assert less["rows"]["held_out"] == 8 and less["rows"]["available"] == 45, less["rows"]
    explicit = compare(SAMPLE, "--edge", "L2.attn_in", "--preset", "o1", "--fit-rows", "0:20", "--score-rows", "20:40")["edges"][0]["evaluations"][0]
    assert explicit["split"]["unit"] == "explicit" and explicit["rows"]["score"] == 20
    errors = {compare(SAMPLE, "--edge", "L2.attn_in", "--preset", "o1", "--split-seed", seed)["edges"][0]["evaluations"][0]["output"]["relative_frobenius"] for seed in "0123"}
    assert len(errors) > 1, errors


def check_text_and_faults():
    text = raw(SAMPLE, "--edge", "L28.down", "--edge", "L3.down", "--preset", "o1").stdout
    for word in ("layers.28.mlp_down", "token-dominated", "smoothquant alpha=.5", "pareto", "skipped: layers.3.mlp_down: consumer layers.3.down_proj has no weights", "geometric gain"):
        assert word in text, (word, text)
    everything = compare(SAMPLE, "--preset", "o1")
    assert sum(1 for edge in everything["edges"] if edge["skipped"]) > 0 and sum(1 for edge in everything["edges"] if not edge["skipped"]) >= 4
    for arguments, code, mention in ((["--preset", "zzz"], 2, "w8a8"), (["--preset", "o1", "--candidates", "c.yaml"], 2, "--preset"), ([], 2, "--candidates"),
                                     (["--preset", "o1", "--effort", "slow"], 2, "quick or full"), (["--preset", "o1", "--rank-by", "luck"], 2, "pooled"),
                                     (["--preset", "o1", "--fit-rows", "0:3"], 2, "--score-rows"), (["--candidates", "no.yaml"], 1, "no.yaml")):
        done = raw(SAMPLE, "--edge", "L2.down", *arguments, "--json")
        assert done.returncode == code and mention in done.stderr, (arguments, done.returncode, done.stderr)
    alone = raw(SAMPLE, "--edge", "L3.down", "--preset", "o1")
    assert alone.returncode == 1 and "nothing could be compared" in alone.stderr


def main():
    with tempfile.TemporaryDirectory() as scratch:
        check_presets(scratch)
        check_file_ablate_csv(scratch)
    check_ranking()
    check_rows_and_splits()
    check_text_and_faults()
    print("every flag of compare does what it says")


if __name__ == "__main__":
    main()
